"""The experiments' tasks on a cluster: the results of this machine's processes, whoever dies on the way."""

import os
import signal
import threading
from functools import partial

import pytest

from onlooker.base.errors import OnlookerError
from onlooker.experiments.cluster_workers import ClusterWorkers
from onlooker.experiments.runner import Task, run_tasks
from runner_tasks import busy, fail, notes, slow

from .conftest import wait_for


@pytest.fixture
def on_cluster(cluster):
    return partial(ClusterWorkers, address=cluster)


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.json")}


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hanging"])
def test_a_lost_worker_costs_its_task_and_nothing_else(tmp_path, on_cluster, blow, monkeypatch):
    monkeypatch.setattr("onlooker.clusters.link.SILENCE", 5.0)
    log = tmp_path / "log.txt"
    tasks = [Task(f"t{n}", {"number": n, "log": str(log), "seconds": 0.4}) for n in range(6)]
    settings = {"schema": 1}

    def kill():
        wait_for(lambda: len(notes(log)) >= 3, 60)
        os.kill(int(notes(log)[-1].split(":")[0]), blow)

    killer = threading.Thread(target=kill)
    killer.start()
    found = run_tasks(slow, tasks, tmp_path / "cluster", settings=settings, workers=2, hire=on_cluster)
    killer.join()
    assert len(notes(log)) in {6, 7}
    assert found == run_tasks(slow, tasks, tmp_path / "here", settings=settings, workers=2)
    assert files_in(tmp_path / "cluster") == files_in(tmp_path / "here")


@pytest.mark.slow
@pytest.mark.parametrize("task", [slow, busy])
def test_a_long_task_is_not_taken_for_a_hanging_one(tmp_path, on_cluster, task, monkeypatch):
    monkeypatch.setattr("onlooker.clusters.link.SILENCE", 5.0)
    log = tmp_path / "log.txt"
    tasks = [Task("t0", {"number": 0, "log": str(log), "seconds": 8.0})]
    run_tasks(task, tasks, tmp_path / "cluster", settings={}, workers=1, hire=on_cluster)
    assert len(notes(log)) == 1


@pytest.mark.slow
def test_what_fails_is_told_and_the_rest_is_kept(tmp_path, on_cluster):
    tasks = [Task(f"t{n}", {"number": n, "bad": [0, 2]}) for n in range(4)]
    with pytest.raises(OnlookerError, match=r"task t0: nothing can be done with 0 \(2 of 4 tasks failed") as caught:
        run_tasks(fail, tasks, tmp_path, settings={}, workers=1, hire=on_cluster)
    assert "ZeroDivisionError" in "".join(caught.value.__notes__)
    assert sorted(path.stem for path in tmp_path.glob("cells/*.json")) == ["t1", "t3"]


def test_nothing_to_do_starts_no_cluster(tmp_path):
    assert run_tasks(fail, [], tmp_path, settings={}, hire=partial(ClusterWorkers, address="127.0.0.1:1")) == {}
