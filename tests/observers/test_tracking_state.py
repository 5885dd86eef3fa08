"""A tracking observer that goes on: parts give what the whole does, states are kept whole, damaged ones refused."""

import copy
import json
import warnings

import numpy as np
import pytest

from onlooker import (
    UCB,
    BanditLog,
    Environment,
    EpsilonGreedy,
    InputError,
    LinearPolicy,
    LinUCB,
    TrackingObserver,
    simulate,
)
from onlooker.base.documents import sealed
from onlooker.base.errors import OnlookerWarning, RepeatedRoundsWarning

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.FittedRoundsWarning")


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(3, (1, 5), seed=4), EpsilonGreedy(0.1), 2300, seed=4).log


def same(found, expected):
    assert found.exploration_ == expected.exploration_
    assert found.evidence_ == expected.evidence_
    assert found.misfit_ == expected.misfit_
    assert found.settled_round_ == expected.settled_round_
    assert found.n_rounds_ == expected.n_rounds_
    assert found.warnings_ == expected.warnings_
    assert found.summary().to_dict() == expected.summary().to_dict()
    for name in ("theta_", "covariance_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("rounds", "theta", "direction", "standard_error"):
        np.testing.assert_array_equal(getattr(found.path_, name), getattr(expected.path_, name))


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize(
    ("n_rounds", "exploration", "seed"), [(2300, "auto", 0), (2300, UCB(1.0), 1), (300, "auto", 2), (60, "auto", 3)]
)
def test_parts_are_the_whole_bit_for_bit(log, tmp_path, n_rounds, exploration, seed):
    whole = TrackingObserver(exploration=exploration, ridge=0.5).fit(log[:n_rounds])
    cuts = np.unique(np.random.default_rng(seed).integers(1, n_rounds, size=5)).tolist()
    parts = TrackingObserver(exploration=exploration, ridge=0.5)
    for start, stop in zip([0, *cuts], [*cuts, n_rounds], strict=True):
        parts.partial_fit(log[start:stop])
        parts.save(tmp_path / "state.json")
        kept = TrackingObserver.load(tmp_path / "state.json")
        same(kept, parts)
        parts = kept
    same(parts, whole)
    np.testing.assert_array_equal(parts.predict_proba(log[:50]), whole.predict_proba(log[:50]))
    assert parts.get_params() == whole.get_params()


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_checkpoints_of_ones_own_are_kept(log, tmp_path):
    observer = TrackingObserver(exploration=UCB(1.0), checkpoints=[300, 10, 10, 20]).fit(log[:15])
    assert observer.path_.rounds.tolist() == [10, 15]
    observer.save(tmp_path / "state.json")
    observer = TrackingObserver.load(tmp_path / "state.json").partial_fit(log[15:300])
    assert observer.path_.rounds.tolist() == [10, 20, 300]


def named(log, names, order):
    return BanditLog(log.features[:, order], log.offsets, log.chosen, feature_names=[names[j] for j in order])


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_features_go_by_their_names(log):
    names, order = ("price", "age", "size"), [1, 2, 0]
    first, other = named(log, names, [0, 1, 2]), named(log, names, order)
    straight = TrackingObserver(exploration=UCB(1.0)).fit(first[:2100])
    turned = TrackingObserver(exploration=UCB(1.0)).fit(first[:1500]).partial_fit(other[1500:2100])
    same(turned, straight)
    np.testing.assert_allclose(turned.predict_proba(other[2100:]), straight.predict_proba(first[2100:]), rtol=1e-9)
    with pytest.raises(InputError, match="price"):
        straight.partial_fit(named(log, ("cost", "age", "size"), [0, 1, 2]))


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_log_of_other_features_is_refused(log):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:2100])
    with pytest.raises(InputError, match="the log has 2"):
        observer.partial_fit(simulate(Environment(2, 4), LinUCB(), 10).log)


@pytest.fixture(scope="module", params=[2200, 40], ids=["long", "short"])
def document(request, log, tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "state.json"
    rounds = log[: request.param]
    observer = TrackingObserver(exploration=UCB(1.0))
    with pytest.warns():
        observer.fit(rounds)
    observer.save(path)
    return json.loads(path.read_text())


def put(*keys):
    *way, last, value = keys

    def change(document):
        for key in way:
            document = document[key]
        document[last] = value

    return change


def drop(*keys):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        del document[keys[-1]]

    return change


FOLLOWER = ("monitor", "follower")
DAMAGED = {
    "no monitor": drop("monitor"),
    "a monitor that is a list": put("monitor", []),
    "a monitor that is nothing": put("monitor", None),
    "no names": drop("feature_names"),
    "too many names": put("feature_names", ["a", "b", "c", "d"]),
    "names that are numbers": put("feature_names", 3),
    "categories that are a list": put("categories", [1]),
    "no families": put("monitor", "families", []),
    "an unknown family": put("monitor", "families", ["Guess"]),
    "a family with a bad constant": put("monitor", "families", [["UCB", -1.0]]),
    "a ridge that is text": put("monitor", "ridge", "one"),
    "a ridge of zero": put("monitor", "ridge", 0.0),
    "a ridge that is not a number": put("monitor", "ridge", float("nan")),
    "too many features": put("monitor", "n_features", 10**9),
    "features that are text": put("monitor", "n_features", "3"),
    "checkpoints that are text": put("monitor", "checkpoints", ["soon"]),
    "decided on text": put("monitor", "decided_on", "all"),
    "a probability that is text": put("monitor", "uniform", "small"),
    "no evidence": put("monitor", "tuned", []),
    "evidence that is not a number": put("monitor", "tuned", 0, "evidence", float("nan")),
    "a range with one end": put("monitor", "tuned", 0, "range", [1.0]),
    "an assumption without a ridge": drop("monitor", "tuned", 0, "assumption", "ridge"),
    "a share above one": put(*FOLLOWER, "assumption", "slip", 2.0),
    "no prior": put(*FOLLOWER, "assumption", "precision", 0.0),
    "no follower": drop(*FOLLOWER),
    "no belief": drop(*FOLLOWER, "belief"),
    "no mean": drop(*FOLLOWER, "belief", "mean"),
    "a mean that is too short": put(*FOLLOWER, "belief", "mean", [1.0, 2.0]),
    "a mean that is not a number": put(*FOLLOWER, "belief", "mean", [1.0, 2.0, float("nan")]),
    "a mean without bounds": put(*FOLLOWER, "belief", "mean", [1.0, 2.0, float("inf")]),
    "a mean of text": put(*FOLLOWER, "belief", "mean", ["a", "b", "c"]),
    "a spread that is no matrix": put(*FOLLOWER, "belief", "spread", [1.0, 2.0, 3.0]),
    "a ragged spread": put(*FOLLOWER, "belief", "spread", [[1.0], [2.0, 3.0], []]),
    "a spread below zero": put(*FOLLOWER, "belief", "spread", (-np.eye(3)).tolist()),
    "a tally of another shape": put(*FOLLOWER, "tally", [[0.0]]),
    "rounds that are text": put(*FOLLOWER, "n_rounds", "many"),
    "rounds below zero": put(*FOLLOWER, "n_rounds", -5),
    "half a round": put(*FOLLOWER, "n_rounds", 2.5),
    "evidence that is text": put(*FOLLOWER, "evidence", "strong"),
    "no path": drop(*FOLLOWER, "path"),
    "a path of another width": put(*FOLLOWER, "path", 0, "theta", [1.0]),
    "a path of text": put(*FOLLOWER, "path", 0, "theta", ["a", "b", "c"]),
    "a path without noise": put(*FOLLOWER, "path", 0, "noise", []),
    "a path that is not a number": put(*FOLLOWER, "path", 0, "theta", [float("nan")] * 3),
    "too few flags": put("monitor", "open", [True]),
    "flags that are numbers": put("monitor", "open", [1, 0, 1]),
    "no flags": put("monitor", "open", None),
    "sizes of no size": put(*FOLLOWER, "sizes", "low", 0.0),
    "sizes the wrong way round": put(*FOLLOWER, "sizes", "high", 1e-9),
    "sizes of other features": put(*FOLLOWER, "sizes", "known", []),
    "waiting rounds that are text": put("monitor", "waiting", "later"),
    "waiting rounds without picks": put("monitor", "waiting", {"features": [[1.0]], "dtype": "float64"}),
}


def refused(path, text):
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        TrackingObserver.load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_damaged_states_are_refused_in_one_line(document, tmp_path, change):
    damaged = copy.deepcopy(document)
    change(damaged)
    refused(tmp_path / "state.json", json.dumps(damaged))
    # Nor does a digest that is made again help.
    del damaged["digest"]
    refused(tmp_path / "state.json", resealed(damaged))


def resealed(document):
    try:
        return sealed(document)
    except ValueError:
        return json.dumps(document)


def test_what_is_no_state_is_refused(document, tmp_path):
    whole = json.dumps(document)
    for text in (
        "",
        "[]",
        "null",
        whole[: len(whole) // 2],
        "[" * 100_000,
        '{"schema": "onlooker.tracking/1"}',
        json.dumps({**document, "schema": "onlooker.policy/1"}),
        json.dumps({**document, "schema": "onlooker.tracking/3"}),
        '{"schema": "onlooker.tracking/2"}',
        whole.replace('"follower": {', '"follower": ' + '{"a": ' * 500 + "1" + "}" * 500 + ', "b": {'),
    ):
        refused(tmp_path / "state.json", text)
    with pytest.raises(InputError, match="cannot be read"):
        TrackingObserver.load(tmp_path / "none.json")


def followed(document, **changes):
    """A state with other values in its follower, and the digest made again."""
    changed = copy.deepcopy(document)
    changed["monitor"]["follower"] |= changes
    del changed["digest"]
    return sealed(changed)


def test_values_that_no_log_makes_are_refused_whatever_the_digest(document, tmp_path):
    follower = document["monitor"]["follower"]
    n_rounds = follower["n_rounds"]
    backwards = [{**one, "n_rounds": n_rounds + 1} for one in follower["path"][:1]]
    for changes in (
        {"n_rounds": 5},
        {"n_rounds": n_rounds + 1},
        {"n_choices": n_rounds + 1},
        {"lapses": n_rounds + 1.0},
        {"lapses": -1.0},
        {"evidence": 1.0},
        {"chance": 1.0},
        {"checkpoints": [3]},
        {"path": follower["path"][::-1]},
        {"path": backwards},
        {"assumption": {**follower["assumption"], "slip": 0.5}},
        {"tally": (np.array(follower["tally"]) + 0.5).tolist()},
        {"tally": (np.array(follower["tally"]) + 1000.0).tolist()},
    ):
        refused(tmp_path / "state.json", followed(document, **changes))


def test_a_name_that_stands_there_twice_is_refused(document, tmp_path):
    text = json.dumps(document)
    for twice in (text.replace("{", '{"automatic": true, ', 1), text.replace('"ridge"', '"ridge": 1.0, "ridge"', 1)):
        refused(tmp_path / "state.json", twice)
    policy = tmp_path / "policy.json"
    LinearPolicy([1.0, 2.0]).save(policy)
    policy.write_text(policy.read_text().replace("{", '{"theta": [2.0, 1.0],', 1))
    with pytest.raises(InputError, match="'theta' stands there twice"):
        LinearPolicy.load(policy)


def test_a_change_of_one_digit_is_refused(document, tmp_path):
    text = json.dumps(document)
    places = [place for place, letter in enumerate(text) if letter.isdecimal()]
    for place in places[:: len(places) // 40]:
        digit = str((int(text[place]) + 1) % 10)
        changed = text[:place] + digit + text[place + 1 :]
        # The last digits of a float may be several.
        if json.loads(changed) != document:
            refused(tmp_path / "state.json", changed)


def bad_days(log):
    """Rounds that a fresh fit refuses, too."""
    for value in (1e100, 1.7e18, 1e160, 2e6, -3e7):
        features = log.features[: log.offsets[20]].astype(np.float64)
        features[-1, 1] = value
        yield BanditLog(features, log.offsets[:21], log.chosen[:20])


def frozen(observer):
    return json.dumps(observer._document())


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("n_rounds", [2200, 1500, 30])
def test_a_bad_day_is_refused_and_changes_nothing(log, tmp_path, n_rounds):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:n_rounds])
    observer.save(tmp_path / "state.json")
    before, kept = frozen(observer), dict(observer.__dict__)
    for day in bad_days(log[2200:]):
        with pytest.raises(InputError, match="rescale it"):
            TrackingObserver(exploration=UCB(1.0)).fit(day)
        with pytest.raises(InputError, match="'x1' reaches"):
            observer.partial_fit(day)
        assert observer.__dict__ == kept
        assert frozen(observer) == before
    whole = TrackingObserver(exploration=UCB(1.0)).fit(log)
    same(observer.partial_fit(log[n_rounds:]), whole)


class Failing:
    """A log in parts, of which a later one fails."""

    feature_names, n_features, categories = None, 3, None

    def __init__(self, log, error, after):
        self.log, self.error, self.after = log, error, after

    def run(self, task, start=0, stop=None):
        assert stop is None
        for first in range(start, self.log.n_rounds, 50):
            if self.after is not None and self.after <= 0:
                raise self.error
            self.after = None if self.after is None else self.after - 1
            yield task(self.log[first : first + 50], first)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("n_rounds", [2100, 700])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("a part is bad"), MemoryError()], ids=repr)
@pytest.mark.parametrize("after", [1, 2, 5, 6])
def test_what_fails_half_way_changes_nothing_and_can_be_given_again(log, n_rounds, error, after):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:n_rounds])
    before, kept = frozen(observer), dict(observer.__dict__)
    later = log[n_rounds : n_rounds + 200]
    with pytest.raises(type(error)):
        observer.partial_fit(Failing(later, error, after))
    assert frozen(observer) == before
    assert observer.__dict__ == kept
    observer.partial_fit(Failing(later, error, None))
    same(observer, TrackingObserver(exploration=UCB(1.0)).fit(log[: n_rounds + 200]))


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_progress_bar_that_is_interrupted_changes_nothing(log):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:2100])
    before = frozen(observer)

    def interrupt(*_):
        raise KeyboardInterrupt

    for rounds in (log[2100:], log):
        with pytest.raises(KeyboardInterrupt):
            observer.partial_fit(rounds, progress=interrupt)
        with pytest.raises(KeyboardInterrupt):
            observer.fit(rounds, progress=interrupt)
    assert frozen(observer) == before


def test_a_warning_that_is_an_error_changes_nothing(log):
    observer = TrackingObserver(exploration=UCB(1.0))
    with pytest.warns():
        observer.fit(log[:2100])
    before = frozen(observer)
    # One-arm rounds are in it, which is warned of after all of it was followed.
    for rounds in (log[2100:], log):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(OnlookerWarning):
                observer.partial_fit(rounds)
        assert frozen(observer) == before


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OneArmRoundsWarning")
def test_rounds_that_come_again_are_skipped_with_a_warning(log, tmp_path):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:2100])
    observer.partial_fit(log)
    assert (observer.n_rounds_, observer.n_skipped_) == (2300, 2100)
    same(observer, TrackingObserver(exploration=UCB(1.0)).fit(log))
    observer.save(tmp_path / "state.json")
    observer = TrackingObserver.load(tmp_path / "state.json")
    with pytest.warns(RepeatedRoundsWarning, match="all 2300 rounds of the log"):
        observer.partial_fit(log)
    assert (observer.n_rounds_, observer.n_skipped_) == (2300, 2300)
    observer.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "state.json").read_bytes()
    observer.partial_fit(log[:100], repeated="follow")
    assert (observer.n_rounds_, observer.n_skipped_) == (2400, 0)
    with pytest.raises(InputError, match="repeated is 'twice'"):
        observer.partial_fit(log, repeated="twice")


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OneArmRoundsWarning")
def test_a_log_that_changes_between_two_looks_is_refused(log):
    observer = TrackingObserver(exploration=UCB(1.0)).fit(log[:2100])
    before = frozen(observer)

    class Changing(Failing):
        def run(self, task, start=0, stop=None):
            yield from super().run(task, start, stop)
            self.log = self.log[::2]

    with pytest.raises(InputError, match="changed while it was read"):
        observer.partial_fit(Changing(log[2100:], None, None))
    assert frozen(observer) == before


def test_a_state_that_would_not_load_is_not_written(log, tmp_path):
    path = tmp_path / "state.json"
    observer = TrackingObserver(exploration=UCB(1.0))
    with pytest.warns():
        observer.fit(log[:2100])
    observer.save(path)
    kept = path.read_bytes()
    for name, value in (("n_rounds", -5), ("evidence", float("nan")), ("n_choices", 10**6)):
        broken = copy.deepcopy(observer)
        setattr(broken._monitor.follower, name, value)
        with pytest.raises(InputError, match="cannot be kept"):
            broken.save(path)
        assert path.read_bytes() == kept


def test_a_state_holds_no_rounds_once_they_have_decided(document):
    n_rounds = document["monitor"]["follower"]["n_rounds"]
    assert (document["monitor"]["waiting"] is None) == (n_rounds >= 2000)
    if n_rounds >= 2000:
        assert len(json.dumps(document)) < 30_000
