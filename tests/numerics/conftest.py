"""The generator of the golden answers is a script: make it importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
