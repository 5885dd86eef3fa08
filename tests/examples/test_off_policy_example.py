"""The worked off-policy evaluation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "off_policy.py"


@pytest.mark.slow
def test_recovered_propensities_do_as_well_as_true_ones():
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    pairs = re.findall(r"(recovered|true) propensities: SNIPS ([\d.]+), doubly robust ([\d.]+)", done.stdout)
    estimates = {name: (float(snips), float(robust)) for name, snips, robust in pairs}
    for mine, exact in zip(estimates["recovered"], estimates["true"], strict=True):
        assert abs(mine / exact - 1) < 0.05
    low, high = map(float, re.search(r"draws of the propensities: ([\d.]+) to ([\d.]+)", done.stdout).groups())
    assert low < estimates["true"][0] < high
