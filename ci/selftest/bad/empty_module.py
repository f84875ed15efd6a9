"""Nothing of what is looked for, in the module or in its object."""

normalized_argmax = "not a function"


class Namespace:
    pass


thing = Namespace()
