"""One way back for every kind of saved policy."""

from __future__ import annotations

import os

from onlooker.base.documents import read_document
from onlooker.imitation.scores.additive_policy import AdditivePolicy
from onlooker.imitation.scores.neural import NeuralPolicy
from onlooker.imitation.scores.products import ProductsPolicy
from onlooker.imitation.scores.trees import BoostedPolicy
from onlooker.logs.policy import LinearPolicy, Policy, Scoring

KINDS: dict[str, type[Scoring]] = {
    one.schema: one for one in (LinearPolicy, ProductsPolicy, AdditivePolicy, NeuralPolicy, BoostedPolicy)
}
"""Kinds of policies by the schema that their files name."""


def load_policy(path: str | os.PathLike[str]) -> Policy:
    """Read a policy of any kind that its `save` wrote. Nothing in the file is run.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     LinearPolicy([0.1, 0.2], feature_names=["price", "speed"]).save(f"{folder}/policy.json")
    ...     load_policy(f"{folder}/policy.json")
    LinearPolicy(2 features, |theta| = 0.2236)
    """
    schema = read_document(path, list(KINDS), "policy file", writer="a policy's save")["schema"]
    policy: Policy = KINDS[schema].load(path)
    return policy
