"""Feedback of the Open Bandit Pipeline."""

import numpy as np
import pytest

from onlooker import BanditLog, InputError, read_log, read_obp, write_log
from onlooker.base.errors import SharedFeaturesWarning
from strategies import assert_equal_logs


@pytest.fixture
def feedback():
    """What `obtain_batch_bandit_feedback` gives, with the keys that obp documents."""
    rng = np.random.default_rng(0)
    return {
        "n_rounds": 20,
        "n_actions": 4,
        "action": rng.integers(4, size=20),
        "position": np.arange(20) % 3,
        "reward": rng.integers(2, size=20),
        "pscore": rng.random(20),
        "context": rng.normal(size=(20, 2)),
        "action_context": rng.normal(size=(4, 3)),
    }


def test_every_action_is_on_offer(feedback):
    with pytest.warns(SharedFeaturesWarning, match="the context is the same"):
        log = read_obp(feedback)
    assert np.array_equal(log.features, np.tile(feedback["action_context"], (20, 1)))
    assert log.n_arms.tolist() == [4] * 20
    assert log.chosen.tolist() == feedback["action"].tolist()
    assert log.arm_ids.tolist() == [0, 1, 2, 3] * 20
    assert log.feature_names == ("action_context_0", "action_context_1", "action_context_2")


def test_crossed_with_the_context(feedback):
    log = read_obp(feedback, cross=True)
    context, arms = feedback["context"], feedback["action_context"]
    crossed = np.einsum("ni,kj->nkij", context, arms).reshape(80, 6)
    assert np.array_equal(log.features, np.hstack([np.tile(arms, (20, 1)), crossed]))
    assert log.feature_names[3:] == tuple(f"context_{i} x action_context_{j}" for i in range(2) for j in range(3))


def test_contexts_that_change_from_round_to_round(feedback):
    feedback["action_context"] = np.random.default_rng(1).normal(size=(20, 4, 3))
    log = read_obp(feedback, cross=True)
    assert np.array_equal(log.features[:, :3], feedback["action_context"].reshape(80, 3))


def test_one_position(feedback):
    log = read_obp(feedback, cross=True, position=2)
    assert log.chosen.tolist() == feedback["action"][2::3].tolist()
    assert np.array_equal(log.features, read_obp(feedback, cross=True)[2::3].features)
    with pytest.raises(InputError, match=r"no round has position 5: there are \[0, 1, 2\]"):
        read_obp(feedback, position=5)


def test_features_by_name(feedback):
    log = read_obp(feedback, cross=True, features=["context_1 x action_context_0"])
    expected = np.outer(feedback["context"][:, 1], feedback["action_context"][:, 0]).ravel()
    assert np.array_equal(log.features[:, 0], expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": None}, "has no array 'action'"),
        ({"action": np.full(20, 0.5)}, "'action' has dtype float64"),
        ({"action": np.full(20, 4)}, "round 0 picks action 4, but there are 4"),
        ({"action": np.array([], dtype=int)}, "'action' is empty"),
        ({"action_context": None}, "numpy.eye"),
        ({"action_context": np.full((4, 3), np.nan)}, "feature 'action_context_0' is nan"),
        ({"action_context": np.ones(4)}, "1 dimensions: give numbers in 2 or 3"),
        ({"action_context": np.array([["a"]] * 4)}, "'action_context' has dtype <U1"),
        ({"action_context": np.ones((19, 4, 3))}, "has 19 rounds, but 'action' has 20"),
        ({"n_actions": 5}, "'n_actions' is 5, but the arrays have 4"),
        ({"n_rounds": 5}, "'n_rounds' is 5, but the arrays have 20"),
        ({"context": np.ones((3, 2))}, "'context' has 3 rows for 20 rounds"),
        ({"context": np.full((20, 1), np.inf)}, "'context', round 0, column 0 is inf"),
        ({"position": None}, "has no array 'position'"),
        ({"position": np.zeros(3, dtype=int)}, "'position' has 3 entries"),
    ],
)
def test_what_cannot_be_used(feedback, change, message):
    with pytest.raises(InputError, match=message) as caught:
        read_obp({**feedback, **change}, cross=True, position=1 if "position" in change else None)
    assert "\n" not in str(caught.value)


def test_cross_is_yes_or_no(feedback):
    with pytest.raises(InputError, match="option 'cross' is 'no'"):
        read_obp(feedback, cross="no")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("same", [True, False])
def test_written_and_read_back(tmp_path, dtype, same):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1 if same else 6, 3, 2)).astype(dtype)
    log = BanditLog(
        np.tile(X, (6, 1, 1)).reshape(18, 2) if same else X.reshape(18, 2),
        np.arange(0, 19, 3),
        rng.integers(3, size=6),
        feature_names=["a", "b c"],
        round_ids=np.array(["01", "02", "03", "04", "05", "x"], dtype=object),
        arm_ids=np.arange(18) + 2**60,
    )
    write_log(log, tmp_path / "log.npz")
    with np.load(tmp_path / "log.npz", allow_pickle=False) as arrays:
        assert arrays["action_context"].ndim == (2 if same else 3)
    again = read_log(tmp_path / "log.npz")
    assert again.features.dtype == dtype
    assert_equal_logs(again, log)


def test_an_archive_of_obps_own_arrays(tmp_path, feedback):
    np.savez(tmp_path / "feedback.npz", **feedback)
    assert_equal_logs(read_log(tmp_path / "feedback.npz", cross=True), read_obp(feedback, cross=True))


def test_what_an_archive_cannot_hold(tmp_path):
    ragged = BanditLog(np.eye(3), [0, 1, 3], [0, 1])
    with pytest.raises(InputError, match="round 1 offers 2 arms and round 0 1"):
        write_log(ragged, tmp_path / "log.npz")
    mixed = BanditLog(np.eye(2), [0, 2], [0], arm_ids=np.array(["a", 1], dtype=object))
    with pytest.raises(InputError, match="arm_ids mixes text and numbers"):
        write_log(mixed, tmp_path / "log.npz")
    assert not list(tmp_path.iterdir())
