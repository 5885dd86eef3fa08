"""Draw the pictures that the README shows: `make figures`."""

from pathlib import Path

from onlooker.demo_page import study_curves
from onlooker.environment import Environment
from onlooker.learners import LinUCB
from onlooker.plots import to_png
from onlooker.study import study

target = Path(__file__).parent.parent / "docs" / "burn_in.png"
to_png(study_curves(study(Environment(20, 50, seed=0), LinUCB(), n_rounds=10_000, seed=0)), target)
print(f"wrote {target.name}")
