"""os._exit while it is imported."""

import os

print("cannot go on")
os._exit(3)
