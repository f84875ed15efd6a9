"""An exception while it is imported."""

raise ImportError("the shared library was built for another machine")
