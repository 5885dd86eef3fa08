"""Benchmarks are scripts beside the package: make them importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmarks"))
