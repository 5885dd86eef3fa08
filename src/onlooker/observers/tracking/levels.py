"""Later rounds in the features of those before: by name, with one more for every level of a category that is new."""

from __future__ import annotations

import numpy as np

from onlooker.base.errors import InputError
from onlooker.base.types import Features
from onlooker.logs.categories import Encoding, level_name
from onlooker.logs.log import BanditLog


def joined(before: Encoding, log: BanditLog) -> tuple[Encoding, BanditLog]:
    """The features of both, those `before` first, and the log in these.

    A level that a log does not have is 0 there, whichever level is its reference.

    Examples
    --------
    >>> rows, names = np.array([[5.0, 1.0], [7.0, 0.0]]), ["price", "colour=red"]
    >>> log = BanditLog(rows, [0, 2], [0], feature_names=names, categories={"colour": ["green", "red"]})
    >>> found, log = joined(Encoding(("colour=red", "price"), {"colour": ("blue", "red")}), log)
    >>> found.feature_names, log.features.tolist()
    (('colour=red', 'price', 'colour=green'), [[1.0, 5.0, 0.0], [0.0, 7.0, 1.0]])
    """
    levels = log.categories or {}
    found = before.grown({column: levels[column] for column in before.categories if column in levels})
    names = log.feature_names or ()
    if found.feature_names == names and found.categories == levels:
        return found, log
    _check(found, log)
    place = {name: j for j, name in enumerate(names)}
    features: Features = np.zeros((len(log.features), len(found.feature_names)), dtype=log.features.dtype)
    for j, (name, (column, level)) in enumerate(zip(found.feature_names, found.sources, strict=True)):
        if name in place:
            features[:, j] = log.dense[:, place[name]]
        elif level is not None and level == levels[column][0]:
            others = [place[level_name(column, other)] for other in levels[column][1:]]
            features[:, j] = 1.0 - log.dense[:, others].sum(axis=1)
    return found, log.with_features(features, found.feature_names)


def _check(found: Encoding, log: BanditLog) -> None:
    """Refuse a log that lacks a feature, or has one that is neither known nor a level of a known category."""
    names, levels = log.feature_names or (), log.categories or {}
    sources = dict(zip(found.feature_names, found.sources, strict=True))
    absent = [name for name, (column, _) in sources.items() if name not in names and column not in levels]
    known = {*found.feature_names, *(level_name(column, all_[0]) for column, all_ in found.categories.items())}
    new = [name for name in names if name not in known]
    if absent or new:
        found_out = [f"it lacks {absent[:5]}"] * bool(absent) + [f"{new[:5]} were not there before"] * bool(new)
        raise InputError(f"the log has different features than the rounds before: {'; '.join(found_out)}")
