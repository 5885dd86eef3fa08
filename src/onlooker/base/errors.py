"""Errors and warnings: an error stops the work; a warning comes with a usable answer pointing at the caller's line."""

from __future__ import annotations

import os
import sys
import warnings
from contextvars import Context, ContextVar, copy_context
from pathlib import Path


class OnlookerError(Exception):
    """Base class of all errors that onlooker raises on purpose."""


class InputError(OnlookerError, ValueError):
    """The input cannot be used. The message says what is wrong, where, and what to do."""


class ClusterError(OnlookerError):
    """A cluster cannot be reached or has stopped working. The message says what to do."""


class NotFittedError(OnlookerError, ValueError, AttributeError):
    """A fitted attribute was used before `fit` was called."""


class OnlookerWarning(UserWarning):
    """Base class of all warnings. The result can be used, with the limit that the message describes."""


class ColumnsLeftOutWarning(OnlookerWarning):
    """Some columns are not used as features: text with a single value or too many values, or an unsupported type."""


class TimesOutOfOrderWarning(OnlookerWarning):
    """A column that looks like a time is not sorted, and no sorting was requested. Use `order_by` to sort by it."""


class RoundsOutOfOrderWarning(OnlookerWarning):
    """The round numbers are consecutive, but the rows of the table are not in that order."""


class OnlyOnPicksWarning(OnlookerWarning):
    """A feature is non-zero in picked rows only. It is probably an outcome of the pick and must not be a feature."""


class MixedFeatureWarning(OnlookerWarning):
    """A feature mixes numbers and text, so it is encoded as a number and a category."""


class UnseenCategoryWarning(OnlookerWarning):
    """A category has a level that its encoding does not know. It is scored as the reference level."""


class SharedFeaturesWarning(OnlookerWarning):
    """Features shared by all arms of a round cannot explain a choice by themselves, so they were left out."""


class SkippedLinesWarning(OnlookerWarning):
    """Some lines of a file contain no usable round. They were counted and left out."""


class RepeatedRoundsWarning(OnlookerWarning):
    """All rounds of a log were followed before and are skipped, or it is not known whether they were."""


class FittedRoundsWarning(OnlookerWarning):
    """`predict_proba` was given rounds that the observer was fitted on. `propensities` says how they were picked."""


class LowOverlapWarning(OnlookerWarning):
    """Hardly any round shows what other policies would have picked, as when the learner looks deterministic."""


class OneArmRoundsWarning(OnlookerWarning):
    """Some rounds offer a single arm. They involve no choice and carry no information about preferences."""


class TooFewRoundsWarning(OnlookerWarning):
    """There are too few rounds with a choice for the number of features. Regularisation decides much of the result."""


class UncomparedArmsWarning(OnlookerWarning):
    """Some arms were never picked, or never offered beside others: their weights are poorly determined."""


class NoIntervalsWarning(OnlookerWarning):
    """There are too many weights for intervals: they have no standard errors."""


class NoPreferenceWarning(OnlookerWarning):
    """Uniformly random picks explain the data as well as the fitted policy. Do not read its weights as preferences."""


class SeparableDataWarning(OnlookerWarning):
    """The picks are separable: one theta explains them without error, so the data do not bound its length."""


class CollinearFeaturesWarning(OnlookerWarning):
    """Some features are not identifiable separately (collinear within the rounds), or never vary within a round."""


class CoarseSetsWarning(OnlookerWarning):
    """Picks are known only to sets of arms that are too coarse to identify some weights."""


class PicksDrawnWarning(OnlookerWarning):
    """Picks are known only to sets of arms, so they were drawn within these, several times."""


class MissingValuesWarning(OnlookerWarning):
    """Rounds in which a feature is missing were left out."""


class PenaltyDominatesWarning(OnlookerWarning):
    """Regularisation determines some weights as much as the picks do, often those of features on a tiny scale."""


class NoFamilyFitsWarning(OnlookerWarning):
    """None of the known exploration families predicts the picks, so the tracked estimate may be misleading."""


class ConvergenceWarning(OnlookerWarning):
    """The solver stopped before it converged. Bring the features to similar scales, or use a larger `l2`."""


_PACKAGE = str(Path(__file__).parent.parent) + os.sep
_CALLER: ContextVar[tuple[str, int] | None] = ContextVar("_CALLER", default=None)
"""File and line that a thread of this package works for."""


def warn(message: OnlookerWarning | str, category: type[OnlookerWarning] = OnlookerWarning) -> None:
    """Warn at the innermost line outside this package; at the outermost line where all are inside.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("look here")
    >>> caught[0].filename.startswith("<doctest")
    True
    """
    place = _CALLER.get()
    if place is None:
        warnings.warn(message, category, stacklevel=_outside()[0])
    else:
        kind = category if isinstance(message, str) else type(message)
        warnings.warn_explicit(message, kind, *place)


def context_of_caller() -> Context:
    """A context for a thread: what it warns of points at the line that called this package."""
    context = copy_context()
    if _CALLER.get() is None:
        context.run(_CALLER.set, _outside()[1:])
    return context


def _outside() -> tuple[int, str, int]:
    """The line outside this package that led to the caller of this: its stack level there, its file and its number."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001  the documented way to the caller's frame
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level, frame.f_code.co_filename, frame.f_lineno
