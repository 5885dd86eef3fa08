"""The logs of the naming benchmark are what they are called; the table itself takes long."""

import numpy as np
import pytest
from outside.naming_logs import KNOWN, UNKNOWN, Shape, known_log, unknown_log

SMALL = Shape(4, 3, 60, "normal")


@pytest.mark.parametrize("family", KNOWN)
@pytest.mark.parametrize("kind", ["sphere", "normal", "binary", "disjoint"])
def test_known_learners_play(family, kind):
    log = known_log(family, Shape(4, 3, 60, kind), 0)
    assert (log.n_rounds, log.n_features) == (60, 12 if kind == "disjoint" else 3)
    assert len(np.unique(log.chosen)) > 1


@pytest.mark.parametrize("kind", UNKNOWN)
def test_other_learners_play(kind):
    log = unknown_log(kind, SMALL, 0)
    assert log.n_rounds == 60
    assert log.n_features == (2 if kind.endswith("unlogged") else 3)
