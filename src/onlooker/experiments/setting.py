"""What experiments have in common, so that their tables can be held side by side."""

from __future__ import annotations

from collections.abc import Mapping

from onlooker.learners import LinTS, LinUCB, RidgeLearner

LEARNERS: Mapping[str, RidgeLearner] = {"LinUCB": LinUCB(), "LinTS": LinTS()}
"""The paper's, by the name that tables give them."""

TEST_ROUNDS = 2000
"""Fresh offers that predictive regret and risk are measured on."""
