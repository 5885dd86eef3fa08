"""A log whose features are numbers already, brought into the order of another log or policy."""

from onlooker.categories import Encoded, Encoding
from onlooker.errors import InputError
from onlooker.log import BanditLog


def aligned(log: BanditLog, like: Encoded) -> BanditLog:
    """The same log with the features that `like` has, in its order; categories are those of `like`.

    Examples
    --------
    >>> import numpy as np
    >>> log = BanditLog(np.array([[1.0, 2.0]]), [0, 1], [0], feature_names=["a", "b"])
    >>> aligned(log, BanditLog(np.array([[0.0]]), [0, 1], [0], feature_names=["b"])).features
    array([[2.]])
    """
    wanted = Encoding.of(like).feature_names
    if log.feature_names is None:
        raise InputError("names no features, so they cannot be put in order: leave `like` out")
    absent = [name for name in wanted if name not in log.feature_names]
    if absent:
        raise InputError(f"has no feature {absent[0]!r}, which `like` has: encode it as that was encoded")
    where = {name: j for j, name in enumerate(log.feature_names)}
    features = log.dense if wanted == log.feature_names else log.dense[:, [where[name] for name in wanted]]
    return log.with_features(features, wanted, like.categories)
