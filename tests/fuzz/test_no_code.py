"""Reading runs no code: nothing that is read is unpickled or evaluated."""

import ast
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import onlooker
from onlooker import InputError, LinearPolicy, TrackingObserver, read_log
from onlooker.experiments.ledger import Job, Ledger

SOURCE = Path(onlooker.__file__).parent
OWN_PROCESSES = "between a run and the processes that it started, or a cluster that its user named"
ALLOWED = {
    "clusters/pool.py": OWN_PROCESSES,
    "clusters/driver.py": OWN_PROCESSES,
    "clusters/actor.py": OWN_PROCESSES,
    "clusters/link.py": OWN_PROCESSES,
    "clusters/part_store.py": OWN_PROCESSES,
    "experiments/cluster_workers.py": OWN_PROCESSES,
    "experiments/workers.py": OWN_PROCESSES,
    "kernels/cached_njit.py": "code that numba compiled, beside its source or where numba is told to",
}
"""Modules that may pickle, and why; none of them opens a file that a user names."""
PICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
CODE = {"eval", "exec", "compile", "__import__"}


class Attack:
    """Unpickled, it leaves a file behind."""

    def __init__(self, path):
        self._path = str(path)

    def __reduce__(self):
        return os.mkdir, (self._path,)


@pytest.fixture
def trap(tmp_path):
    return tmp_path / "trap"


def test_the_attack_would_work(trap):
    pickle.loads(pickle.dumps(Attack(trap)))
    assert trap.exists()


def test_arrays_of_objects_are_refused(tmp_path, trap):
    arrays = {"action": np.array([0, 1]), "action_context": np.eye(2), "round_ids": np.array([Attack(trap)], object)}
    np.savez(tmp_path / "log.npz", **arrays)
    with pytest.raises(InputError, match=r"log\.npz: cannot be read as arrays \(Object arrays cannot be loaded"):
        read_log(tmp_path / "log.npz")
    assert not trap.exists()


def test_a_pickle_in_an_archive_is_refused(tmp_path, trap):
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        archive.writestr("action.npy", pickle.dumps(Attack(trap)))
        archive.writestr("action_context.npy", b"\x93NUMPY\x01\x00")
    with pytest.raises(InputError, match=r"log\.npz: "):
        read_log(tmp_path / "log.npz")
    (tmp_path / "log.npz").write_bytes(pickle.dumps(Attack(trap)))
    with pytest.raises(InputError, match=r"log\.npz: cannot be read as arrays"):
        read_log(tmp_path / "log.npz")
    assert not trap.exists()


def test_a_header_that_is_an_expression_is_refused(tmp_path, trap):
    header = f"__import__('os').mkdir({str(trap)!r})".ljust(118).encode() + b"\n"
    file = io.BytesIO()
    np.lib.format.write_array(file, np.arange(2))
    whole = file.getvalue()
    with zipfile.ZipFile(tmp_path / "log.npz", "w") as archive:
        archive.writestr("action.npy", whole[:8] + len(header).to_bytes(2, "little") + header + whole[-16:])
    with pytest.raises(InputError, match=r"log\.npz: "):
        read_log(tmp_path / "log.npz")
    assert not trap.exists()


def _cell(path):
    return Ledger(path.parent.parent).read(Job(path.stem, "{}"))


@pytest.mark.parametrize("load", [LinearPolicy.load, TrackingObserver.load, _cell])
def test_saved_files_are_only_ever_json(tmp_path, trap, load):
    path = tmp_path / "cells" / "saved.json"
    path.parent.mkdir()
    for content in (pickle.dumps(Attack(trap)), f"__import__('os').mkdir({str(trap)!r})".encode()):
        path.write_bytes(content)
        with pytest.raises((InputError, UserWarning), match=r"saved\.json: "):
            load(path)
    hostile = {
        "schema": "onlooker.policy/1",
        "theta": [1.0],
        "feature_names": [f"__import__('os').mkdir({str(trap)!r})"],
    }
    path.write_text(json.dumps(hostile))
    assert LinearPolicy.load(path).theta.tolist() == [1.0]
    assert not trap.exists()


def test_no_reader_can_run_code():
    found = {}
    for path in SOURCE.rglob("*.py"):
        used = sorted({*_dangerous(ast.parse(path.read_text(encoding="utf-8")))})
        if used:
            found[str(path.relative_to(SOURCE))] = used
    assert {name: used for name, used in found.items() if name not in ALLOWED} == {}
    assert all(set(used) <= PICKLES for used in found.values())


def _dangerous(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in PICKLES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PICKLES:
            yield node.module
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CODE:
                yield node.func.id
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            allowed = [one.value for one in node.keywords if one.arg == "allow_pickle"]
            if any(not (isinstance(one, ast.Constant) and one.value is False) for one in allowed):
                yield "allow_pickle"
            if (
                called == "load"
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "np"
                and not allowed
            ):
                yield "np.load"


def test_the_search_finds_what_it_looks_for():
    source = "import pickle\nfrom dill import loads\neval('1')\nnp.load(path)\nnp.load(path, allow_pickle=True)\n"
    assert sorted(_dangerous(ast.parse(source))) == ["allow_pickle", "dill", "eval", "np.load", "pickle"]
