"""Bombs are refused in one line, before the memory is used, and soon."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.bombs import write_bombs

LIMIT = 500_000_000
SOON = 20.0
"""Seconds, on a machine that does much else."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc"),
]

READ = """
import json, os, re, sys, time
from pathlib import Path
import numpy, pyarrow.parquet
from onlooker import InputError, LinearPolicy, TrackingObserver, read_log, scan_log
from onlooker.base.memory_limit import memory_limited

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def saved(kind):
    def load(path):
        with memory_limited(limit):
            kind.load(path)
    return load

def scanned(path):
    for log in scan_log(path, memory_limit=limit):
        log.n_rounds

def judged(path, way, load):
    Path("/proc/self/clear_refs").write_text("5")
    began = time.monotonic()
    try:
        load(path)
        said = ""
    except InputError as error:
        said = str(error)
    return [path.name, way, said, peak(), time.monotonic() - began]

limit = int(sys.argv[2])
logs = {"read": lambda path: read_log(path, memory_limit=limit), "scan": scanned}
documents = {"policy": saved(LinearPolicy), "state": saved(TrackingObserver)}
for path in sorted(Path(sys.argv[1]).iterdir()):
    for way, load in (documents if path.suffix == ".policy" else logs).items():
        # A process of its own for each: what one leaves in memory is not there for the next.
        child = os.fork()
        if child == 0:
            print(json.dumps(judged(path, way, load)), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(f"{path.name}, {way}: the process died")
"""

SAYS = {
    "rows.csv.gz": "beyond any ordinary log",
    "objects.jsonl.gz": "beyond any ordinary log",
    "lines.vw.gz": "beyond any ordinary log",
    "events.dsjson.gz": "beyond any ordinary log",
    "one_line.jsonl.gz": "",
    "one_line.dsjson.gz": "beyond any ordinary log",
    "words.vw.gz": "too many for memory as a table",
    "runs.parquet": "",
    "names.parquet": "the memory limit of 500 MB",
    "levels.parquet": "the memory limit of 500 MB",
    "one_round.parquet": "the memory limit of 500 MB",
    "page.parquet": "the memory limit of 500 MB",
    "zeros.npz": "the memory limit of 500 MB",
    "repeated.npz": "the memory limit of 500 MB",
    "header.csv": "has a first line of more than 1 MB",
    "numbers.csv": "the memory limit of 500 MB",
    "deep.policy": "the memory limit of 500 MB",
    "wide.policy": "the memory limit of 500 MB",
    "vast.policy": "the memory limit of 500 MB",
}
"""Of every bomb a part of what is said."""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    write_bombs(folder)
    command = [sys.executable, "-c", READ, str(folder), str(LIMIT)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    for path in folder.iterdir():
        path.unlink()
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {name for name, *_ in told} == {*SAYS}
    return folder, told


def test_every_bomb_is_refused_in_one_line(found):
    folder, told = found
    for name, way, said, *_ in told:
        assert said.startswith(f"{folder / name}: "), (name, way, said)
        assert said.isprintable(), (name, way)
        assert SAYS[name] in said, (name, way, said)


def test_no_bomb_takes_the_memory(found):
    over = [(name, way, peak) for name, way, _, peak, _ in found[1] if peak > LIMIT]
    assert not over


def test_every_bomb_is_refused_soon(found):
    late = [(name, way, seconds) for name, way, _, _, seconds in found[1] if seconds > SOON]
    assert not late


@pytest.mark.parametrize("command", ["fit", "diagnose", "track", "report", "compare", "convert"])
def test_every_command_takes_the_limit(command, tmp_path):
    log = tmp_path / "log.csv.gz"
    log.write_bytes(gzip.compress(b"round,chosen,x\n") + 100 * gzip.compress(b"1,0,0\n" * 1_000_000))
    out = [str(tmp_path / "out.parquet")] if command == "convert" else []
    line = [sys.executable, "-m", "onlooker", command, str(log), *out, "--memory-limit", "500MB"]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "beyond any ordinary log" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv.gz"]
