import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from onlooker.base.errors import InputError
from onlooker.base.files import atomic_file, remove_temporaries, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="modes and devices of POSIX systems")


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "one €\n")
    write_text(str(path), "two")
    assert path.read_bytes() == b"two"
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, "old"])
def test_a_failure_leaves_the_old_file_and_no_temporary(tmp_path, error, old):
    path = tmp_path / "a.txt"
    if old:
        path.write_text(old)
    with pytest.raises(error), atomic_file(path) as file:  # noqa: PT012
        file.write(b"half")
        raise error
    assert names_in(tmp_path) == (["a.txt"] if old else [])
    assert not old or path.read_text() == old


def test_nothing_is_seen_before_the_block_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
        assert len(names_in(tmp_path)) == 2
    assert path.read_text() == "new"


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_writers_at_once_do_not_mix(tmp_path):
    path = tmp_path / "a.txt"
    texts = [str(k) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda text: write_text(path, text), texts))
    assert path.read_text() in texts
    assert names_in(tmp_path) == ["a.txt"]


@posix
def test_modes(tmp_path):
    fresh, private = tmp_path / "fresh", tmp_path / "private"
    private.write_text("")
    private.chmod(0o600)
    before = os.umask(0o027)
    try:
        write_text(fresh, "")
        write_text(private, "")
    finally:
        os.umask(before)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


@posix
def test_devices_and_pipes_are_spared(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in (pipe, link):
        with pytest.raises(InputError, match="is a device or a pipe"):
            write_text(path, "x")
    assert names_in(tmp_path) == ["link", "pipe"]


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127])
@pytest.mark.skipif(sys.platform == "win32", reason="names are counted otherwise")
def test_the_longest_names_work(tmp_path, name):
    write_text(tmp_path / name, "x")
    assert names_in(tmp_path) == [name]


def test_targets_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for target, reason in [
        (tmp_path, "is a folder, name a file in it"),
        (tmp_path / "none" / "a", "cannot be written"),
        (tmp_path / "file" / "a", "cannot be written"),
        (tmp_path / ("a" * 300), "cannot be written"),
        (tmp_path / "a\0b", "cannot be written"),
    ]:
        with pytest.raises(InputError, match=reason):
            write_text(target, "x")
    assert names_in(tmp_path) == ["file"]


@posix
def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("")
    path.chmod(0o600)
    with atomic_file(path):
        assert {stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir()} == {0o600}


@posix
def test_links_stay_and_what_is_behind_them_is_replaced(tmp_path):
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "old").write_text("old")
    link, ahead = tmp_path / "link", tmp_path / "ahead"
    link.symlink_to("shelf/old")
    ahead.symlink_to("shelf/new")
    for path in (link, ahead):
        write_text(path, "new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert names_in(shelf) == ["new", "old"]


@posix
def test_a_link_to_itself_is_refused(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(InputError, match=r"loop: cannot be written \(Too many levels"):
        write_text(loop, "x")
    assert loop.is_symlink()


def test_another_name_of_a_file_keeps_what_it_had(tmp_path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("old")
    other.hardlink_to(path)
    write_text(path, "new")
    assert (path.read_text(), other.read_text()) == ("new", "old")


def test_what_a_killed_process_left_is_swept_up_and_nothing_else(tmp_path):
    with atomic_file(tmp_path / "a.txt"):
        left = next(tmp_path.iterdir())
    left.write_text("half")
    others = [".hidden", ".a.part", "a.0123456789abcdef.part", "b.part", "a.txt"]
    for name in others:
        (tmp_path / name).write_text("")
    remove_temporaries(tmp_path)
    assert names_in(tmp_path) == sorted(others)


def test_a_library_may_close_the_file(tmp_path):
    with atomic_file(tmp_path / "a.txt") as file:
        file.write(b"x")
        file.close()
    assert (tmp_path / "a.txt").read_bytes() == b"x"


def test_the_first_error_is_told(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "a.txt"):  # noqa: PT012
        monkeypatch.setattr(os, "close", full)
        monkeypatch.setattr(os, "unlink", full)
        raise KeyboardInterrupt
