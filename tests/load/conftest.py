"""The load commands are scripts: make them importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
