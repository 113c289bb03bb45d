"""Prints the first folder in a prefix's lib in which this Python looks for installed modules, relative to the prefix."""

import os
import sys

prefix = os.path.join(os.path.abspath(sys.argv[1]), "")
for path in sys.path[1:]:
    if path.startswith(prefix + "lib") and os.path.basename(path) in ("dist-packages", "site-packages"):
        print(path[len(prefix) :])
        break
