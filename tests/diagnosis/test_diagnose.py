"""The verdicts, on logs whose learner is known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.diagnosis import diagnose
from onlooker.diagnosis.movement import find_given_up, find_pull
from onlooker.imitation.stretches import other_ways
from onlooker.logs.log import BanditLog
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import EpsilonGreedy, ExploreThenCommit, LinTS, LinUCB, UniformRandom
from onlooker.simulation.play import simulate

N, K, D = 1500, 6, 3
THETA = np.array([3.0, -3.0, 1.5])


@pytest.fixture(scope="module")
def offers():
    return np.random.default_rng(2).normal(size=(N, K, D))


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(3).gumbel(size=(N, K))


@pytest.fixture(scope="module")
def expert(offers, noise):
    """Picks of one softmax policy."""
    return (offers @ THETA + noise).argmax(axis=1)


@pytest.fixture(scope="module")
def contrary(offers, noise):
    """Picks of the opposite policy."""
    return (noise - offers @ THETA).argmax(axis=1)


def played(learner, n_rounds, d=10, n_arms=20, seed=3):
    return simulate(Environment(d, n_arms, seed=seed), learner, n_rounds, seed=seed).log


def test_uniform_picks_have_no_preference():
    found = diagnose(played(UniformRandom(), 2000))
    assert found.verdict == found.values.state == "no preference"
    assert found.exploration.share is None
    assert found.settled is found.changed is None
    assert found.stability == ()
    assert "no weights for the features explain the picks better than chance" in found.sentence


def test_picks_that_follow_an_interaction_are_not_called_random():
    X = np.random.default_rng(2).normal(size=(2000, 8, 4))
    scores = np.where(X[..., 0] > 0, X[..., 1], -X[..., 1])
    log = BanditLog.from_dense(X, (2 * scores + np.random.default_rng(3).gumbel(size=(2000, 8))).argmax(axis=1))
    found = diagnose(log)
    assert found.verdict == "no preference"
    assert "random" not in found.sentence.split("(p ")[0]
    assert any("--score auto" in note for note in found.notes)
    other = diagnose(log, score="auto")
    assert other.verdict == "stable"
    assert not any("--score auto" in note for note in other.notes)


@pytest.mark.parametrize("decisiveness", [0.3, 1.0, 100.0])
def test_one_policy_is_settled_from_the_start(offers, noise, decisiveness):
    found = diagnose(BanditLog.from_dense(offers, (decisiveness * offers @ THETA + noise).argmax(axis=1)))
    assert found.verdict == "stable"
    assert found.from_start
    assert found.settled.round == found.settled.low == 0
    assert "from the start" in found.sentence


def test_offers_that_change_are_not_taken_for_a_learner_that_does(offers, noise):
    # Sets grow from two arms to six: picks become harder to predict, while the policy stays as it is.
    offered = np.arange(K) < 2 + np.arange(N)[:, None] * (K - 1) // N
    picks = np.where(offered, offers @ THETA + noise, -np.inf).argmax(axis=1)
    found = diagnose(BanditLog.from_dense(offers, picks, offered))
    assert found.from_start
    assert found.predictability_rise.high < 0


@pytest.mark.parametrize("learner", [LinUCB(), LinTS(), EpsilonGreedy(0.1)])
def test_learners_settle(learner):
    found = diagnose(played(learner, 4000))
    assert found.verdict == "stable"
    assert found.settled.low <= found.settled.round <= found.settled.high < 2000
    assert found.predictability_rise.high > 0


@pytest.mark.parametrize("explore", [600, 1800])
def test_committing_is_settling(explore):
    found = diagnose(played(ExploreThenCommit(explore), 3000))
    assert found.verdict == "stable"
    assert abs(found.settled.round - explore) <= 60
    assert found.settled.low <= explore <= found.settled.high
    assert f"round {found.settled.round:,}" in found.sentence


@pytest.mark.slow
def test_a_sampler_cut_short_is_still_exploring():
    found = diagnose(played(LinTS(), 1500, d=50, n_arms=200))
    assert found.verdict == "moving"
    assert found.settled is found.values.since is None
    assert found.stability[0].fitted < 0.5 < found.stability[-1].fitted


def test_a_jump_is_a_change_with_its_round(offers, expert, contrary):
    picks = np.where(np.arange(N) < 700, expert, contrary)
    found = diagnose(BanditLog.from_dense(offers, picks))
    assert found.verdict == "changed"
    assert found.changed.low <= 700 <= found.changed.high
    assert found.changed.high - found.changed.low < 40
    assert found.late_gap.low > 0.5
    matrix = np.array(found.matrix)
    assert matrix[:4, :4].min() > 0.5 > matrix[:4, 6:].max()


def test_a_restart_is_a_change():
    one, other = played(LinUCB(), 1500, seed=1), played(LinUCB(), 1500, seed=2)
    log = BanditLog(
        np.vstack([one.features, other.features]),
        np.concatenate([one.offsets, one.offsets[-1] + other.offsets[1:]]),
        np.concatenate([one.chosen, other.chosen]),
    )
    found = diagnose(log)
    assert found.verdict == "changed"
    assert abs(found.changed.round - 1500) < 20


def test_there_and_back(offers, expert, contrary):
    picks = np.where((np.arange(N) < 500) | (np.arange(N) >= 1000), expert, contrary)
    found = diagnose(BanditLog.from_dense(offers, picks))
    assert found.verdict == "changed"
    assert abs(found.changed.round - 1000) < 15
    assert any("not the only change" in note for note in found.notes)


def test_a_slow_turn_is_movement(offers, noise):
    angle = np.linspace(0, np.pi, N)
    theta = 3 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    found = diagnose(BanditLog.from_dense(offers, (np.einsum("nkd,nd->nk", offers, theta) + noise).argmax(axis=1)))
    assert found.verdict == "moving"
    assert found.values.since is found.values.changed_at is None


def test_growing_noise_is_exploration(offers, noise):
    fading = np.linspace(3, 0.3, N)[:, None]
    found = diagnose(BanditLog.from_dense(offers, (fading * (offers @ THETA) + noise).argmax(axis=1)))
    assert found.verdict == "stable"
    assert found.exploration.trend == "rising"


@pytest.mark.parametrize("n_rounds", [0, 1, 99])
def test_few_rounds_are_not_enough(offers, expert, n_rounds):
    found = diagnose(BanditLog.from_dense(offers[:n_rounds], expert[:n_rounds]))
    assert found.verdict == "not enough evidence"
    assert found.bins == ()
    assert str(n_rounds) in found.sentence


def test_few_rounds_for_the_features_are_not_enough():
    log = played(LinUCB(), 300, d=20, n_arms=10)
    found = diagnose(log)
    assert found.verdict == "not enough evidence"
    assert "400" in found.sentence
    assert diagnose(played(LinUCB(), 400, d=20, n_arms=10)).verdict != "not enough evidence"


def test_nothing_to_tell_arms_apart_by():
    found = diagnose(BanditLog.from_dense(np.ones((300, 3, 2)), np.zeros(300, dtype=int)))
    assert found.verdict == "not enough evidence"
    assert "no feature differs" in found.sentence


def test_rounds_are_those_of_the_log_with_one_arm_rounds(offers, expert, contrary):
    # Every other round offers a single arm: the change at round 1,400 is the 700th choice.
    picks = np.where(np.arange(N) < 700, expert, contrary)
    sizes = np.tile([K, 1], N)
    rows = np.concatenate([offers, np.zeros((N, 1, D))], axis=1).reshape(-1, D)
    chosen = np.stack([picks, np.zeros(N, dtype=int)], axis=1).ravel()
    ids = [f"r{t}" for t in range(2 * N)]
    found = diagnose(BanditLog(rows, np.concatenate([[0], np.cumsum(sizes)]), chosen, round_ids=ids))
    assert (found.n_rounds, found.n_choices) == (2 * N, N)
    assert found.changed.low <= 1400 <= found.changed.high
    assert found.changed.round_id == f"r{found.changed.round}"
    assert found.bins[0].start == 0
    assert found.bins[-1].stop == 2 * N - 1
    alone = diagnose(BanditLog.from_dense(offers, picks))
    assert [b.own for b in found.bins] == [b.own for b in alone.bins]
    assert 2 * alone.changed.round == found.changed.round


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.astype(np.float32),
        lambda X: np.concatenate([X, np.ones((N, K, 1)), 2 * X[:, :, :1]], axis=2),
        lambda X: X * 1e6,
        lambda X: X * 1e-6,
        lambda X: X * np.array([1e-4, 1.0, 1e4]),
    ],
    ids=["float32", "constant and collinear", "huge", "tiny", "mixed scales"],
)
def test_awkward_features(offers, expert, contrary, change):
    with np.errstate(all="raise"):
        assert diagnose(BanditLog.from_dense(change(offers), expert)).verdict == "stable"
        jump = diagnose(BanditLog.from_dense(change(offers), np.where(np.arange(N) < 700, expert, contrary)))
    assert jump.verdict == "changed"


@pytest.mark.parametrize("picks", [np.zeros(N, dtype=int), np.arange(N) % K])
def test_every_round_alike(offers, picks):
    with np.errstate(all="raise"):
        found = diagnose(BanditLog.from_dense(np.tile(offers[:1], (N, 1, 1)), picks))
    assert found.verdict == ("no preference" if picks.any() else "stable")
    # A policy that never changes was at work when the log began.
    assert [note[:11] for note in found.notes] == (["only scores"] if picks.any() else ["the first 8"])


def test_bins_and_level(offers, expert):
    log = BanditLog.from_dense(offers, expert)
    assert len(diagnose(log, 4).bins) == 4
    many = diagnose(log, 1000)
    assert 10 < len(many.bins) < 1000
    assert any("bins instead of 1000" in note for note in many.notes)
    narrow, wide = diagnose(log, level=0.5).bins[0].own, diagnose(log, level=0.99).bins[0].own
    assert wide.low < narrow.low < narrow.high < wide.high
    for wrong in ({"bins": 1}, {"bins": 2.5}, {"level": 1.0}, {"level": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            diagnose(log, **wrong)
    with pytest.raises(InputError):
        diagnose("log.csv")


def test_the_same_log_gives_the_same_diagnosis(offers, expert, monkeypatch):
    log = BanditLog.from_dense(offers, expert)
    monkeypatch.setenv("ONLOOKER_THREADS", "1")
    one = diagnose(log)
    monkeypatch.setenv("ONLOOKER_THREADS", "3")
    assert diagnose(log) == one


def test_as_words_and_as_json(offers, expert):
    found = diagnose(BanditLog.from_dense(offers, expert))
    lines = repr(found).splitlines()
    assert lines[0] == found.sentence
    assert sum(" to " in line and "[" in line for line in lines) == 10
    assert sum(line.startswith("test: ") for line in lines) == len(found.tests) == 6
    document = json.loads(json.dumps(found.to_dict()))
    assert document["verdict"] == "stable"
    assert document["bins"][3]["own"]["value"] == found.bins[3].own.value


def drawn(n_rounds, flat=slice(0)):
    """Best arms of one fixed taste; no feature differs within the rounds `flat`."""
    X = np.random.default_rng(0).normal(size=(n_rounds, 5, 3))
    X[flat] = 0
    return BanditLog.from_dense(X, (X @ [1.0, 2.0, -1.0]).argmax(axis=1))


def test_picks_that_balance_to_the_last_have_no_preference():
    with np.errstate(all="raise"):
        found = diagnose(BanditLog.from_dense(np.tile([[[1.0], [0.0]]], (200, 1, 1)), np.arange(200) % 2))
    assert found.verdict == "no preference"
    assert [test.hypothesis for test in found.tests if "final policy" in test.hypothesis] == []


@pytest.mark.parametrize(
    ("n_rounds", "flat"), [(400, slice(300, None)), (2000, slice(1500, None)), (2000, slice(600, 1000))]
)
def test_rounds_of_arms_alike_are_left_out(n_rounds, flat):
    log = drawn(n_rounds, flat)
    with np.errstate(all="raise"):
        found = diagnose(log)
    kept = np.delete(np.arange(n_rounds), flat)
    alone = diagnose(log[kept])
    assert (found.verdict, found.from_start) == ("stable", True)
    assert found.n_choices == len(kept)
    assert found.notes[0].startswith(f"{n_rounds - len(kept)} rounds offer arms with the same features")
    assert [b.own for b in found.bins] == [b.own for b in alone.bins]
    assert all(np.isfinite([block.share.low, block.share.high, block.fitted]).all() for block in found.stability)


def test_arms_that_differ_by_rounding_are_alike():
    X = drawn(1000, slice(300, 500)).features.reshape(1000, 5, 3) + 0.1
    X[300:500, 1] += 2e-17
    X[300:500, 2] = np.nextafter(0.1, 1)
    found = diagnose(BanditLog.from_dense(X, (X @ [1.0, 2.0, -1.0]).argmax(axis=1)))
    assert found.n_choices == 800


@pytest.mark.parametrize("blind", [slice(600, 1000), slice(200, 1300), slice(1500, 2000)])
@pytest.mark.parametrize("decisiveness", [1.0, 100.0])
def test_a_feature_that_does_not_differ_for_a_while_is_no_change(blind, decisiveness):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 5, 3))
    X[blind, :, 1] = 0
    picks = (decisiveness * X @ [1.0, 2.0, -1.0] + rng.gumbel(size=(2000, 5))).argmax(axis=1)
    assert diagnose(BanditLog.from_dense(X, picks)).verdict == "stable"


def test_a_jump_is_found_though_a_feature_does_not_differ_for_a_while(offers, noise):
    X = offers.copy()
    X[500:, :, 2] = 0
    theta = np.where(np.arange(N)[:, None] < 900, THETA, -THETA)
    found = diagnose(BanditLog.from_dense(X, (np.einsum("nkd,nd->nk", X, theta) + noise).argmax(axis=1)))
    assert found.verdict == "changed"
    assert found.changed.low <= 900 <= found.changed.high


def test_units_do_not_matter():
    log = played(LinTS(), 4000, d=5)
    plain = diagnose(log)
    found = [
        diagnose(BanditLog(log.features * np.float64(unit), log.offsets, log.chosen))
        for unit in (1e-12, 1e-6, 1e-2, 1e6)
    ]
    for one in found:
        assert (one.sentence, one.settled) == (found[0].sentence, found[0].settled)
        # Usual units are left as they are, so that these are only about the same.
        assert one.verdict == plain.verdict == "stable"
        assert plain.settled.low <= one.settled.round <= plain.settled.high
        assert one.bins[-1].late.value == pytest.approx(plain.bins[-1].late.value, abs=0.01)


def test_tiny_p_values_are_bounds(offers):
    settled = diagnose(BanditLog.from_dense(offers, (100 * offers @ THETA).argmax(axis=1)))
    assert settled.tests[0].p_value < 1e-100
    assert "p < 1e-100" in repr(settled)
    committed = diagnose(played(ExploreThenCommit(600), 3000))
    rise = committed.tests[2]
    assert rise.p_value == rise.least_p == pytest.approx(1 / 1001)
    assert f"largest z {rise.statistic:.2f}, p <= 0.001" in repr(committed)


def test_draws_that_tie_with_what_is_found_count_in_any_unit():
    """Few stretches: some random signs change none of those that decide, and rounding must not settle the tie."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(240, 4, 2))
    log = BanditLog.from_dense(X, (X @ [0.8, -0.6] + rng.gumbel(size=(240, 4))).argmax(axis=1))
    pull = find_pull(log, other_ways(log))
    found = {find_given_up(replace(pull, scores=unit * pull.scores)).p_value for unit in np.linspace(0.1, 10, 60)}
    assert len(found) == 1


@pytest.mark.parametrize(("seed", "step"), [(9, 0.03), (2, 0.04)])
def test_weights_that_walk_in_equal_steps_are_not_called_changed(seed, step):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 8, 6))
    walk = 3 * rng.normal(size=6) / 6**0.5 + np.cumsum(step * rng.normal(size=(2000, 6)), axis=0)
    scores = np.einsum("nkd,nd->nk", X, walk)
    assert diagnose(BanditLog.from_dense(X, (scores + rng.gumbel(size=(2000, 8))).argmax(axis=1))).verdict == "moving"
