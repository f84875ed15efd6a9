"""What an implementation is measured against, one module a library; each function makes a callable for one shape."""
