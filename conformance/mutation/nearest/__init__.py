"""The nearest wrong rules: what an implementation gets wrong that takes a case's oddity for nothing odd."""
