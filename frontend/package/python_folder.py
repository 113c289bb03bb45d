"""Prints the first folder of this Python's module path that is in a prefix's lib, relative to the prefix."""

import os
import sys

prefix = os.path.join(os.path.abspath(sys.argv[1]), "")
for path in sys.path[1:]:
    if path.startswith(prefix + "lib") and os.path.basename(path) in ("dist-packages", "site-packages"):
        print(path[len(prefix) :])
        break
