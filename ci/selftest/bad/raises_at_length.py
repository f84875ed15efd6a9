"""An exception that says very much, and steers the terminal."""


def normalized_argmax(logits):
    raise ValueError("\x1b[2J\x1b]0;conforms\x07" + "all is well " * 100000)
