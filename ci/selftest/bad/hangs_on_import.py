"""An import without an end."""

import time

print("loading weights")
time.sleep(3600)
