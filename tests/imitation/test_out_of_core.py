"""A log in parts gives what the same log gives in one piece."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from onlooker.base.errors import InputError, PenaltyDominatesWarning
from onlooker.diagnosis import diagnose
from onlooker.imitation.burn_in import HeldOut, PowerRule
from onlooker.imitation.newton import minimise
from onlooker.imitation.objective import FAIR, FINE, Pass
from onlooker.imitation.out_of_core import PartedObjective, RunPass, refine_suffixes, suffixes
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.imitation.sweep import burn_in_sweep
from onlooker.logs.log import BanditLog
from onlooker.logs.parts_summary import EvenSample, summarise_parts
from onlooker.observers import SuffixImitation, TrackingObserver
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinTS
from onlooker.simulation.play import simulate
from strategies import assert_equal_logs

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OneArmRoundsWarning")


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
    parted = PartedObjective(parts, start=start, l2=1e-3, summary=summarise_parts(parts))
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
    np.testing.assert_allclose(minimise(parted).theta, minimise(whole).theta, atol=1e-6)


def test_parts_without_a_choice():
    lone = BanditLog.from_dense(np.ones((5, 1, 3)), chosen=[0] * 5)
    log = random_log(0, rounds=100)
    parts = ListParts([lone, log[:50], lone, log[50:], lone])
    whole = SoftmaxObjective(BanditLog.concat(parts.logs), l2=0.1)
    parted = PartedObjective(parts, start=0, l2=0.1, summary=summarise_parts(parts))
    wanted = Pass(theta=np.ones(3), share=FINE, width=7, mean=np.zeros(3))
    mine, expected = parted.run(wanted), whole.run(wanted)
    np.testing.assert_allclose(mine.gradient, expected.gradient)
    np.testing.assert_allclose(mine.windows.products(), expected.windows.products())
    assert parted.n_one_arm == whole.n_one_arm
    with pytest.raises(InputError, match="nothing to imitate"):
        PartedObjective(parts, start=112, l2=0.1, summary=summarise_parts(parts))


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
    found = summarise_parts(parts, n_bytes, stride=sent)
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
    assert summarise_parts(ListParts([vast]), n_bytes=10).sample.n_rounds == 1
    small, wide = random_log(2, 30, dtype=np.float32), random_log(3, 30)
    found = summarise_parts(ListParts([small, wide]))
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
        summarise_parts(empty)


class Tight(ListParts):
    """Parts that do not fit into memory: a sample holds few of their rounds."""

    def __init__(self, logs, sample_bytes=8_000):
        super().__init__(logs)
        self.sample_bytes = sample_bytes


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_of_parts_finds_what_the_whole_gives(seed):
    rng = np.random.default_rng(seed)
    log = random_log(seed, rounds=3000)
    parts = Tight(cut(log, rng, 25).logs)
    assert summarise_parts(parts).stride > 8
    whole, parted = burn_in_sweep(log), burn_in_sweep(parts)
    assert parted.burn_ins.tolist() == whole.burn_ins.tolist()
    np.testing.assert_allclose(parted.thetas, whole.thetas, atol=2e-4)
    np.testing.assert_allclose(parted.losses, whole.losses, atol=1e-7)
    assert np.isnan(burn_in_sweep(parts, [0.5, 1.0]).thetas[1]).all()


def test_a_sweep_that_starts_far_away_halves_its_steps():
    log = random_log(5, rounds=500)
    far = np.full((2, 3), 40.0)
    parts = ListParts([log[:99], log[99:]])
    thetas, losses = refine_suffixes(parts, np.array([0, 150]), far, n_rounds=500, l2=1e-4, tolerance=1e-7)
    for theta, loss, start in zip(thetas, losses, (0, 150), strict=True):
        at = minimise(SoftmaxObjective(log[start:], l2=1e-4))
        np.testing.assert_allclose(theta, at.theta, atol=1e-5)
        np.testing.assert_allclose(loss, at.loss, atol=1e-9)


@pytest.mark.parametrize("l2", [0.0, 1e-4])
@pytest.mark.parametrize("rare", [None, 0.001, 0.02])
def test_the_curvature_of_few_rounds_leads_to_the_minimum_of_all(monkeypatch, rare, l2):
    """Also where a feature is hardly or never among them, and where suffixes prefer the opposite."""
    monkeypatch.setattr(suffixes, "CURVED_ROUNDS_PER_FEATURE", 20)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 5, 4))
    if rare is not None:
        X[..., 3] *= (rng.random(4000) < rare)[:, None]
    utilities = X @ [1.0, -1.0, 0.5, 0.8] * np.where(np.arange(4000) < 2500, -1.0, 1.0)[:, None]
    log = BanditLog.from_dense(X, (utilities + rng.gumbel(size=(4000, 5))).argmax(axis=1))
    looked = []

    class Watched(ListParts):
        def run(self, task, start=0, stop=None):
            looked.append(task.strides)
            return super().run(task, start, stop)

    burn_ins = np.array([0, 100, 2000, 2500, 3900])
    parts = Watched(cut(log, rng, 25).logs)
    start = np.zeros((5, 4))
    thetas, losses = refine_suffixes(parts, burn_ins, start, n_rounds=4000, l2=l2, tolerance=3e-5)
    assert looked[0] == (51, 49, 25, 19, 1)
    assert len(looked) <= 12
    for theta, loss, burn_in in zip(thetas, losses, burn_ins, strict=True):
        objective = SoftmaxObjective(log[burn_in:], l2=l2)
        at = objective.evaluate(theta)
        # A hundred rounds may be without the rare feature at all.
        assert at.gradient @ np.linalg.pinv(at.hessian, hermitian=True) @ at.gradient < 3e-5**2
        assert loss == pytest.approx(minimise(objective).loss, abs=1e-8)


@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_rounds_of_two_kinds_in_turn_are_not_taken_for_one(l2):
    """A sample sees every second round, or fewer: one kind alone, in which a feature hardly varies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 5, 3))
    X[..., 2] *= np.where(np.arange(20_000) % 2 == 1, 3.0, 0.003)[:, None]
    log = BanditLog.from_dense(X, (X @ [1.0, -1.0, 0.5] + rng.gumbel(size=(20_000, 5))).argmax(axis=1))
    passes = []

    class Counted(Tight):
        def run(self, task, start=0, stop=None):
            passes.append(task)
            return super().run(task, start, stop)

    parted, whole = burn_in_sweep(Counted(cut(log, rng, 25).logs), l2=l2), burn_in_sweep(log, l2=l2)
    np.testing.assert_allclose(parted.thetas, whole.thetas, atol=2e-4)
    np.testing.assert_allclose(parted.losses, whole.losses, atol=1e-7)
    assert len(passes) <= 15


def test_a_step_from_where_it_is_flat_is_not_the_last(monkeypatch):
    """The decrement falls by far at the end of a step that was cut again and again: that says nothing of the next."""
    monkeypatch.setattr(suffixes, "CURVED_ROUNDS_PER_FEATURE", 20)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(2000, 3, 2))
        X[..., 1] *= np.where(rng.random(2000) < 0.01, 30.0, 0.01)[:, None]
        log = BanditLog.from_dense(X, (X @ [1.0, 0.1] + rng.gumbel(size=(2000, 3))).argmax(axis=1))
        start = np.array([[1.0, rng.uniform(1, 30)]])
        thetas, losses = refine_suffixes(ListParts([log]), np.array([0]), start, n_rounds=2000, l2=1e-6, tolerance=3e-5)
        least = minimise(SoftmaxObjective(log, l2=1e-6))
        assert losses[0] == pytest.approx(least.loss, abs=1e-6)
        np.testing.assert_allclose(thetas[0], least.theta, rtol=0.02)


@pytest.mark.parametrize("start", [0, 777])
def test_the_hardest_rounds_are_those_of_the_whole(start):
    log = random_log(8, rounds=3000, most_arms=9)
    parts = Tight(cut(log, np.random.default_rng(2), 25).logs, sample_bytes=30_000)
    theta = np.array([1.0, 2.0, 3.0])
    parted = PartedObjective(parts, start=start, l2=1e-4, summary=summarise_parts(parts)).hardest(theta)
    whole = SoftmaxObjective(log[start:], l2=1e-4).hardest(theta)
    # Their order and which of equals was taken aside; those asked for may be fewer than were hoped for.
    losses = np.sort(round_losses(whole, theta))
    found = np.sort(round_losses(parted, theta))
    np.testing.assert_array_equal(found, losses[-len(found) :])
    assert 20 <= len(found) <= len(losses) == 30
    assert losses[0] >= np.sort(round_losses(log[start:], theta))[-30]
    tight = Tight(parts.logs, sample_bytes=4_000)
    fewer = PartedObjective(tight, start=start, l2=1e-4, summary=summarise_parts(tight)).hardest(theta)
    assert fewer.n_rounds >= 3
    assert fewer.features.nbytes <= 1_000
    few = ListParts([log[:20], log[20:40]])
    assert PartedObjective(few, start=0, l2=1e-4, summary=summarise_parts(few)).hardest(theta) is None


def test_a_log_in_parts_that_is_nearly_separable_is_not_searched_a_second_time(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5, 3))
    log = BanditLog.from_dense(X, (X @ [9.0, -9.0, 3.0] + rng.gumbel(size=(4000, 5)) / 9).argmax(axis=1))
    parts = Tight(cut(log, rng, 20).logs)
    monkeypatch.delattr(PartedObjective, "unpenalised")
    monkeypatch.setattr(PartedObjective, "__abstractmethods__", frozenset())
    with pytest.warns(PenaltyDominatesWarning) as caught:
        observer = SuffixImitation(burn_in="naive").fit(parts)
    assert len(caught) == 1
    assert observer.agreement_ > 0.98


@pytest.mark.parametrize("burn_in", ["naive", "rule", "auto", 317, 0.4, PowerRule(0.8)])
def test_fits_what_it_fits_in_memory(burn_in):
    log = random_log(6, rounds=3000)
    parts = Tight(cut(log, np.random.default_rng(1), 30).logs)
    mine = SuffixImitation(burn_in=burn_in).fit(parts)
    if burn_in == "auto":
        seen = summarise_parts(parts)
        assert mine.burn_in_ == seen.stride * HeldOut().start(seen.sample)
    expected = SuffixImitation(burn_in=mine.burn_in_ if burn_in == "auto" else burn_in).fit(log)
    assert (mine.burn_in_, mine.n_rounds_, mine.rank_) == (expected.burn_in_, expected.n_rounds_, expected.rank_)
    np.testing.assert_allclose(mine.theta_, expected.theta_, atol=1e-6)
    np.testing.assert_allclose(mine.covariance_, expected.covariance_, rtol=1e-5)
    np.testing.assert_allclose(mine.loss_, expected.loss_, rtol=1e-10)
    assert mine.warnings_ == expected.warnings_
    assert mine.agreement_ == expected.agreement_


def test_parts_that_fit_into_memory_are_fitted_there():
    log = random_log(7, rounds=500)
    parts = cut(log, np.random.default_rng(2), 9)
    for observer in (SuffixImitation(burn_in="auto"), SuffixImitation(loss="zero_one")):
        mine = clone_fit(observer, parts)
        assert np.array_equal(mine.theta_, clone_fit(observer, log).theta_)


def clone_fit(observer, log):
    return type(observer)(**observer.get_params()).fit(log)


def test_what_needs_the_log_in_memory_says_so():
    parts = Tight([random_log(8, rounds=2000)])
    with pytest.raises(InputError, match=r"zero_one.*in memory"):
        SuffixImitation(loss="zero_one").fit(parts)
    with pytest.raises(InputError, match="sample_weight is for logs in memory"):
        SuffixImitation().fit(parts, sample_weight=np.ones(2000))
    with pytest.raises(InputError, match="leaves nothing of a log with 2000"):
        SuffixImitation(burn_in=2000).fit(parts)


@pytest.mark.parametrize("seed", range(2))
def test_tracking_parts_gives_the_same_bits(seed):
    log = simulate(Environment(4, 6), LinTS(), n_rounds=2600, seed=seed).log
    parts = cut(log, np.random.default_rng(seed), 17)
    mine, whole = TrackingObserver().fit(parts), TrackingObserver().fit(log)
    later = TrackingObserver().fit(log[:1000]).partial_fit(ListParts([log[1000:2100], log[2100:]]))
    for observer in (mine, later):
        assert np.array_equal(observer.theta_, whole.theta_)
        assert np.array_equal(observer.covariance_, whole.covariance_)
        assert observer.evidence_ == whole.evidence_


def test_a_diagnosis_speaks_of_the_rounds_of_the_whole_log():
    log = random_log(9, rounds=6000)
    found = diagnose(Tight(cut(log, np.random.default_rng(3), 12).logs, sample_bytes=100_000))
    stride = summarise_parts(Tight([log], sample_bytes=100_000)).stride
    assert found.notes[0] == f"judged by every {stride}th round of 6,000, as many as fit into memory"
    assert found.n_rounds == 6000
    assert 6000 - 5 * stride < found.bins[-1].stop <= 6000
    thinned = diagnose(log[::stride])
    assert [b.own for b in found.bins] == [b.own for b in thinned.bins]
    assert (found.verdict, found.tests) == (thinned.verdict, thinned.tests)
    assert diagnose(cut(log, np.random.default_rng(3), 12)) == diagnose(log)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.CoarseSetsWarning")
@pytest.mark.parametrize("kind", ["sets", "sample", "both"])
def test_what_is_known_in_part_is_fitted_in_parts_as_in_one_piece(kind):
    """With a sample of all rounds, and where all of them do not fit."""
    rng = np.random.default_rng(1)
    log = random_log(1, rounds=600)
    known = {}
    if kind != "sample":
        known["possible"] = rng.random(len(log.features)) < 0.3
        known["possible"][log.chosen_rows] = True
    if kind != "sets":
        known["offer_probability"] = rng.uniform(0.2, 1.0, len(log.features))
    log = BanditLog(log.features, log.offsets, None if "possible" in known else log.chosen, **known)
    parts = cut(log, rng, 5)
    expected = SuffixImitation(burn_in=100).fit(log).theta_
    np.testing.assert_allclose(SuffixImitation(burn_in=100).fit(parts).theta_, expected, atol=1e-6)
    seen = summarise_parts(parts, n_bytes=6000)
    assert seen.stride > 1
    objective, direct = (
        PartedObjective(parts, start=100, l2=1e-4, summary=seen),
        SoftmaxObjective(log.suffix(100), l2=1e-4),
    )
    for name in ("sets", "n_rounds", "n_vague", "n_one_arm"):
        assert getattr(objective, name) == getattr(direct, name)
    assert objective.null_loss == pytest.approx(direct.null_loss)
    np.testing.assert_allclose(minimise(objective).theta, expected, atol=1e-5)


def test_a_sample_keeps_what_is_known_in_part():
    log = random_log(2, rounds=64)
    marks = np.random.default_rng(0).random(len(log.features)) < 0.5
    marks[log.chosen_rows] = True
    log = BanditLog(log.features, log.offsets, None, possible=marks)
    seen = summarise_parts(cut(log, np.random.default_rng(0), 4), n_bytes=1500)
    expected = log[:: seen.stride]
    np.testing.assert_array_equal(seen.sample.possible, expected.possible)
    np.testing.assert_array_equal(seen.sample.features, expected.features)
    with pytest.raises(InputError, match="needs the log in memory"):
        burn_in_sweep(cut(log, np.random.default_rng(0), 4), [0.5])
    assert diagnose(ListParts([log])).n_rounds == 64
