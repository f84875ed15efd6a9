"""Two reports held against each other: what fails anew, what passes anew, and what changed beside it."""
