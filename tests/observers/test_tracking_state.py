"""A tracking observer that goes on: parts give what the whole does, states are kept whole, damaged ones refused."""

import copy
import json

import numpy as np
import pytest

from onlooker import UCB, BanditLog, Environment, EpsilonGreedy, InputError, LinUCB, TrackingObserver, simulate
from onlooker.documents import sealed


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


@pytest.mark.filterwarnings("ignore::onlooker.errors.OnlookerWarning")
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


@pytest.mark.filterwarnings("ignore::onlooker.errors.OnlookerWarning")
def test_checkpoints_of_ones_own_are_kept(log, tmp_path):
    observer = TrackingObserver(exploration=UCB(1.0), checkpoints=[300, 10, 10, 20]).fit(log[:15])
    assert observer.path_.rounds.tolist() == [10, 15]
    observer.save(tmp_path / "state.json")
    observer = TrackingObserver.load(tmp_path / "state.json").partial_fit(log[15:300])
    assert observer.path_.rounds.tolist() == [10, 20, 300]


def named(log, names, order):
    return BanditLog(log.features[:, order], log.offsets, log.chosen, feature_names=[names[j] for j in order])


@pytest.mark.filterwarnings("ignore::onlooker.errors.OnlookerWarning")
def test_features_go_by_their_names(log):
    names, order = ("price", "age", "size"), [1, 2, 0]
    first, other = named(log, names, [0, 1, 2]), named(log, names, order)
    straight = TrackingObserver(exploration=UCB(1.0)).fit(first[:2100])
    turned = TrackingObserver(exploration=UCB(1.0)).fit(first[:1500]).partial_fit(other[1500:2100])
    same(turned, straight)
    np.testing.assert_allclose(turned.predict_proba(other[2100:]), straight.predict_proba(first[2100:]), rtol=1e-9)
    with pytest.raises(InputError, match="price"):
        straight.partial_fit(named(log, ("cost", "age", "size"), [0, 1, 2]))


@pytest.mark.filterwarnings("ignore::onlooker.errors.OnlookerWarning")
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


def test_a_state_holds_no_rounds_once_they_have_decided(document):
    n_rounds = document["monitor"]["follower"]["n_rounds"]
    assert (document["monitor"]["waiting"] is None) == (n_rounds >= 2000)
    if n_rounds >= 2000:
        assert len(json.dumps(document)) < 30_000
