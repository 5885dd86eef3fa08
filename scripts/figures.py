"""Draw the pictures that the README shows: `make figures`.

The picture of the report is a screenshot of its first screen, taken by headless Chromium; CHROMIUM is the path to
another browser of that kind.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image, ImageOps

from onlooker import BanditLog, Environment, LinTS, LinUCB, simulate, write_log
from onlooker.evaluation.study import study
from onlooker.report.demo_page import study_curves
from onlooker.report.plots import to_png

DOCS = Path(__file__).parents[1] / "docs"
FEATURES = ("delivery_days", "discount", "new", "shipping_cost", "price", "rating")
WIDTH, HEIGHT, SCALE = 760, 1000, 2
"""Size of the screenshot in pixels of the page. A README is about 800 wide; twice the pixels keep small text sharp."""
FRAME = "#d0d7de"
"""Grey, so that the picture stands out from a white page."""
GAP = 24
"""The screenshot ends in a gap between two sections, of so many empty lines of pixels of the page at least."""


def burn_in_curves() -> None:
    """The error of suffix imitation against the burn-in, on the log that `onlooker demo` simulates."""
    result = study(Environment(20, 50, seed=0), LinUCB(), n_rounds=10_000, seed=0)
    to_png(study_curves(result), DOCS / "burn_in.png")
    print("wrote docs/burn_in.png")


def report() -> None:
    """The first screen of the report about the log of a simulated shop."""
    browser = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if browser is None:
        sys.exit("the picture of the report needs Chromium: apt-get install chromium, or set CHROMIUM to its path")
    played = simulate(Environment(len(FEATURES), 12, seed=27), LinTS(), n_rounds=4000, seed=3).log
    named = BanditLog(played.features, played.offsets, played.chosen, feature_names=FEATURES)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_log(named, folder / "shop.parquet")
        run(folder, sys.executable, "-m", "onlooker", "report", "shop.parquet", "--l2", "0", "--out", "report.html")
        size = (f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}", "--hide-scrollbars")
        # A container has no sandbox to offer; the page is our own, without scripts.
        options = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}")
        run(folder, browser, *options, *size, "--screenshot=shot.png", (folder / "report.html").as_uri())
        shot = to_last_gap(Image.open(folder / "shot.png").convert("RGB"))
        framed = ImageOps.expand(shot, border=SCALE, fill=FRAME)
        framed.quantize(64).save(DOCS / "report.png", optimize=True)
    print("wrote docs/report.png")


def run(folder: Path, *command: str) -> None:
    """Run a command in a folder, and exit with its message if it fails."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        sys.exit(done.stderr)


def to_last_gap(shot: Image.Image) -> Image.Image:
    """The screenshot without the section that its lower edge cuts through."""
    pixels = np.asarray(shot.convert("L"))
    empty = (pixels == pixels[0, 0]).all(axis=1)
    filled = np.flatnonzero(np.append(~empty, values=True))
    wide = np.flatnonzero(np.diff(filled) > GAP * SCALE)
    last = filled[wide[-1]] if len(wide) else shot.height
    return shot.crop((0, 0, shot.width, min(last + GAP * SCALE // 2, shot.height)))


burn_in_curves()
report()
