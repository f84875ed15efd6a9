"""Metal text of the greedy selection: what the readers of a row keep, and how an id is found from it."""
