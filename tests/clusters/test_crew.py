"""Workers die, come late or never: what becomes of the jobs, with a cluster that is only played."""

import pickle
from importlib.metadata import version

import pytest

from onlooker.base.errors import ClusterError
from onlooker.clusters import pool as crews
from onlooker.clusters.actor import Actor
from onlooker.clusters.messages import Answered, Call, Hired, Lost
from onlooker.clusters.pool import Job, Pool

OURS = version("onlooker")


class PlayedCluster:
    """Workers in this process. `script` says what becomes of a request in place of the usual."""

    def __init__(self, script=lambda _request: None):
        self.script, self.hosts, self.events, self.requests = script, {}, [], []

    def send(self, requests):
        for request in requests:
            self.requests.append(request)
            place = request.slot, request.life
            event = self.script(request)
            if event == "nothing":
                continue
            if event is None and isinstance(request, Call):
                event = Answered(*place, request.number, self.hosts[place].call(request.payload))
            elif event is None:
                self.hosts[place] = Actor(request.maker, ".")
                event = Hired(*place, OURS)
            self.events.append(event)

    def receive(self, seconds):  # noqa: ARG002  time does not pass here
        return self.events.pop(0) if self.events else None

    def calls(self):
        return [
            (request.slot, *pickle.loads(request.payload)) for request in self.requests if isinstance(request, Call)
        ]


def lost(request):
    return Lost(request.slot, request.life, "signal 9")


def double(number):
    return 2 * number


def run(cluster, numbers=range(6), homes=None, workers=2, seconds=60.0):
    crew = Pool(cluster, pickle.dumps(double), workers, homes or {})
    return {done.job.key: done.answer for done in crew.run([Job(n, (n,)) for n in numbers], seconds)}


def results(found):
    return {key: answer.result for key, answer in found.items()}


def test_every_job_is_done_once():
    cluster = PlayedCluster()
    assert results(run(cluster)) == {n: 2 * n for n in range(6)}
    assert sorted(number for _, number in cluster.calls()) == list(range(6))


def test_a_job_stays_where_its_home_is():
    cluster = PlayedCluster()
    crew = Pool(cluster, pickle.dumps(double), 3, {n: n % 3 for n in range(9)})
    for _ in range(4):
        list(crew.run([Job(n, (n,)) for n in range(9)], 60.0))
    assert len(cluster.calls()) == 36
    assert all(slot == number % 3 for slot, number in cluster.calls())


@pytest.mark.parametrize("victim", range(6))
def test_a_dead_workers_job_is_done_again_and_nothing_else(victim):
    killed = []

    def script(request):
        if isinstance(request, Call) and pickle.loads(request.payload) == (victim,) and not killed:
            killed.append(request)
            return lost(request)
        return None

    cluster = PlayedCluster(script)
    assert results(run(cluster, homes={n: n % 2 for n in range(6)})) == {n: 2 * n for n in range(6)}
    assert sorted(number for _, number in cluster.calls()) == sorted([*range(6), victim])
    assert max(request.life for request in cluster.requests) == 1


def test_a_job_that_kills_its_workers_fails_and_the_others_do_not():
    cluster = PlayedCluster(
        lambda request: lost(request) if isinstance(request, Call) and pickle.loads(request.payload) == (3,) else None
    )
    found = run(cluster)
    assert found.pop(3).error == "its worker died 3 times, perhaps for lack of memory (signal 9)"
    assert results(found) == {n: 2 * n for n in (0, 1, 2, 4, 5)}


def test_the_work_of_one_that_does_not_start_is_done_by_others(monkeypatch):
    monkeypatch.setattr(crews, "PATIENCE", 0.05)
    cluster = PlayedCluster(lambda request: "nothing" if request.slot == 1 else None)
    assert results(run(cluster, homes={n: n % 2 for n in range(6)})) == {n: 2 * n for n in range(6)}
    assert {slot for slot, _ in cluster.calls()} == {0}


def test_none_starts(monkeypatch):
    monkeypatch.setattr(crews, "PATIENCE", 0.05)
    with pytest.raises(ClusterError, match=r"none of 2 workers .* the cluster may have no free core"):
        run(PlayedCluster(lambda _: "nothing"))


def test_all_die_at_birth():
    cluster = PlayedCluster(lost)
    with pytest.raises(ClusterError, match=r"none of 2 workers is left and none could be started \(signal 9\)"):
        run(cluster)
    assert len(cluster.requests) == 2 * crews.DEATHS


def test_a_deadline_is_kept():
    cluster = PlayedCluster(lambda request: "nothing" if isinstance(request, Call) else None)
    with pytest.raises(ClusterError, match=r"did not finish within 0\.05 s"):
        run(cluster, seconds=0.05)


def test_another_version_is_refused():
    with pytest.raises(ClusterError, match=r"workers have onlooker 0\.0\.7, this is .*: install the same"):
        run(PlayedCluster(lambda request: Hired(request.slot, request.life, "0.0.7")))


def test_what_is_left_of_an_abandoned_run_is_not_taken_for_the_next():
    cluster = PlayedCluster()
    crew = Pool(cluster, pickle.dumps(double), 2)
    first = crew.run([Job(n, (100 + n,)) for n in range(6)], 60.0)
    next(first)
    first.close()
    again = {done.job.key: done.answer.result for done in crew.run([Job(n, (n,)) for n in range(6)], 60.0)}
    assert again == {n: 2 * n for n in range(6)}


def test_what_a_job_raises_is_its_answer():
    found = run(PlayedCluster(), numbers=["a", None])
    assert found["a"].result == "aa"
    assert found[None].error.startswith("TypeError: unsupported operand")
    assert "in double" in found[None].details
