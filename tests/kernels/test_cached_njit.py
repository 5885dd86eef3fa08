"""Compiled code on disk: never another signature's, an older source's, or half."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
from numba.core import caching

from onlooker.base.errors import InputError
from onlooker.base.threads import preparation
from onlooker.kernels import cached_njit as module
from onlooker.kernels.cached_njit import KernelFiles, cached_njit, sources


def double(values):
    return values * 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def kernel_files(folder):
    return sorted(folder.rglob("*.nbc"))


def test_the_second_process_loads(folder):
    first, second = cached_njit()(double), cached_njit()(double)
    assert first(2.0) == second(2.0) == 4.0
    assert len(kernel_files(folder)) == 1
    assert sum(first.stats.cache_misses.values()) == sum(second.stats.cache_hits.values()) == 1
    assert not second.stats.cache_misses


def test_a_file_per_signature(folder):
    one = cached_njit()(double)
    frozen = np.ones(2)
    frozen.setflags(write=False)
    for values in (1, 1.0, np.ones(2), np.ones(2, np.float32), frozen, np.ones((2, 2)), np.ones((2, 4))[:, ::2]):
        one(values)
    assert len(kernel_files(folder)) == 7
    other = cached_njit()(double)
    np.testing.assert_array_equal(other(np.ones(2, np.float32)), np.full(2, 2, np.float32))
    assert not other.stats.cache_misses


def test_signatures_kept_at_the_same_moment_are_not_mixed_up(tmp_path):
    start = threading.Barrier(2)

    def keep(turn, key):
        start.wait()
        KernelFiles(tmp_path / f"f{turn}", "source").save(key, f"code of {key}")

    with ThreadPoolExecutor(2) as pool:
        for turn in range(100):
            list(pool.map(keep, (turn, turn), ("one", "two")))
            files = KernelFiles(tmp_path / f"f{turn}", "source")
            assert [files.load(key) for key in ("one", "two")] == ["code of one", "code of two"]


def damages(whole):
    for part in (0.0, 0.3, 0.9, 1.0):
        end = int(len(whole) * part)
        yield whole[:end]
        yield whole[:end] + bytes(len(whole) - end)
        # A hole, as of a block that never reached the disk.
        yield whole[:end] + bytes(16) + whole[end + 16 :]


def test_a_damaged_file_is_compiled_anew(folder):
    cached_njit()(double)(2.0)
    (path,) = kernel_files(folder)
    whole = path.read_bytes()
    for damaged in damages(whole):
        path.write_bytes(damaged)
        again = cached_njit()(double)
        assert again(2.0) == 4.0
        assert len(again.stats.cache_misses) == (damaged != whole)
        assert cached_njit()(double)(2.0) == 4.0


def test_another_key_or_source_under_the_same_name_is_not_taken(tmp_path, monkeypatch):
    files = KernelFiles(tmp_path / "f", "source")
    files.save("key", "code")
    monkeypatch.setattr(KernelFiles, "_path", lambda *_: next(tmp_path.iterdir()))
    assert files.load("key") == "code"
    assert files.load("other") is None
    assert KernelFiles(tmp_path / "f", "edited").load("key") is None


def test_a_file_that_names_what_is_gone_is_not_taken(tmp_path, monkeypatch):
    files = KernelFiles(tmp_path / "f", "source")
    monkeypatch.setattr(module, "Gone", type("Gone", (), {"__module__": module.__name__}), raising=False)
    files.save("key", module.Gone)
    assert files.load("key") is module.Gone
    monkeypatch.delattr(module, "Gone")
    assert files.load("key") is None


def test_an_edit_of_any_kernel_counts(folder, monkeypatch):
    (folder / "a.py").write_text("1")
    (folder / "b.py").write_text("2")
    seen = {sources(folder)}
    (folder / "b.py").write_text("3")
    seen.add(sources(folder))
    (folder / "c.py").write_text("")
    seen.add(sources(folder))
    (folder / ".#c.py").symlink_to("nowhere")
    seen.add(sources(folder))
    assert len(seen) == 3

    cached_njit()(double)(2.0)
    monkeypatch.setattr(module, "_FOLDER", folder)
    monkeypatch.setattr(module, "_KERNELS", sources(folder))
    edited = cached_njit()(double)
    edited(2.0)
    assert sum(edited.stats.cache_misses.values()) == 1


def test_what_was_edited_meanwhile_is_not_kept(folder, monkeypatch):
    one = cached_njit()(double)
    monkeypatch.setattr(module, "_FOLDER", folder)
    assert one(2.0) == 4.0
    assert not kernel_files(folder)


def test_sources_that_are_not_files(folder, monkeypatch):
    assert sources(folder) == ""
    monkeypatch.setattr(module, "_KERNELS", "")
    assert cached_njit()(double)(2.0) == 4.0
    assert not kernel_files(folder)


def test_a_full_disk_stops_nobody(folder, monkeypatch):
    def refuse(path, _content):
        raise InputError(f"{path}: cannot be written")

    monkeypatch.setattr(module, "write_bytes", refuse)
    assert cached_njit()(double)(2.0) == 4.0
    assert not kernel_files(folder)


def test_no_folder_to_write_to(monkeypatch):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    one = cached_njit()(double)
    assert one(2.0) == 4.0
    assert one.stats.cache_path is None


def test_flush(folder):
    one = cached_njit()(double)
    one(2.0)
    one._cache.flush()
    assert not kernel_files(folder)


SCALE = """
import json, sys, time
from pathlib import Path
import numpy as np
from onlooker.kernels.learning import scale_rows
Path(sys.argv[2]).touch()
while len(list(Path(sys.argv[2]).parent.iterdir())) < int(sys.argv[3]):
    time.sleep(0.001)
rows = np.full((2, 4), 2, sys.argv[1])
scale_rows(rows)
print(json.dumps([rows.tolist(), len(scale_rows.stats.cache_misses)]))
"""


def test_processes_that_begin_together(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    (tmp_path / "ready").mkdir()

    def start(dtype, name, wait_for):
        command = [sys.executable, "-c", SCALE, dtype, str(tmp_path / "ready" / name), str(wait_for)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)

    halves = [[0.5] * 4] * 2
    together = [start(dtype, dtype, 2) for dtype in ("float32", "float64")]
    assert [json.loads(process.communicate()[0]) for process in together] == [[halves, 1]] * 2
    for dtype in ("float32", "float64"):
        assert json.loads(start(dtype, f"{dtype} again", 0).communicate()[0]) == [halves, 0]


def test_time_for_loading_and_compiling_is_counted_once_and_apart(folder):  # noqa: ARG001  an empty cache
    def outer(values):
        return inner(values) + 1

    before, compiled = preparation.seconds, preparation.compiled
    inner = cached_njit()(double)
    started = time.perf_counter()
    assert cached_njit()(outer)(2.0) == 5.0
    took = preparation.seconds - before
    assert 0 < took <= time.perf_counter() - started
    assert preparation.compiled - compiled == 2
    assert preparation.busy == 0
