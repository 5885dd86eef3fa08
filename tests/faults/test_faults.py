"""Whatever fails while a file is written, and whenever: the old file is there or the new one, never half."""

import errno
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faults.disk import contents, disk, lay
from faults.writers import NEW, OLD, WRITERS
from onlooker import InputError, LinearPolicy, read_log, scan_log
from onlooker.base.files import write_text

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors and signals of POSIX systems")

EACH = pytest.mark.parametrize("name", WRITERS)
ADVICE = {errno.ENOSPC: "free some space there, or name", errno.EIO: "check the disk, or name"}


@pytest.fixture(scope="session")
def versions(tmp_path_factory):
    """What every writer writes when nothing fails: old and new, by name of the file."""
    written = {}
    for name, write in WRITERS.items():
        folders = [tmp_path_factory.mktemp("whole") for _ in (OLD, NEW)]
        for version, folder in enumerate(folders):
            write(folder, version)
        written[name] = [contents(folder) for folder in folders]
    return written


def check_whole(found, old, new):
    """Every file is as it was or as it should be, and none is there that should not be."""
    assert old.keys() <= found.keys() <= new.keys()
    torn = [name for name, content in found.items() if content not in {old.get(name), new[name]}]
    assert not torn


def fail(name, folder, number, reason, **how):
    """Let a call of a writer fail; give the line that tells of it, None where there was no need, and all calls."""
    with disk(reason, number, **how) as found:
        try:
            WRITERS[name](folder, NEW)
        except InputError as error:
            return str(error), found.calls
    return None, found.calls


def check_line(line, folder, reason):
    """One line: where, what, and what to do."""
    assert "\n" not in line
    assert re.match(rf"{re.escape(str(folder))}/\S+: ", line), line
    assert f"({os.strerror(reason)}): " in line
    assert "cannot hold an experiment" in line or ADVICE[reason] in line


def test_versions_differ_and_are_the_same_every_time(versions, tmp_path):
    for name, (old, new) in versions.items():
        assert old.keys() == new.keys()
        assert old != new
        folder = tmp_path / name
        folder.mkdir()
        WRITERS[name](folder, NEW)
        assert contents(folder) == new


@EACH
def test_every_file_comes_by_a_rename(name, versions, tmp_path):
    with disk() as found:
        WRITERS[name](tmp_path, NEW)
    assert {str(path.relative_to(tmp_path)) for path in found.moved} == versions[name][NEW].keys()
    # The content is synced before it is given its name, and the name after that.
    durably = re.findall(r"write fsync close replace open fsync close", " ".join(found.calls))
    assert len(durably) == len(found.moved) == found.calls.count("replace")


@EACH
@pytest.mark.parametrize("before", ["nothing", "old"])
@pytest.mark.parametrize(
    ("reason", "lasting"), [(errno.ENOSPC, True), (errno.EIO, False)], ids=["disk full", "one bad sector"]
)
def test_a_failing_call_leaves_the_old_file_or_the_new_one(name, before, reason, lasting, versions, tmp_path):
    old, new = versions[name] if before == "old" else ({}, versions[name][NEW])
    for number in itertools.count():
        folder = tmp_path / str(number)
        lay(folder, old)
        line, calls = fail(name, folder, number, reason, lasting=lasting)
        check_whole(contents(folder), old, new)
        assert not list(folder.rglob(".*"))
        if line is not None:
            check_line(line, folder, reason)
        else:
            assert contents(folder) == new
            # Nobody needs to make a folder that is there, or to let go of a lock that ends with its holder.
            assert number == len(calls) or name == "experiment"
        if number == len(calls):
            break
    assert number > 5


@pytest.fixture(scope="session")
def killed(tmp_path_factory, versions):
    """Folders that killed processes left behind."""
    place = tmp_path_factory.mktemp("killed")
    for name in WRITERS:
        lay(place / "old" / name, versions[name][OLD])
    here = Path(__file__).parent
    command = [sys.executable, str(here / "killed.py"), str(place)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here.parent), *sys.path]), "ONLOOKER_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, timeout=900)
    return place


@pytest.mark.slow
@EACH
def test_a_kill_leaves_the_old_file_or_the_new_one(name, killed, versions):
    old, new = versions[name]
    halves = 0
    for folder in sorted((killed / name).iterdir()):
        fresh = folder.name.startswith("nothing")
        found = contents(folder)
        # The holder of a lock was killed: the system has let it go.
        found.pop("run/run.lock", None)
        check_whole(found, {} if fresh else old, new)
        halves += any(path.stat().st_size for path in folder.rglob(".*.part"))
    assert halves > 1


@pytest.mark.slow
@EACH
def test_after_a_kill_the_same_command_goes_through(name, killed, versions):
    for folder in sorted((killed / name).iterdir())[::5]:
        WRITERS[name](folder, NEW)
        assert contents(folder) == versions[name][NEW]


def test_what_was_half_written_is_never_read(tmp_path):
    policy = LinearPolicy([1.0, 2.0])
    policy.save(tmp_path / "policy.json")
    half = tmp_path / ".log.csv.0123456789abcdef.part"
    half.write_text("round,chosen,price\n1,1,9\n1,0,")
    assert LinearPolicy.load(tmp_path / "policy.json").theta.tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="no file matches"):
        scan_log(f"{tmp_path}/*.csv*")
    with pytest.raises(InputError, match="0123456789abcdef"):
        read_log(half)


def test_a_folder_that_cannot_be_synced_or_listed_is_no_error(tmp_path, monkeypatch):
    real, calls = os.fsync, []

    def unsupported(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", unsupported)
    write_text(tmp_path / "a.txt", "x")
    assert len(calls) == 2
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    opened = os.open

    def unreadable(path, flags, *mode):
        if Path(path) == shelf:
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", unreadable)
    write_text(shelf / "b.txt", "x")
    assert (shelf / "b.txt").read_text() == "x"
