"""`scripts/kill_reproduce.py`, on a small scale; and that it would notice."""

import os
import re
import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups and signals of POSIX systems")

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "kill_reproduce.py"), run_name="kill_reproduce")
WHOLE = {"cells/a.json": b"[1]", "cells/b.json": b"[2]", "results.csv": b"1,2\n"}


@pytest.mark.slow
def test_kills_cost_no_finished_cell(tmp_path):
    # These moments: as the fourth file is written, and after one more cell. Where that cell was the last, or files come
    # and go between two looks, the run is over before it is killed, and the next one gets the kill.
    line = SCRIPT["check"](
        tmp_path, kills=2, seed=38, options=("--seeds", "6", "--workers", "1", "--figure", "appendixA")
    )
    assert re.match(r"2 kills \(seed 38\) of \d reproductions of 6 cells", line)
    assert "no finished cell lost, written again or doubled" in line


@pytest.fixture
def run(tmp_path):
    """A run that has one finished cell, which was seen."""
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "a.json").write_bytes(b"[1]")
    found = SCRIPT["Run"](tmp_path, ())
    found.check(WHOLE)
    return found


def test_more_cells_a_lock_and_half_a_file_are_no_fault(run):
    for name, content in {"b.json": b"[2]", ".c.json.0123456789abcdef.part": b"["}.items():
        (run.folder / "cells" / name).write_bytes(content)
    (run.folder / "run.lock").write_bytes(b"7")
    run.check(WHOLE)
    assert run.cells.keys() == {"a.json", "b.json"}
    assert len(run.halves()) == 1


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("cells/a.json", None, "are lost"),
        ("cells/a.json", b"[1]", "were written again"),
        ("cells/a-2.json", b"[1]", "not at all"),
        ("cells/b.json", b"[", "leaves otherwise"),
        ("results.csv", b"1,", "leaves otherwise"),
    ],
)
def test_a_fault_is_noticed(run, name, content, fault):
    path = run.folder / name
    path.unlink(missing_ok=True)
    if content is not None:
        # Under a name of its own first, so that the system cannot give the old file's number again.
        (run.folder / ".other").write_bytes(b"")
        path.write_bytes(content)
    with pytest.raises(SystemExit, match=fault):
        run.check(WHOLE)


def test_files_that_differ_are_noticed():
    SCRIPT["compare"](WHOLE, dict(WHOLE))
    for other in ({}, {**WHOLE, "more": b""}, {**WHOLE, "results.csv": b""}):
        with pytest.raises(SystemExit, match="files that differ"):
            SCRIPT["compare"](other, WHOLE)
