"""A log in parts gives what the same log gives in one piece."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from onlooker.errors import InputError
from onlooker.even_sample import EvenSample
from onlooker.formats.scan import joined
from onlooker.log import BanditLog
from onlooker.newton import minimise
from onlooker.objective import FAIR, FINE, Pass
from onlooker.parted import PartedObjective, RunPass
from onlooker.softmax import SoftmaxObjective
from onlooker.survey import survey
from strategies import assert_equal_logs


class ListParts:
    """Logs in memory as the parts of one; tasks and results are pickled, as on their way to another machine."""

    def __init__(self, logs):
        self.logs = list(logs)
        self.feature_names, self.n_features = self.logs[0].feature_names, self.logs[0].n_features
        self.categories = self.logs[0].categories

    def run(self, task, start=0, stop=None):
        first = 0
        for log in self.logs:
            begin = max(start - first, 0)
            end = log.n_rounds if stop is None else min(stop - first, log.n_rounds)
            if begin < end:
                copy = pickle.loads(pickle.dumps(task))
                yield pickle.loads(pickle.dumps(copy(log[begin:end], first + begin)))
            first += log.n_rounds


def random_log(seed, rounds=400, d=3, most_arms=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, most_arms, rounds)
    offsets = np.cumsum([0, *sizes])
    features = rng.normal(size=(offsets[-1], d)).astype(dtype)
    scores = features @ np.arange(1, d + 1) + rng.gumbel(size=len(features))
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    return BanditLog(features, offsets, chosen)


def cut(log, rng, parts):
    edges = [0, *sorted(rng.choice(np.arange(1, log.n_rounds), parts - 1, replace=False).tolist()), log.n_rounds]
    return ListParts([log[a:b] for a, b in pairwise(edges)])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_pass_equals_that_of_the_whole(seed, dtype):
    rng = np.random.default_rng(seed)
    log = random_log(seed, dtype=dtype)
    parts = cut(log, rng, int(rng.integers(1, 60)))
    start = int(rng.integers(0, 300))
    whole = SoftmaxObjective(log[start:], l2=1e-3)
    parted = PartedObjective(parts, start=start, l2=1e-3, survey=survey(parts))
    assert (parted.n_rounds, parted.total, parted.n_one_arm) == (whole.n_rounds, whole.total, whole.n_one_arm)
    np.testing.assert_allclose(parted.null_loss, whole.null_loss, rtol=1e-13)
    theta = rng.normal(size=3)
    for share in (None, FINE, FAIR):
        for width in (0, 1, 4, 40):
            wanted = Pass(theta=theta, share=share, width=width, mean=rng.normal(size=3) if width else None)
            mine, expected = parted.run(wanted), whole.run(wanted)
            for name in ("loss", "gradient", "upper"):
                np.testing.assert_allclose(getattr(mine, name), getattr(expected, name), rtol=1e-11, atol=1e-11)
            assert (mine.explained, mine.agreed) == (expected.explained, expected.agreed)
            if width:
                np.testing.assert_allclose(mine.windows.products(), expected.windows.products(), rtol=1e-10)
    np.testing.assert_allclose(parted.spread(full=True), whole.spread(full=True), rtol=1e-10)
    np.testing.assert_allclose(parted.unpenalised().spread(full=True), whole.spread(full=True), rtol=1e-10)
    assert (parted.rounding() >= whole.rounding()).all()
    np.testing.assert_allclose(minimise(parted).at.theta, minimise(whole).at.theta, atol=1e-6)


def test_parts_without_a_choice():
    lone = BanditLog.from_dense(np.ones((5, 1, 3)), chosen=[0] * 5)
    log = random_log(0, rounds=100)
    parts = ListParts([lone, log[:50], lone, log[50:], lone])
    whole = SoftmaxObjective(joined(parts.logs), l2=0.1)
    parted = PartedObjective(parts, start=0, l2=0.1, survey=survey(parts))
    wanted = Pass(theta=np.ones(3), share=FINE, width=7, mean=np.zeros(3))
    mine, expected = parted.run(wanted), whole.run(wanted)
    np.testing.assert_allclose(mine.gradient, expected.gradient)
    np.testing.assert_allclose(mine.windows.products(), expected.windows.products())
    assert parted.n_one_arm == whole.n_one_arm
    with pytest.raises(InputError, match="nothing to imitate"):
        PartedObjective(parts, start=112, l2=0.1, survey=survey(parts))


def test_a_task_gives_the_same_bits_wherever_it_runs():
    log = random_log(1)
    task = RunPass(Pass(theta=np.ones(3), share=FINE))
    mine, other = task(log, 0), pickle.loads(pickle.dumps(task))(pickle.loads(pickle.dumps(log)), 0)
    assert mine.loss == other.loss
    assert np.array_equal(mine.upper, other.upper)


@pytest.mark.parametrize("seed", range(8))
def test_the_sample_is_every_so_many_rounds(seed):
    rng = np.random.default_rng(seed)
    log = random_log(seed)
    parts = cut(log, rng, int(rng.integers(1, 60)))
    n_bytes = int(rng.integers(10, 2 * log.features.nbytes))
    sent = int(rng.choice([1, 2, 4]))
    found = survey(parts, n_bytes, stride=sent)
    assert_equal_logs(found.sample, log[:: found.stride])
    assert found.sample.features.nbytes <= n_bytes
    if found.stride > sent:
        assert log[:: found.stride // 2].features.nbytes > n_bytes
    np.testing.assert_array_equal(found.largest, np.abs(log.features).max(axis=0))
    assert (found.n_rounds, found.dtype) == (log.n_rounds, log.features.dtype)
    for start in (0, 1, found.stride, 137, log.n_rounds):
        expected = [t for t in range(0, log.n_rounds, found.stride) if t >= start]
        assert_equal_logs(found.sample_after(start), log[expected])


def test_a_sample_of_one_vast_round_and_of_mixed_precision():
    vast = BanditLog.from_dense(np.ones((1, 100, 2)), chosen=[5])
    assert survey(ListParts([vast]), n_bytes=10).sample.n_rounds == 1
    small, wide = random_log(2, 30, dtype=np.float32), random_log(3, 30)
    found = survey(ListParts([small, wide]))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.sample.features[len(small.features) :], wide.features)


def test_thinning_frees_what_it_drops():
    sample = EvenSample(n_bytes=480)
    log = random_log(4, rounds=4000)
    for first in range(0, 4000, 100):
        sample.add(log[first : first + 100], first)
    assert_equal_logs(sample.log(), log[:: sample.stride])
    assert sample.log().features.size > 15


def test_no_parts():
    empty = ListParts([random_log(0)[:0]])
    with pytest.raises(InputError, match="no rounds"):
        survey(empty)
