"""The worked example on the Open Bandit Dataset."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "open_bandit.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """What it prints, run in this process."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", [str(EXAMPLE), *arguments])
        runpy.run_path(str(EXAMPLE), run_name="__main__")
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.mark.slow
def test_it_tells_the_uniform_policy_from_the_learner(data_folder, run):
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)
    out = done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    uniform, learner = out.split("Thompson sampling")
    assert "no preference found" in uniform
    assert "ratio against picks at random 12.1, p = 0.80" in uniform
    assert "a preference found" in learner
    assert "likelihood ratio 5,180" in learner
    assert "no sign that it looks at the user" in learner
    odds = [float(x) for x in re.findall(r"being \w{6}\.\.\. and not \w{6}\.\.\. +x +([\d.]+)", learner)]
    assert len(odds) == 3
    assert odds == sorted(odds, reverse=True)
    assert odds[-1] > 1
    assert run(str(data_folder / "obd")) == out


def test_its_figures_come_from_the_data(data_folder, tmp_path, run):
    for policy, other in {"random": "bts", "bts": "random"}.items():
        (tmp_path / policy).mkdir()
        (tmp_path / policy / "women").symlink_to(data_folder / "obd" / other / "women")
    out = run(str(tmp_path))
    assert "a preference found, which should not be there" in out
    assert "Thompson sampling, 10,000 recommendations among 46 items: no preference found" in out
