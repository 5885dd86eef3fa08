"""A full disk under every command: exit code 2, one line that names the file, and the files before it are whole."""

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from onlooker import BanditLog, write_log
from onlooker.cli import commands, main
from onlooker.experiments.workers import Outcome, attempt

pytestmark = pytest.mark.skipif(os.name != "posix", reason="renames as POSIX systems do them")

NOTHING = {"completion", "diagnose"}
"""Commands that only print."""

WRITING = {
    "demo": (["--rounds", 300, "--out", "demo.html"], ["demo.html"]),
    "simulate": (["--rounds", 50, "--out", "log.csv", "--truth", "truth.json"], ["log.csv", "truth.json"]),
    "convert": (["../log.csv", "log.parquet"], ["log.parquet"]),
    "fit": (["../log.csv", "--out", "policy.json"], ["policy.json"]),
    "track": (
        ["../log.csv", "--out", "policy.json", "--state", "state.json", "--chart", "path.svg"],
        ["path.svg", "policy.json", "state.json"],
    ),
    "report": (["../log.csv", "--out", "report.html"], ["report.html"]),
    "propensities": (
        ["../log.csv", "--observer", "suffix", "--out", "with.csv", "--chart", "chart.png"],
        ["with.csv", "chart.png"],
    ),
    "compare": (
        ["../log.csv", "--observer", "naive", "--out", "table.csv", "--chart", "chart.png"],
        ["table.csv", "chart.png"],
    ),
    "reproduce": (
        ["--quick", "--seeds", 1, "--workers", 1, "--figure", "appendixA", "--out", "paper"],
        [
            *("paper/settings.json", "paper/cells/diagnostics-d5-K20-seed00.json", "paper/results.csv"),
            *("paper/diagnostics.csv", "paper/claims.md", "paper/claims.json", "paper/figures/appendixA.png"),
            *("paper/figures/appendixA.svg", "paper/figures/appendixA.csv", "paper/index.html"),
        ],
    ),
}
"""Arguments of every other, and the files that it writes, in order."""


class Here:
    """Runs the cells of a reproduction in this process: to start others takes its time and is not the matter here."""

    number = 1

    def __init__(self, function, _number):
        self._function = pickle.dumps(function)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def busy(self):
        return 0.0

    def run(self, jobs):
        for job in jobs:
            result, error, details = attempt(self._function, job.arguments)
            yield Outcome(job=job, seconds=0.0, result=result, error=error, details=details)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A folder with a log in it."""
    folder = tmp_path_factory.mktemp("commands")
    values = np.random.default_rng(0)
    features = values.normal(size=(400, 4, 3))
    chosen = (features @ [1.0, -1.0, 0.5] + values.gumbel(size=(400, 4))).argmax(axis=1)
    write_log(BanditLog.from_dense(features, chosen), folder / "log.csv")
    return folder


@pytest.fixture
def run(monkeypatch, capsys, place):
    """Run a command in a folder of its own, on a disk that has room for so many files."""

    def ran(command, room):
        folder = place / f"{command}-{room}"
        folder.mkdir()
        moved, real = [], os.replace

        def replace(temporary, target):
            if folder in Path(target).parents:
                if len(moved) >= room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                moved.append(str(Path(target).relative_to(folder)))
            real(temporary, target)

        arguments = [str(one) for one in WRITING[command][0]]
        monkeypatch.chdir(folder)
        monkeypatch.setattr(os, "replace", replace)
        monkeypatch.setattr("onlooker.experiments.workers.Workers", Here)
        monkeypatch.setattr("sys.argv", ["onlooker", command, *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        # A warning about what the log holds is no part of the refusal.
        lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("onlooker: ")]
        return code, lines, moved, there

    return ran


def test_no_command_is_left_out():
    assert commands.commands.keys() == WRITING.keys() | NOTHING


@pytest.mark.parametrize("command", WRITING)
def test_every_file_comes_by_a_rename(command, run):
    code, lines, moved, there = run(command, 99)
    assert (code, lines) == (0, [])
    assert moved == WRITING[command][1]
    assert there == sorted(moved)


@pytest.mark.parametrize(
    ("command", "room"), [(name, room) for name, (_, files) in WRITING.items() for room in range(len(files))]
)
def test_a_full_disk_is_told_in_one_line(command, room, run):
    code, lines, moved, there = run(command, room)
    files = WRITING[command][1]
    assert code == 2
    assert len(lines) == 1
    assert f"{files[room]}: cannot be written (No space left on device): free some space there" in lines[0]
    assert moved == files[:room]
    assert there == sorted(moved)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_that_cannot_be_printed_is_told_in_one_line():
    with open("/dev/full", "w", encoding="ascii") as full:
        found = subprocess.run(
            [sys.executable, "-m", "onlooker", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert "what is printed: cannot be read or written (No space left on device)" in found.stderr
