"""The worked example of a migration."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "migration.py"


@pytest.mark.slow
def test_the_new_system_shows_what_the_old_one_would(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    same = float(re.search(r"thinks best in ([\d.]+)% of them", done.stdout).group(1))
    missed = float(re.search(r"misses ([\d.]+) in worth", done.stdout).group(1))
    assert same > 98
    assert missed < 0.001
    assert "It explores by Thompson sampling" in done.stdout
    policy = json.loads((tmp_path / "policy.json").read_text())
    assert policy["feature_names"] == ["price", "rating", "colour=green", "colour=red"]
    assert policy["categories"] == {"colour": ["black", "green", "red"]}
    assert "reward" not in (tmp_path / "visits.csv").read_text()
