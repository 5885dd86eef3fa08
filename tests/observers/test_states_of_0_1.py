"""States and policies that release 0.1.0 wrote still load, and go on as they did then."""

import json
from pathlib import Path

import numpy as np
import pytest

from onlooker import BanditLog, LinearPolicy, TrackingObserver

FOLDER = Path(__file__).parent.parent / "data" / "states_0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())

pytestmark = pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")


def same(observer, expected):
    np.testing.assert_allclose(observer.theta_, expected["theta"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(observer.covariance_)), expected["standard_error"], rtol=1e-9)
    assert repr(observer.exploration_) == expected["exploration"]
    assert observer.evidence_ == pytest.approx(expected["evidence"], rel=1e-9)
    assert observer.misfit_ == pytest.approx(expected["misfit"], rel=1e-6, abs=1e-9)
    assert (observer.n_rounds_, observer.n_choices_) == (expected["n_rounds"], expected["n_choices"])
    assert observer.settled_round_ == expected["settled_round"]
    assert (None if observer.units_ is None else observer.units_.tolist()) == expected["units"]
    names, categories = observer.policy_.feature_names, observer.policy_.categories
    assert (names and list(names)) == expected["feature_names"]
    assert (categories and {name: list(levels) for name, levels in categories.items()}) == expected["categories"]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_state_loads_and_goes_on(name, tmp_path):
    observer, expected = TrackingObserver.load(FOLDER / f"{name}.json"), EXPECTED[name]
    same(observer, expected["loaded"])
    rounds = BanditLog(**expected["rounds"])
    if "waiting" in name:
        # More rounds tune the families again, softmax by its own likelihood since.
        del expected["later"]["evidence"]["Softmax"]
        observer.partial_fit(rounds).evidence_.pop("Softmax")
        same(observer, expected["later"])
        return
    same(observer.partial_fit(rounds), expected["later"])
    observer.save(tmp_path / "state.json")
    same(TrackingObserver.load(tmp_path / "state.json"), expected["later"])


def test_policies_load():
    assert LinearPolicy.load(FOLDER / "policy.json") == LinearPolicy([0.1, -2.5e-3], ["price", "speed"])
    assert LinearPolicy.load(FOLDER / "policy_categories.json") == LinearPolicy(
        [0.1, 2.5], ["price", "colour=red"], {"colour": ["blue", "red"]}
    )
