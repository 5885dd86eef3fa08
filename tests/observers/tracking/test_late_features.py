"""Features, levels and arms that first vary at any round are tracked as if they had been there all along."""

import json
import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlooker import TS, UCB, BanditLog, InputError, Lapse, Softmax, SuffixImitation, TrackingObserver, direction_error
from onlooker.base.errors import OnlookerWarning, RepeatedRoundsWarning
from onlooker.logs.categories import Growing
from onlooker.observers.tracking.variation import Identification, unidentified, within_rounds

KNOWN = {"UCB": UCB(1.0), "TS": TS(5.0), "Lapse": Lapse(0.05)}
"""Learners, by what they explore with in units of the reward noise."""

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def play(kind, features, theta, seed=0):
    """Picks of a ridge learner, and its last estimate; the reward noise is 0.1."""
    rng = np.random.default_rng(seed)
    n_rounds, n_arms, d = features.shape
    inverse, total, chosen = np.eye(d), np.zeros(d), np.empty(n_rounds, dtype=int)
    for t, rows in enumerate(features):
        estimate = inverse @ total
        if kind == "TS":
            estimate = estimate + np.linalg.cholesky(0.01 * d * inverse) @ rng.normal(size=d)
        scores = rows @ estimate
        if kind == "UCB":
            scores = scores + 0.1 * np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
        chosen[t] = rng.integers(n_arms) if kind == "Lapse" and rng.random() < 0.05 else scores.argmax()
        x = rows[chosen[t]]
        step = inverse @ x
        inverse -= np.outer(step, step) / (1 + x @ step)
        total += (x @ theta + 0.1 * rng.normal()) * x
    return chosen, inverse @ total


def numeric(start, n_rounds, before=0.0, seed=0):
    """Rounds in which the last of five features varies from round `start` on; all arms share it before."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_rounds, 8, 5)) / 5**0.5
    features[:start, :, 4] = before * rng.normal(size=(start, 1))
    return features, np.array([0.6, -0.4, 0.3, 0.2, -0.6])


def one_hot(start, n_rounds, seed=0):
    """Three numbers, and two levels of a category of which one is offered from round `start` on."""
    rng = np.random.default_rng(seed)
    level = rng.integers(0, 3, size=(n_rounds, 8))
    level[:start][level[:start] == 2] = 0
    features = np.concatenate(
        [rng.normal(size=(n_rounds, 8, 3)) / 5**0.5, (level == 1)[..., None], (level == 2)[..., None]], axis=2
    )
    return features, np.array([0.6, -0.4, 0.3, 0.3, -0.5])


def new_arm(start, n_rounds, seed=0):
    """Two numbers and an effect of each of four arms, of which the last is the worst thing on offer until `start`."""
    rng = np.random.default_rng(seed)
    features = np.zeros((n_rounds, 4, 5))
    features[..., :2] = rng.normal(size=(n_rounds, 4, 2)) / 2
    features[:, [1, 2, 3], [2, 3, 4]] = 1.0
    features[:start, 3] = features[:start, 0]
    return features, np.array([0.6, -0.4, 0.3, -0.2, 0.4])


@pytest.mark.parametrize("start", [100, 1999, 2000, 2001, 3000])
@pytest.mark.parametrize(("kind", "world"), [("UCB", numeric), ("TS", one_hot), ("Lapse", new_arm), ("UCB", one_hot)])
def test_what_first_varies_late_is_tracked(kind, world, start):
    features, theta = world(start, 4500, seed=start)
    chosen, learned = play(kind, features, theta, seed=start)
    log = BanditLog.from_dense(features, chosen)
    observer = TrackingObserver(exploration=KNOWN[kind]).fit(log)
    imitation = SuffixImitation(burn_in=max(start, 1000)).fit(log)
    error = direction_error(observer.theta_, learned)
    assert error < max(0.05, direction_error(imitation.theta_, learned))
    assert not any("never varies" in text for text in observer.warnings_)
    assert np.isfinite([one.standard_error for one in observer.summary().coefficients]).all()
    assert observer.score(log[-1000:]) > 0.9


def test_at_the_very_end_of_a_long_log_and_with_the_family_unknown():
    features, theta = numeric(9000, 10_000)
    chosen, learned = play("UCB", features, theta)
    observer = TrackingObserver().fit(BanditLog.from_dense(features, chosen))
    assert observer.exploration_.name == "UCB"
    assert direction_error(observer.theta_, learned) < 0.05


@cache
def late(before):
    """Rounds of which the last feature varies late, the picks, the learner's estimate and standard errors of it."""
    features, theta = numeric(3000, 4500, before)
    chosen, learned = play("TS", features, theta)
    observer = TrackingObserver().fit(BanditLog.from_dense(features, chosen))
    return features, chosen, learned, np.sqrt(np.diag(observer.covariance_))


@pytest.mark.parametrize("before", [0.0, 1.0], ids=["zero", "shared"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e5])
def test_a_late_feature_of_another_size(size, before):
    features, chosen, learned, expected = late(before)
    scale = np.array([1, 1, 1, 1, size])
    log = BanditLog.from_dense(features * scale, chosen)
    observer = TrackingObserver().fit(log)
    assert direction_error(observer.theta_ * scale, learned) < 0.05
    if before and size > 1.0:
        # A column of thousands that all arms share is more than a learner would take as it is.
        return
    assert observer.fits_
    assert (observer.units_ is None) == (size == 1.0)
    np.testing.assert_allclose(np.sqrt(np.diag(observer.covariance_)) * scale, expected, rtol=0.5)


@pytest.mark.parametrize("size", [1.0, 1e-3])
@pytest.mark.parametrize("before", [0.0, 1.0])
def test_parts_and_states_are_the_whole_bit_for_bit(tmp_path, size, before):
    features, theta = numeric(2150, 2400, before)
    chosen, _ = play("UCB", features, theta)
    log = BanditLog.from_dense(features * [1, 1, 1, 1, size], chosen)
    whole = TrackingObserver(exploration=UCB(1.0)).fit(log)
    parts, path = TrackingObserver(exploration=UCB(1.0)), tmp_path / "state.json"
    for first, last in ((0, 1500), (1500, 2149), (2149, 2151), (2151, 2200), (2200, 2400)):
        parts.partial_fit(log[first:last]).save(path)
        parts = TrackingObserver.load(path)
        assert any("never varies" in text for text in parts.warnings_) == (last <= 2150)
    np.testing.assert_array_equal(parts.theta_, whole.theta_)
    np.testing.assert_array_equal(parts.covariance_, whole.covariance_)
    assert parts.summary().to_dict() == whole.summary().to_dict()
    assert parts._monitor.to_dict() == whole._monitor.to_dict()


def test_states_of_0_1_go_on(tmp_path):
    """They have the variation within the rounds that decided, and nothing of sizes."""
    features, theta = numeric(2300, 3500)
    chosen, learned = play("UCB", features, theta)
    log, path = BanditLog.from_dense(features, chosen), tmp_path / "state.json"
    TrackingObserver(exploration=UCB(1.0)).fit(log[:2200]).save(path)
    document = json.loads(path.read_text())
    monitor = document["monitor"]
    del monitor["open"], monitor["follower"]["sizes"]
    monitor["information"] = within_rounds(log[:2000])[1].tolist()
    del document["digest"], document["seen"]
    document["schema"] = "onlooker.tracking/1"
    path.write_text(json.dumps(document))
    observer = TrackingObserver.load(path)
    assert observer.theta_[4] == 0
    with pytest.warns(RepeatedRoundsWarning):
        observer.partial_fit(log[2200:])
    assert direction_error(observer.theta_, learned) < 0.05


@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(1, 199))
@settings(max_examples=40, deadline=None)
def test_what_is_identified_is_that_of_the_whole_log(seed, cut):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, rng.integers(2, 5), 6)) * 10.0 ** rng.integers(-3, 4, size=6)
    for j in range(6):
        start = rng.choice([0, rng.integers(200), 200])
        if rng.random() < 0.5:
            rows[:start, :, j] = rng.choice([0.0, 3.3])
        elif rng.random() < 0.5:
            rows[:start, :, j] = rows[:start, :, j - 1] - rows[:start, :, j - 2]
    log = BanditLog.from_dense(rows, np.zeros(200, dtype=int))
    found, parts = Identification.start(6), Identification.start(6)
    found.take_in(log)
    parts.take_in(log[:cut])
    parts.take_in(log[cut:])
    np.testing.assert_array_equal(found.flags(), unidentified(within_rounds(log)[1]))
    np.testing.assert_array_equal(parts.flags(), found.flags())
    np.testing.assert_array_equal(parts.information, found.information)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_predict_is_the_argmax_of_predict_proba(seed):
    rng = np.random.default_rng(seed)
    d, n_rounds = int(rng.integers(1, 5)), int(rng.integers(1, 120))
    exploration = [UCB(2.0), TS(3.0), Lapse(0.2), Lapse(1.0), Softmax(0.5)][rng.integers(5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        observer = TrackingObserver(exploration=exploration).fit(any_log(rng, n_rounds, d, late=rng.random() < 0.5))
    for log in (any_log(rng, 60, d), any_log(rng, 60, d, late=True)):
        chances = observer.predict_proba(log)
        expected = [chances[a:b].argmax() for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]
        np.testing.assert_array_equal(observer.predict(log), expected)
        assert observer.score(log) == np.mean(expected == log.chosen)


def any_log(rng, n_rounds, d, *, late=False):
    """Rounds of one to five arms, now and then with arms that are the same."""
    n_arms = rng.integers(1, 6, size=n_rounds)
    offsets = np.append(0, np.cumsum(n_arms))
    rows = rng.normal(size=(offsets[-1], d)) if rng.random() < 0.7 else rng.integers(0, 2, size=(offsets[-1], d)) * 1.0
    if late:
        rows[: offsets[n_rounds // 2], -1] = 1.0
    return BanditLog(rows, offsets, rng.integers(0, n_arms))


def colours(n_rounds, levels, seed, theta, first=0):
    """A table of offers: a price, a colour, and the picks of one who knows what they are worth."""
    rng = np.random.default_rng(seed)
    price, colour = rng.normal(size=(n_rounds, 6)), rng.choice(levels, size=(n_rounds, 6))
    worth = np.vectorize(theta.get)(colour) - price + 0.3 * rng.gumbel(size=price.shape)
    chosen = np.arange(6) == worth.argmax(axis=1)[:, None]
    ids = np.repeat(np.arange(first, first + n_rounds), 6)
    return pa.table({"round": ids, "chosen": chosen.ravel(), "price": price.ravel(), "colour": colour.ravel()})


WORTH = {"amber": -1.0, "blue": 0.0, "green": 1.5, "red": 0.7}


@pytest.mark.parametrize("n_before", [300, 2200], ids=["undecided", "decided"])
@pytest.mark.parametrize("levels", [["blue", "green", "red"], ["amber", "red"], ["green", "red"]], ids="+".join)
def test_a_level_that_is_new_in_a_later_part(tmp_path, n_before, levels):
    days = colours(n_before, ["blue", "red"], 0, WORTH), colours(1500, levels, 1, WORTH, first=n_before)
    first, second = (BanditLog.from_frame(day) for day in days)
    exploration = Softmax(0.3)
    TrackingObserver(exploration=exploration).fit(first).save(tmp_path / "state.json")
    observer = TrackingObserver.load(tmp_path / "state.json").partial_fit(second)
    names = observer.policy_.feature_names
    assert names[:2] == first.feature_names
    assert {*names} == {"price", "colour=red", *(f"colour={one}" for one in levels if one not in ("blue", "red"))}
    found = dict(zip(names, observer.theta_ / -observer.theta_[0], strict=True))
    for level in levels:
        assert found.get(f"colour={level}", 0.0) == pytest.approx(WORTH[level], abs=0.25)
    # The same log with the levels known from the start.
    like = observer.policy_
    whole = TrackingObserver(exploration=exploration).fit(BanditLog.from_frame(days[0], like=like))
    whole.partial_fit(BanditLog.from_frame(days[1], like=like))
    np.testing.assert_allclose(observer.theta_, whole.theta_, rtol=0.02, atol=0.02)
    assert observer.path_.theta.shape[1] == len(names)
    observer.save(tmp_path / "state.json")
    again = TrackingObserver.load(tmp_path / "state.json")
    np.testing.assert_array_equal(again.theta_, observer.theta_)
    again.partial_fit(first, repeated="follow")
    assert again.policy_.feature_names == names


def test_a_log_that_grew_by_a_level_is_recognised():
    days = colours(300, ["blue", "red"], 0, WORTH), colours(200, ["blue", "green", "red"], 1, WORTH, first=300)
    observer = TrackingObserver(exploration=Softmax(0.3)).fit(BanditLog.from_frame(days[0]))
    grown = BanditLog.from_frame(pa.concat_tables(days))
    observer.partial_fit(grown)
    assert (observer.n_skipped_, observer.n_rounds_) == (300, 500)
    with pytest.warns(RepeatedRoundsWarning, match="nothing"):
        observer.partial_fit(grown)
    assert observer.n_rounds_ == 500


def test_a_column_that_is_new_in_a_later_part_is_refused():
    day = colours(100, ["blue", "red"], 0, WORTH)
    observer = TrackingObserver(exploration=UCB(1.0)).fit(BanditLog.from_frame(day))
    other = day.append_column("size", day["price"])
    with pytest.raises(InputError, match=r"\['size'\] were not there before"):
        observer.partial_fit(BanditLog.from_frame(other))
    with pytest.raises(InputError, match=r"it lacks \['price'\]"):
        observer.partial_fit(BanditLog.from_frame(day.drop_columns(["price"])))


def test_tables_are_read_with_the_levels_that_are_new(tmp_path):
    import pyarrow.parquet as pq

    from onlooker import read_log, scan_log

    known = BanditLog.from_frame(colours(50, ["blue", "red"], 0, WORTH))
    path = tmp_path / "day.parquet"
    pq.write_table(colours(50, ["amber"], 1, WORTH), path)
    like = Growing(known.feature_names, known.categories)
    for log in (read_log(path, like=like), scan_log(path, like=like)):
        assert log.feature_names == ("price", "colour=red", "colour=amber")
        assert log.categories == {"colour": ("blue", "red", "amber")}


def test_every_forecast_gives_a_late_feature_its_own_unit():
    """Forecasts that shared their units would find the unit given already, each at another moment."""
    features, chosen, _, _ = late(0.0)
    found = []
    for size in (1.0, 2.0**-10):
        log = BanditLog.from_dense(features * np.array([1, 1, 1, 1, size]), chosen)
        verdict = TrackingObserver().fit(log).summary().verdict
        found.append([verdict.noise.total, verdict.forgetting.total, verdict.turns.total, verdict.gradient.total])
    np.testing.assert_allclose(found[1], found[0], atol=2.0)
