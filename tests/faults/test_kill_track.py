"""`scripts/kill_track.py`, on a small scale; and that it would notice."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from onlooker import Environment, LinUCB, TrackingObserver, simulate
from onlooker.observers.tracking import UCB

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX systems")

PATH = Path(__file__).parents[2] / "scripts" / "kill_track.py"
SCRIPT = runpy.run_path(str(PATH), run_name="kill_track")


@pytest.mark.slow
def test_kills_lose_no_round_and_double_none():
    # In a process without threads, which forks.
    ran = subprocess.run(
        [sys.executable, str(PATH), "--kills", "6", "--seed", "3"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert re.match(r"6 kills \(seed 3\) as \d logs? of 2600 rounds grew", ran.stdout)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_fault_is_noticed(tmp_path):
    log = simulate(Environment(3, 4), LinUCB(), 300).log
    growing = SCRIPT["Growing"](tmp_path, log, n_rounds=300, before=200)
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:200])
    for rounds, known in ((log[:0], True), (log[200:], True), (log[:50], False)):
        observer.partial_fit(rounds, repeated="follow").save(growing.state)
        if known:
            assert growing.check() == observer.n_rounds_
        else:
            with pytest.raises(SystemExit, match="the state has 350 rounds"):
                growing.check()
    with pytest.raises(SystemExit, match="not that of one run"):
        SCRIPT["compare"](growing.state, log)
