import os
import threading
import time

import pytest

from onlooker.base.errors import InputError
from onlooker.base.threads import n_threads, ordered_map


@pytest.mark.parametrize("threads", ["1", "3"])
def test_results_come_in_the_order_of_the_items(monkeypatch, threads):
    monkeypatch.setenv("ONLOOKER_THREADS", threads)

    def late_first(k):
        time.sleep(0.002 * (10 - k % 10))
        return k * k

    assert list(ordered_map(late_first, range(30))) == [k * k for k in range(30)]
    assert list(ordered_map(late_first, [])) == []


@pytest.mark.parametrize("threads", ["1", "3"])
def test_an_error_reaches_the_caller_and_ends_the_work(monkeypatch, threads):
    monkeypatch.setenv("ONLOOKER_THREADS", threads)
    done = []

    def fails_at_five(k):
        if k == 5:
            raise InputError("five")
        done.append(k)
        return k

    found = []
    with pytest.raises(InputError, match="five"):
        found.extend(ordered_map(fails_at_five, range(10_000)))
    assert found == [0, 1, 2, 3, 4]
    assert len(done) < 100


def test_items_are_taken_only_a_little_ahead(monkeypatch):
    monkeypatch.setenv("ONLOOKER_THREADS", "2")
    taken = []

    def items():
        for k in range(1_000):
            taken.append(k)
            yield k

    results = ordered_map(str, items())
    assert next(results) == "0"
    assert len(taken) < 10
    results.close()
    assert len(taken) < 10


def test_threads_run_side_by_side(monkeypatch):
    monkeypatch.setenv("ONLOOKER_THREADS", "2")
    meeting = threading.Barrier(2, timeout=30)
    assert sorted(ordered_map(lambda _: meeting.wait(), range(2))) == [0, 1]


def test_one_thread_is_the_callers_own(monkeypatch):
    monkeypatch.setenv("ONLOOKER_THREADS", "1")
    assert list(ordered_map(lambda _: threading.current_thread(), range(2))) == [threading.current_thread()] * 2


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("ONLOOKER_THREADS", "7")
    assert n_threads() == 7
    monkeypatch.setenv("ONLOOKER_THREADS", "")
    assert 1 <= n_threads() <= os.cpu_count()


@pytest.mark.parametrize("setting", ["0", "-1", "two", "1.5", " 2"])
def test_settings_that_are_no_number_of_threads(monkeypatch, setting):
    monkeypatch.setenv("ONLOOKER_THREADS", setting)
    with pytest.raises(InputError, match=r"ONLOOKER_THREADS is .* whole number of at least 1"):
        n_threads()
