"""Comparison of observers on one log, and with the learner itself where the truth is known."""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.base.memory_limit import FITTING
from onlooker.base.text import text_table
from onlooker.base.threads import preparation
from onlooker.base.types import Progress, Vector
from onlooker.evaluation.metrics import agreement, direction_error, information_share, predictive_regret
from onlooker.evaluation.peak_memory import Peak, peak_memory
from onlooker.evaluation.propensities import predicted_ahead
from onlooker.imitation.sweep import BurnInSweep
from onlooker.logs.log import BanditLog, check_room
from onlooker.logs.policy import LinearPolicy, Policy
from onlooker.observers import Observer
from onlooker.observers.methods import find_methods


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The truth, known only in a simulation."""

    theta_star: Vector
    """True parameter of the rewards."""

    test_log: BanditLog
    """Fresh offers to choose from."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One observer's result. What needs the truth, or does not apply, is None."""

    name: str
    """Of the observer."""
    direction_error: float | None
    """Distance to the true direction, where a direction was found."""
    predictive_regret: float | None
    """Reward missed per round on fresh offers."""
    agreement: float
    """With the learner's picks over the last tenth of the log."""
    share: float | None = None
    """Information share one step ahead: 0 for random guessing, 1 if every pick was predicted with certainty."""
    burn_in: int | None = None
    """Rounds that it discarded; None if it never discards any."""
    seconds: float | None = None
    """Time of the fit."""
    peak_mb: float | None = None
    """Peak memory of the fit, beyond what was used before, where it was measured."""
    warnings: tuple[str, ...] = ()
    """Warnings of the observer."""


COLUMNS = (
    ("observer", "name", ""),
    ("burn-in", "burn_in", "d"),
    ("direction error", "direction_error", ".4f"),
    ("predictive regret", "predictive_regret", ".6f"),
    ("agreement", "agreement", ".3f"),
    ("share ahead", "share", ".1%"),
    ("seconds", "seconds", ".2f"),
)
"""Of a comparison's table: heading, field of `Row`, format."""

MEMORY = ("peak MB", "peak_mb", ".0f")
"""One more, where memory was measured."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison:
    """One row per observer, in the order in which they were given; printing it shows the table."""

    rows: tuple[Row, ...]

    def __repr__(self) -> str:
        columns = (*COLUMNS, MEMORY)
        known = [column for column in columns if any(getattr(row, column[1]) is not None for row in self.rows)]
        lines = [[heading for heading, _, _ in known]]
        for row in self.rows:
            values = [(getattr(row, field), style) for _, field, style in known]
            lines.append(["" if value is None else format(value, style) for value, style in values])
        return "\n".join(text_table(lines, "<" + "  >" * (len(known) - 1), rule=True))

    def __getitem__(self, name: str) -> Row:
        """Row of the observer with this name."""
        return next(row for row in self.rows if row.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def default_observers() -> dict[str, Observer]:
    """The observers that a comparison runs by default."""
    return {method.title: method.make() for method in find_methods(["naive", "rule", "auto", "tracking"])}


def compare(
    log: BanditLog,
    observers: Mapping[str, Observer] | None = None,
    *,
    truth: Truth | None = None,
    memory: bool = False,
    ahead: Collection[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Fit every observer to the log and evaluate the result; `memory` measures each fit's, where the system reports it.

    `ahead` names observers whose information share one step ahead is measured, which takes about three fits more.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.observers import SuffixImitation
    >>> from onlooker.simulation.play import simulate
    >>> environment = Environment(5, 20)
    >>> simulation = simulate(environment, LinUCB(), n_rounds=2000)
    >>> truth = Truth(theta_star=environment.theta_star, test_log=environment.test_log(500))
    >>> table = compare(simulation.log, {"keep all": SuffixImitation(burn_in="naive")}, truth=truth)
    >>> table["keep all"].direction_error < 0.2
    True
    """
    if observers is not None and (not isinstance(observers, Mapping) or not observers):
        raise InputError("observers must be named: pass a dictionary such as {'suffix imitation': SuffixImitation()}")
    for name, observer in (observers or {}).items():
        if not hasattr(observer, "fit"):
            raise InputError(
                f"observer {name!r} is a {type(observer).__name__}, which has no fit(log): pass an observer"
            )
    check_room(log, FITTING)
    chosen = default_observers() if observers is None else observers
    rows = []
    for done, (name, observer) in enumerate(chosen.items(), 1):
        try:
            seconds, peak = _measured_fit(observer, log, memory=memory)
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        row = judge(name, observer.policy_, log, truth=truth)
        if name in ahead:
            values = predicted_ahead(observer, log)
            row = replace(row, share=None if values is None else information_share(log, values))
        said, burn_in = getattr(observer, "warnings_", ()), getattr(observer, "burn_in_", None)
        rows.append(replace(row, burn_in=burn_in, seconds=seconds, peak_mb=peak, warnings=said))
        if progress is not None:
            progress(done, len(chosen))
    return Comparison(rows=tuple(rows))


def _measured_fit(observer: Observer, log: BanditLog, *, memory: bool) -> tuple[float, float | None]:
    """Fit, and return the seconds that it took without loading or compiling kernels, and its peak memory in MB."""
    compiled, before = preparation.compiled, preparation.seconds
    with warnings.catch_warnings(), peak_memory() if memory else nullcontext(Peak()) as peak:
        # The rows carry them.
        warnings.simplefilter("ignore", OnlookerWarning)
        started = time.perf_counter()
        observer.fit(log)
        seconds = time.perf_counter() - started - (preparation.seconds - before)
    if memory and preparation.compiled > compiled:
        # The compiler's memory is not the observer's: measure again, now that the kernels are there.
        return _measured_fit(observer, log, memory=memory)
    return seconds, peak.mb


def judge(name: str, policy: Policy, log: BanditLog, *, truth: Truth | None) -> Row:
    """Measure one policy, however it was found."""
    # An observer that found no preference has no direction to be wrong about.
    theta = policy.theta if isinstance(policy, LinearPolicy) else np.zeros(1)
    error = direction_error(theta, truth.theta_star) if truth is not None and theta.any() else None
    regret = None if truth is None else predictive_regret(policy, truth.theta_star, truth.test_log)
    recent = log.suffix(log.n_rounds - max(1, log.n_rounds // 10))
    return Row(name=name, direction_error=error, predictive_regret=regret, agreement=agreement(policy, recent))


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """A burn-in sweep measured against the truth."""

    sweep: BurnInSweep
    """Thetas by alpha."""

    rows: tuple[Row, ...]
    """One per alpha that leaves rounds to imitate; `burn_in` says which."""

    oracle: Row
    """The one with the smallest direction error: a choice in hindsight, so its error is optimistic."""


def judge_sweep(sweep: BurnInSweep, log: BanditLog, *, truth: Truth) -> Curve:
    """Measure every theta of a sweep."""
    rows = tuple(
        replace(judge(f"alpha = {alpha:.3g}", sweep.policy(i), log, truth=truth), burn_in=int(sweep.burn_ins[i]))
        for i, alpha in enumerate(sweep.alphas)
        if np.isfinite(sweep.thetas[i]).all()
    )
    best = min(rows, key=lambda row: np.inf if row.direction_error is None else row.direction_error)
    return Curve(sweep=sweep, rows=rows, oracle=replace(best, name="suffix imitation, oracle in hindsight"))
