import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import LinearPolicy
from strategies import NAMES, plains

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(plains(), st.data())
def test_scores_choices_and_probabilities_against_loops(plain, data):
    theta = data.draw(st.lists(st.floats(-2, 2), min_size=plain.n_features, max_size=plain.n_features))
    log, policy = plain.log(), LinearPolicy(theta)
    scores = [sum(x * w for x, w in zip(row, theta, strict=True)) for arms in plain.rounds for row in arms]
    found = policy.scores(log)
    assert found == pytest.approx(scores, rel=1e-9, abs=1e-6)
    probabilities, choices = policy.probabilities(log), policy.choose(log)
    assert choices.shape == (log.n_rounds,)
    for t in range(log.n_rounds):
        rows = slice(log.offsets[t], log.offsets[t + 1])
        mine = found[rows].tolist()
        assert choices[t] == mine.index(max(mine))
        weights = [math.exp(score - max(mine)) for score in mine]
        assert probabilities[rows] == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-12)


def test_float32_features_are_summed_in_float64():
    log = BanditLog(np.array([[1e8, 1.0, -1e8], [0.0, 0.5, 0.0]], dtype=np.float32), [0, 2], [0])
    assert LinearPolicy([1.0, 1.0, 1.0]).scores(log).tolist() == [1.0, 0.5]


def test_a_log_larger_than_a_block_is_scored_whole():
    features = np.random.default_rng(0).standard_normal((7_000, 50))
    log = BanditLog(features, np.arange(0, 7_001, 7), np.zeros(1_000, dtype=int))
    theta = np.linspace(-1, 1, 50)
    assert LinearPolicy(theta).scores(log) == pytest.approx(features @ theta)


def test_an_empty_log_gets_empty_answers():
    empty = BanditLog(np.eye(2), [0, 2], [0])[:0]
    policy = LinearPolicy([1.0, 2.0])
    for answer in (policy.scores(empty), policy.choose(empty), policy.probabilities(empty)):
        assert answer.shape == (0,)


def test_the_first_of_equal_arms_is_chosen():
    log = BanditLog(np.zeros((5, 1)), [0, 2, 5], [0, 0])
    assert LinearPolicy([1.0]).choose(log).tolist() == [0, 0]


@given(plains(), st.data())
def test_features_are_matched_by_name(plain, data):
    names = [f"feature {j}" for j in range(plain.n_features)]
    order = data.draw(st.permutations(range(plain.n_features)))
    theta = np.arange(1.0, plain.n_features + 1)
    shuffled = LinearPolicy(theta[list(order)], [names[j] for j in order])
    straight = LinearPolicy(theta, names)
    log = plain.log(feature_names=names)
    assert shuffled.scores(log).tolist() == straight.scores(log).tolist()


def test_features_are_matched_by_position_where_a_side_has_no_names():
    features = np.array([[1.0, 10.0]])
    plain, named = BanditLog(features, [0, 1], [0]), BanditLog(features, [0, 1], [0], feature_names=["a", "b"])
    assert LinearPolicy([1.0, 2.0], ["b", "a"]).scores(plain).tolist() == [21.0]
    assert LinearPolicy([1.0, 2.0]).scores(named).tolist() == [21.0]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], r"the policy does not know \['b'\]"),
        (["a", "c"], r"the log lacks \['c'\]; the policy does not know \['b'\]"),
        (["a", "b", "c"], r"different features: the log lacks \['c'\]$"),
        (None, "the policy has 3 features, but the log has 2"),
    ],
)
def test_other_features_are_refused(names, message):
    log = BanditLog(np.eye(2), [0, 2], [0], feature_names=["a", "b"])
    policy = LinearPolicy(np.ones(3 if names is None else len(names)), names)
    with pytest.raises(InputError, match=message):
        policy.scores(log)


@pytest.mark.parametrize(
    ("theta", "names", "message"),
    [
        ([], None, r"theta has shape \(0,\): pass one weight per feature"),
        ([[1.0]], None, r"theta has shape \(1, 1\)"),
        (1.0, None, r"theta has shape \(\)"),
        ([1.0, math.nan], None, r"theta\[1\] is not finite"),
        ([-math.inf], None, r"theta\[0\] is not finite"),
        (["x"], None, "theta does not hold numbers"),
        ([1j], None, "theta does not hold numbers"),
        ([[1.0], [1.0, 2.0]], None, "theta does not hold numbers"),
        ([1.0], ["a", "b"], "feature_names has 2 names for 1 features"),
        ([1.0, 2.0], ["a", "a"], "feature_names has 'a' twice"),
        ([1.0, 2.0], "ab", "feature_names must be a sequence of strings"),
        ([1.0], [1], "feature_names must be a sequence of strings"),
    ],
)
def test_refuses(theta, names, message):
    with pytest.raises(InputError, match=message):
        LinearPolicy(theta, names)


def test_is_immutable():
    weights = np.array([1.0, 2.0])
    policy = LinearPolicy(weights)
    weights[0] = 7
    assert policy.theta.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        policy.theta[0] = 7
    with pytest.raises(AttributeError, match=r"immutable.*'theta'"):
        policy.theta = weights
    with pytest.raises(AttributeError, match=r"immutable.*'theta'"):
        del policy.theta


def test_equality_and_hash():
    policy = LinearPolicy([0.0, 1.0], ["a", "b"])
    assert policy == LinearPolicy([-0.0, 1.0], ["a", "b"])
    assert hash(policy) == hash(LinearPolicy([-0.0, 1.0], ["a", "b"]))
    assert policy != LinearPolicy([0.0, 1.0], ["b", "a"])
    assert policy != LinearPolicy([0.0, 1.0])
    assert policy != LinearPolicy([0.0, 1.5], ["a", "b"])
    assert policy != [0.0, 1.0]
    assert repr(LinearPolicy([3.0, 4.0])) == "LinearPolicy(2 features, |theta| = 5)"


@given(st.data())
def test_saves_pickles_and_copies_bit_for_bit(tmp_path_factory, data):
    names = data.draw(st.none() | st.lists(NAMES, min_size=1, max_size=6, unique=True))
    size = data.draw(st.integers(1, 6)) if names is None else len(names)
    policy = LinearPolicy(data.draw(st.lists(FINITE, min_size=size, max_size=size)), names)
    path = tmp_path_factory.mktemp("policy") / "policy.json"
    policy.save(path)
    for again in (LinearPolicy.load(path), pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert again.theta.tobytes() == policy.theta.tobytes()
        assert again.feature_names == policy.feature_names
        assert not again.theta.flags.writeable


def test_the_file_is_plain_json(tmp_path):
    LinearPolicy([0.1, 2.0], ["prix (€)", "b"]).save(tmp_path / "policy.json")
    text = (tmp_path / "policy.json").read_text(encoding="utf-8")
    assert json.loads(text) == {"schema": LinearPolicy.schema, "theta": [0.1, 2.0], "feature_names": ["prix (€)", "b"]}
    assert "€" in text


def document(**parts):
    return json.dumps({"schema": LinearPolicy.schema, "theta": [1.0], "feature_names": None} | parts).encode()


NASTY = {
    "empty": b"",
    "truncated": document()[:-5],
    "not text": b"\xff\xfe\x00",
    "pickle": pickle.dumps([1.0]),
    "a number": b"3",
    "a list": b"[1.0]",
    "null": b"null",
    "no schema": b'{"theta": [1.0]}',
    "another schema": document(schema="onlooker.policy/2"),
    "no theta": json.dumps({"schema": LinearPolicy.schema}).encode(),
    "theta a number": document(theta=1.0),
    "theta empty": document(theta=[]),
    "theta text": document(theta=["1.0"]),
    "theta true": document(theta=[True]),
    "theta null": document(theta=[None]),
    "theta nested": document(theta=[[1.0]]),
    "theta an object": document(theta={"0": 1.0}),
    "theta NaN": document(theta=[math.nan]),
    "theta infinite": document(theta=[math.inf]),
    "theta overflows": document().replace(b"1.0", b"1e999"),
    "theta a vast integer": document(theta=[10**400]),
    "theta has endless digits": document().replace(b"1.0", b"9" * 10_000),
    "too many names": document(feature_names=["a", "b"]),
    "names twice": document(theta=[1.0, 2.0], feature_names=["a", "a"]),
    "names a string": document(feature_names="a"),
    "names numbers": document(feature_names=[1]),
    "names an object": document(feature_names={"a": 1}),
    "endless nesting": b"[" * 100_000,
    "nesting in theta": document().replace(b"1.0", b"[" * 100_000),
    "trailing text": document() + b"x",
    "two documents": document() + document(),
    "byte order mark": b"\xef\xbb\xbf" + document(),
}


@pytest.mark.parametrize("name", NASTY)
def test_nasty_files_are_refused_in_one_line(tmp_path, name):
    path = tmp_path / "policy.json"
    path.write_bytes(NASTY[name])
    with pytest.raises(InputError) as caught:
        LinearPolicy.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < 300


def test_missing_file_and_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.json: cannot be read \(No such file"):
        LinearPolicy.load(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"cannot be read \(Is a directory"):
        LinearPolicy.load(tmp_path)
    with pytest.raises(InputError, match="is a folder"):
        LinearPolicy([1.0]).save(tmp_path)
    with pytest.raises(InputError, match=r"cannot be written \(No such file"):
        LinearPolicy([1.0]).save(tmp_path / "none" / "policy.json")


def test_scores_beyond_double_precision_are_refused():
    policy = LinearPolicy([1e300, -1e300])
    log = BanditLog(np.array([[1.0, 0.0], [0.0, 1.0], [1e10, 0.0], [0.0, 1.0]]), [0, 2, 4], [0, 1])
    assert policy.probabilities(log[:1]).tolist() == [1.0, 0.0]
    for ask in (policy.scores, policy.choose, policy.probabilities):
        with pytest.raises(InputError, match="round 1, arm 0 has a score too large"):
            ask(log)
    with pytest.raises(InputError, match="arm 0 has a score too large"):
        policy.pick([[1e10, 0.0], [0.0, 1.0]])
