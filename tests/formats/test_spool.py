"""Copies of what is not here: none are left, not even by a process that was killed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onlooker.formats.spool import Spool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the system has no locks of this kind")

KILLED = """
import os, signal, time
from onlooker.formats.spool import Spool
spool = Spool()
with spool.file("s3://bucket/log.csv", "log.csv") as (path, file):
    file.write(b"round")
print(path, flush=True)
time.sleep(60)
"""


def test_a_killed_process_leaves_copies_until_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        copy = Path(running.stdout.readline().strip())
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        while_alive = Spool()
        assert copy.exists(), "another process is at work with it"
        while_alive.close()
        running.send_signal(signal.SIGKILL)
    assert copy.exists()
    after = Spool()
    assert not copy.exists()
    assert after.folder.exists()
    after.close()
    assert not list(tmp_path.iterdir())


def test_other_folders_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "onlooker-notes").mkdir()
    (tmp_path / "onlooker-notes" / "mine.txt").write_text("kept")
    mine = Spool()
    Spool().close()
    assert (tmp_path / "onlooker-notes" / "mine.txt").exists()
    assert mine.folder.exists()
    mine.close()
