"""Many learners in one log: the same work for each of them, and one table of what was found."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from onlooker.base.checks import counted
from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.base.notebook import InHtml, Pictured, as_frame
from onlooker.base.text import one_line
from onlooker.base.threads import one_thread
from onlooker.base.types import Progress
from onlooker.imitation.burn_in import as_burn_in, suffix_objective
from onlooker.imitation.choice_model import Linear, as_score
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import LinearPolicy, Policy
from onlooker.observers.pooling import Pooled, pool
from onlooker.observers.suffix_imitation import SuffixImitation
from onlooker.observers.summaries import Coefficient, coefficients

Found = TypeVar("Found")

AT_ONCE = 16
"""Groups that a worker process is given at a time: starting on one takes longer than a short log does."""
SHORT = 1_000_000
"""Values of a log up to which one thread works on it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupFit:
    """What one of many learners values."""

    policy: Policy
    """Its policy; with pooling, drawn towards the others."""
    coefficients: tuple[Coefficient, ...]
    """Its weights with intervals; none of trees and networks."""
    n_rounds: int
    """Rounds with a choice that were imitated."""
    burn_in: int
    """Rounds discarded before them."""
    agreement: float
    """Fraction of the imitated rounds where the policy picks what was picked."""
    warnings: tuple[str, ...]
    """What to know before reading on."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups(Pictured, InHtml):
    """The answers about many learners, by name.

    Examples
    --------
    >>> found = Groups(fits={}, failed={"shop 7": "a burn-in of 2 rounds leaves nothing"}, level=0.95, pooled=None)
    >>> len(found), found.failed
    (0, {'shop 7': 'a burn-in of 2 rounds leaves nothing'})
    """

    fits: Mapping[str, GroupFit]
    failed: Mapping[str, str]
    """Groups without an answer, and why."""
    level: float
    """Coverage that the intervals aim for."""
    pooled: Pooled | None
    """What the groups have in common; None where each stands alone."""

    def __len__(self) -> int:
        return len(self.fits)

    def __iter__(self) -> Iterator[str]:
        return iter(self.fits)

    def __getitem__(self, name: str) -> GroupFit:
        return self.fits[name]

    def to_frame(self) -> Any:
        """A table with a row for every group and feature: of pandas where that is installed, else of pyarrow."""
        import pyarrow as pa

        return as_frame(pa.Table.from_pylist(self.rows()))

    def rows(self) -> list[dict[str, Any]]:
        """A row for every group and feature, as plain values."""
        return [
            {
                "group": name,
                "feature": one.name,
                "estimate": one.estimate,
                "standard_error": one.standard_error,
                "low": one.low,
                "high": one.high,
                "rounds": fit.n_rounds,
                "burn_in": fit.burn_in,
                "agreement": fit.agreement,
            }
            for name, fit in self.fits.items()
            for one in fit.coefficients
        ]


def fit_groups(
    logs: Mapping[str, BanditLog],
    observer: SuffixImitation | None = None,
    *,
    pool: bool = False,
    level: float = 0.95,
    workers: int = 1,
    progress: Progress | None = None,
) -> Groups:
    """Recover the policy of each of many learners by suffix imitation.

    Parameters
    ----------
    logs
        By name, as `read_logs(source, by=...)` gives them.
    observer
        `SuffixImitation()` unless given.
    pool
        Draw the weights of all groups towards their mean, by as much as the groups are alike and each is uncertain
        (empirical Bayes). Groups with few rounds gain most. The logs have the same features.
    level
        Coverage that the intervals aim for.
    workers
        Processes to use. With more than one, a script calls this below `if __name__ == "__main__":`.
    progress
        Called with how many groups are done, and of how many.

    A group whose log has no answer, as one that is too short, does not stop the others: `failed` says why.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, shifts = rng.normal(size=(3, 200, 4, 2)), rng.normal(size=(3, 2))
    >>> picks = [(X[g] @ (np.array([1.0, -1.0]) + shifts[g])).argmax(axis=1) for g in range(3)]
    >>> logs = {f"shop {g}": BanditLog.from_dense(X[g], picks[g]) for g in range(3)}
    >>> found = fit_groups(logs, SuffixImitation(burn_in=0.2), pool=True)
    >>> list(found), found["shop 1"].n_rounds
    (['shop 0', 'shop 1', 'shop 2'], 160)
    """
    wanted = SuffixImitation() if observer is None else observer
    if not logs:
        raise InputError("there are no groups: pass at least one log")
    if pool:
        return _pooled(logs, wanted, level, progress)
    found = each_group(partial(fit_group, wanted, level), logs, workers=workers, progress=progress)
    failed = {name: str(one) for name, one in found.items() if isinstance(one, InputError)}
    fits = {name: one for name, one in found.items() if not isinstance(one, InputError)}
    return Groups(fits=fits, failed=failed, level=level, pooled=None)


def each_group(
    work: Callable[[BanditLog], Found],
    logs: Mapping[str, BanditLog],
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[str, Found | InputError]:
    """What some work finds in each log, or why it found nothing; the same whatever the number of workers."""
    found: dict[str, Found | InputError] = {}
    names = list(logs)
    for one in _each(partial(_tried, work), list(logs.values()), min(workers, len(names))):
        found[names[len(found)]] = one
        if progress is not None:
            progress(len(found), len(names))
    return found


def _each(work: Callable[[BanditLog], Found], logs: list[BanditLog], workers: int) -> Iterator[Found]:
    if workers <= 1:
        yield from map(work, logs)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not forked: threads of this process may hold locks.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_one_thread) as pool:
        yield from pool.map(work, logs, chunksize=AT_ONCE)


def _one_thread() -> None:
    """Have a worker use one thread: there are as many workers as cores."""
    os.environ["ONLOOKER_THREADS"] = "1"


def _tried(work: Callable[[BanditLog], Found], log: BanditLog) -> Found | InputError:
    with warnings.catch_warnings():
        # Observers keep them with their answer.
        warnings.simplefilter("ignore", OnlookerWarning)
        try:
            with one_thread() if log.features.shape[0] * log.n_features <= SHORT else nullcontext():
                return work(log)
        except InputError as error:
            return InputError(one_line(error))


def fit_group(observer: SuffixImitation, level: float, log: BanditLog) -> GroupFit:
    """Recover the policy of one of many learners."""
    observer = copy(observer).fit(log)
    return GroupFit(
        policy=observer.policy_,
        coefficients=observer.summary(level).coefficients,
        n_rounds=observer.n_rounds_,
        burn_in=observer.burn_in_,
        agreement=observer.agreement_,
        warnings=observer.warnings_,
    )


def _pooled(
    logs: Mapping[str, BanditLog], observer: SuffixImitation, level: float, progress: Progress | None
) -> Groups:
    if observer.loss != "softmax":
        raise InputError("pooling needs the softmax loss: leave loss out")
    if not isinstance(as_score(observer.score_model), Linear):
        raise InputError(f"score={observer.score_model!r}: weights are pooled of linear scores only, use Linear() here")
    burn_in = as_burn_in(observer.burn_in, l2=observer.l2)
    failed: dict[str, str] = {}
    suffixes: dict[str, tuple[BanditLog, int]] = {}
    for name, log in logs.items():
        try:
            objective, start = suffix_objective(log, burn_in, l2=0.0)
        except InputError as error:
            failed[name] = str(error)
            continue
        if objective.n_rounds:
            suffixes[name] = log.suffix(start), start
        else:
            failed[name] = "no round offers a choice between two arms or more: there is nothing to imitate"
    found = pool({name: log for name, (log, _) in suffixes.items()}, progress)
    fits = {}
    for name, (log, start) in suffixes.items():
        policy = LinearPolicy.of(found.thetas[name], log)
        choices = log[np.flatnonzero(log.n_arms > 1)]
        errors = np.sqrt(np.diag(found.covariances[name]))
        fits[name] = GroupFit(
            policy=policy,
            coefficients=coefficients(feature_labels(log.weight_names, log.n_features), policy.theta, errors, level),
            n_rounds=choices.n_rounds,
            burn_in=start,
            agreement=float(np.mean(choices.may_be(policy.choose(choices)))),
            warnings=(),
        )
    return Groups(fits=fits, failed=failed, level=level, pooled=found)


def overview(groups: Groups) -> str:
    """How many groups there are, and how many have no answer.

    Examples
    --------
    >>> overview(Groups(fits={}, failed={"a": "it is too short"}, level=0.95, pooled=None))
    '0 groups; 1 group without an answer'
    """
    said = counted(len(groups), "group")
    return said if not groups.failed else f"{said}; {counted(len(groups.failed), 'group')} without an answer"
