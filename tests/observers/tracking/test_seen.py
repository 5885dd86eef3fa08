"""Rounds that come again are recognised or refused, and what is kept for that stays small."""

import json

import numpy as np
import pytest

from onlooker import BanditLog, Environment, InputError, LinTS, simulate
from onlooker.logs.categories import Encoding
from onlooker.observers.tracking.recognition import Rounds, Run, look
from onlooker.observers.tracking.seen import LOGS, RECENT, SAMPLE, Seen

N = 2600


def random_ids(n):
    return np.array([f"{one:016x}" for one in np.random.default_rng(0).integers(0, 2**62, n)])


KINDS = {
    "no ids": (None, None),
    "numbers": (np.arange(N) * 3, None),
    "fractions": (np.arange(N) / 4 - 100, None),
    "text with numbers": (np.array([f"r{t}" for t in range(N)], dtype=object), None),
    "moments": (np.datetime64("2024-01-01", "s") + np.arange(N), None),
    "random ids": (random_ids(N), None),
    "random ids and times": (random_ids(N), np.datetime64("2024-01-01", "s") + np.arange(N) // 10),
    "times": (None, np.arange(N) // 7),
}
ORDERED = [kind for kind in KINDS if kind not in {"no ids", "random ids"}]


def played(n_rounds=N):
    return simulate(Environment(3, 5, seed=1), LinTS(), n_rounds, seed=1).log


@pytest.fixture(scope="module", params=KINDS)
def log(request):
    ids, times = KINDS[request.param]
    rounds = played()
    return request.param, BanditLog(rounds.features, rounds.offsets, rounds.chosen, round_ids=ids, times=times)


def following(*logs):
    seen = Seen()
    for one in logs:
        seen = seen.after(Rounds.of(one))
    return Seen.from_dict(json.loads(json.dumps(seen.to_dict())))


def known(seen, log):
    return look(log, None, seen).known


def test_what_was_followed_is_recognised(log):
    _, rounds = log
    seen = following(rounds[:1000], rounds[1000:1300], rounds[1300:1500])
    for start, stop, expected in (
        (0, 2000, 1500),
        (0, 1500, 1500),
        (0, 1000, 1000),
        (0, 1300, 1300),
        (1000, 1300, 300),
        (1000, 1500, 500),
        (1300, 1500, 200),
        (1300, 1900, 200),
        (1450, 1460, 10),
        (1499, 1600, 1),
        (700, 1700, 800),
        (1500, 1900, 0),
        (2000, 2100, 0),
        (3, 3, 0),
    ):
        assert known(seen, rounds[start:stop]) == expected, (start, stop)


def test_what_is_old_and_not_recognised_is_refused(log):
    _, rounds = log
    seen = following(rounds[:1000], rounds[1000:1500])
    for start, stop in ((100, 300), (0, 999), (200, 1400)):
        with pytest.raises(InputError, match="repeated='follow'"):
            known(seen, rounds[start:stop])


def test_a_log_that_was_changed_is_refused(log):
    _, rounds = log
    seen = following(rounds[:700], rounds[700:1500])
    features = rounds.features.copy()
    features[0] += 1.0
    parts = {"round_ids": rounds.round_ids, "times": rounds.times}
    with pytest.raises(InputError, match="other rounds before it"):
        known(seen, BanditLog(features, rounds.offsets, rounds.chosen, **parts))
    with pytest.raises(InputError, match="other rounds before it"):
        known(following(rounds[5:1500]), rounds)


@pytest.mark.parametrize("log", ORDERED, indirect=True)
def test_a_day_out_of_order_is_refused(log):
    kind, rounds = log
    seen = following(rounds[:1000], rounds[1500:2000])
    with pytest.raises(InputError, match=r"500 rounds of (id|time) below"):
        known(seen, rounds[1000:1500])
    shuffled = rounds[np.random.default_rng(1).permutation(np.arange(2000, 2500))]
    with pytest.raises(InputError, match="that fall, though they have risen"):
        known(seen, shuffled)
    if kind == "times":
        # Rounds of the same moment are new.
        assert known(following(rounds[:1001]), rounds[1001:]) == 0


def test_rounds_of_one_day_that_come_again_are_refused():
    rounds = played(1500)
    days = BanditLog(rounds.features, rounds.offsets, rounds.chosen, times=np.arange(1500) // 100)
    seen = following(days[:1390])
    assert known(seen, days[1390:]) == 0
    with pytest.raises(InputError, match="followed before, but not in this place"):
        known(seen, days[1300:1380][np.r_[40:80, 0:40]])


def test_ids_that_begin_again_in_every_log_are_refused_unless_times_go_on():
    rounds, ids = played(), np.arange(1000)

    def day(start, n, times=None):
        part = rounds[start : start + n]
        return BanditLog(part.features, part.offsets, part.chosen, round_ids=ids[:n], times=times)

    for n in (1000, 300):
        with pytest.raises(InputError, match="begin again in every log"):
            known(following(day(0, 900)), day(1000, n))
    seen = following(day(0, 900, times=np.arange(900)))
    assert known(seen, day(1000, 500, times=np.arange(900, 1400))) == 0
    # Too few to have an order, but the same id stands for another round.
    with pytest.raises(InputError, match="a round of its id was followed before"):
        known(following(day(0, 5)), day(5, 5))


@pytest.mark.parametrize("share", [0.5, 0.99])
def test_rounds_that_are_often_the_same_are_not_taken_for_old_ones(share):
    rng = np.random.default_rng(3)
    rounds = BanditLog.from_dense(np.tile(np.eye(3)[None], (4000, 1, 1)), (rng.random(4000) < share).astype(int))
    seen = following(rounds[:1000], rounds[1000:1500])
    assert known(seen, rounds) == 1500
    assert known(seen, rounds[1500:3000]) == 0
    with pytest.raises(InputError, match="may be new"):
        known(seen, rounds[1499:1500])


def test_features_in_another_order_or_precision_are_the_same_rounds():
    rounds = played(300)
    exact = rounds.with_features(rounds.features.astype(np.float64), ["a", "b", "c"])
    turned = exact.with_features(exact.features[:, [2, 0, 1]], ["c", "a", "b"])
    for log in (exact, turned):
        assert look(log, Encoding(("a", "b", "c"), {}), following(rounds)).known == 300


def test_logs_with_and_without_ids_are_not_compared():
    rounds = played(300)
    numbered = BanditLog(rounds.features, rounds.offsets, rounds.chosen, round_ids=np.arange(300))
    with pytest.raises(InputError, match="have ids, but none of those followed last has"):
        known(following(rounds), numbered)
    with pytest.raises(InputError, match="have no ids, but those followed last have"):
        known(following(numbered), rounds)
    # Followed all the same, the last ones count.
    assert known(following(rounds, numbered), numbered) == 300
    assert known(following(numbered, rounds), rounds) == 300


def test_what_is_kept_does_not_grow():
    rounds = played()
    numbered = BanditLog(rounds.features, rounds.offsets, rounds.chosen, round_ids=random_ids(N))
    seen = following(*(numbered[t : t + 1] for t in range(600)), numbered[600:])
    assert (len(seen.logs), len(seen.recent), len(seen.names), len(seen.sample)) == (LOGS, RECENT, RECENT, SAMPLE)
    assert seen.n_rounds == N
    assert len(json.dumps(seen.to_dict())) < 35_000
    assert known(seen, numbered) == N
    assert known(seen, numbered[590:]) == N - 590


def test_text_is_ordered_by_the_numbers_in_it():
    assert Run.of(np.array(["a-2-x", "a-10-x", "b-1-x"])).falls == 0
    assert Run.of(np.array(["2024-01-09T10:00", "2024-01-10T09:00"])).falls == 0
    assert Run.of(np.array(["9" * 5000, "1" + "0" * 5000])).falls == 0
    assert Run.of(np.array([1.0, np.nan])) is None
    assert Run.of(np.array([None, "a"], dtype=object)) is None
    assert Run.of(np.array([3])).then(Run.of(np.array(["r4"]))).falls == 1


def test_parts_are_looked_through_like_the_whole():
    rounds = played()
    seen = following(rounds[:1500])

    class Listed:
        feature_names, n_features, categories = None, 3, None

        def run(self, task, start=0, stop=None):
            assert (start, stop) == (0, None)
            return (task(rounds[at : at + 300], at) for at in range(0, N, 300))

    assert known(seen, Listed()) == 1500
