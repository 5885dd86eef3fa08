"""`onlooker diagnose`: what the learner behind a log values over time, how it picks, and alerts on both."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from onlooker.base.checks import counted
from onlooker.base.errors import InputError
from onlooker.cli import groups, options
from onlooker.cli.console import print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import LEVEL, log_argument, open_log, open_logs, open_scan

if TYPE_CHECKING:
    from onlooker.diagnosis import Diagnosis

IN_WORDS = 12
"""Learners up to which each is also described in words."""


@click.command(short_help="Test what the learner behind LOG values over time, and how it picks.")
@log_argument()
@click.option(
    "--bins",
    default=10,
    show_default=True,
    type=click.IntRange(min=2),
    help="Number of equal parts of the log to compare.",
)
@click.option("--level", default=0.95, show_default=True, type=LEVEL, help="Nominal coverage of the intervals.")
@options.score
@groups.by
@groups.workers
@click.option(
    "--alert",
    "alerts",
    multiple=True,
    metavar="CONDITION",
    help="Exit 3 if CONDITION holds: changed, moving, stable, no-preference, not-enough-evidence, or exploration>0.2. "
    "May be repeated.",
)
@options.memory_limit
@options.column_options
@options.as_json
def diagnose(
    log: str,
    bins: int,
    level: float,
    score: str,
    by: str | None,
    workers: int | None,
    alerts: tuple[str, ...],
    memory_limit: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Say whether what the learner behind LOG values is stable, moves or changed, and how often it explores.

    Examples: onlooker diagnose log.parquet; onlooker diagnose log.csv --by shop --order-by time;
    onlooker diagnose log.parquet --alert changed --alert 'exploration>0.2'
    """
    from onlooker import diagnosis
    from onlooker.diagnosis.result import dates_of
    from onlooker.logs.log import BanditLog

    check_alerts(alerts)
    failed: dict[str, str] = {}
    work = partial(diagnosis.diagnose, bins=bins, level=level, score=score)
    if by is None:
        opened = open_log(log, columns) if memory_limit is None else open_scan(log, columns, memory_limit)
        with progress_bar("diagnosing"):
            found = {"": work(opened.log)}
        assumed = opened.assumed
    else:
        groups.refuse(by, memory_limit=memory_limit)
        several = open_logs(log, by, columns)
        tried, assumed = groups.for_each("diagnosing", work, several.log, workers), several.assumed
        found = {name: one for name, one in tried.items() if not isinstance(one, InputError)}
        failed = {name: str(one) for name, one in tried.items() if isinstance(one, InputError)}
    met = {name: alerts_met(one, alerts) for name, one in found.items()}
    if as_json:
        _print_json(log, by, assumed, found, met, failed)
    elif by is None:
        say(f"{found['']!r}\n")
        dates = dates_of(found[""], opened.log) if isinstance(opened.log, BanditLog) else ""
        if dates:
            say(dates)
        say(f"{log}: {opened.log!r}")
        print_assumptions(assumed)
    else:
        _print_groups(log, by, assumed, found, failed)
    for name, conditions in met.items():
        for condition in conditions:
            say(f"alert: {condition}" if by is None else f"alert: {by} {name}: {condition}", err=True)
    if any(met.values()):
        sys.exit(ALERT)


def _print_json(
    log: str,
    by: str | None,
    assumed: Sequence[str],
    found: Mapping[str, Diagnosis],
    met: Mapping[str, list[str]],
    failed: Mapping[str, str],
) -> None:
    documents = {name: {**one.to_dict(), "alerts": met[name]} for name, one in found.items()}
    if by is None:
        print_json({"log": log, "assumed": assumed, **documents[""]})
    else:
        print_json({"log": log, "by": by, "assumed": assumed, "diagnoses": documents, "failed": dict(failed)})


def _print_groups(
    log: str, by: str, assumed: Sequence[str], found: Mapping[str, Diagnosis], failed: Mapping[str, str]
) -> None:
    """How many learners are in which state, and a line for each; those that moved or changed come first."""
    counts = Counter(one.verdict for one in found.values())
    states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    say(f"{log}: {counted(len(found), 'group')} by {by}: {states}")
    print_assumptions(list(assumed))
    order = {"changed": 0, "moving": 1}
    rows = {
        name: [
            one.verdict,
            str(one.n_rounds),
            "-" if one.values.since is None else str(one.values.since),
            _share(one),
        ]
        for name, one in sorted(found.items(), key=lambda pair: order.get(pair[1].verdict, 2))
    }
    headings = ["values", "rounds", "since round", "exploratory picks"]
    groups.print_table(by, headings, rows, "--json prints all of them")
    for name, one in found.items() if len(found) <= IN_WORDS else ():
        say(f"{by} {name}: {one.sentence}")
    groups.print_failed(by, failed)


def _share(one: Diagnosis) -> str:
    """The share of exploratory picks with its interval."""
    found = one.exploration
    if found.share is None:
        return "-"
    between = "" if found.low is None or found.high is None else f" ({found.low:.0%} to {found.high:.0%})"
    return f"{found.share:.0%}{between}"


ALERT = 3
"""Exit code of a command one of whose alerts holds."""

_EXPLORATION = re.compile(r"exploration\s*([<>])\s*([0-9.]+)\s*(%?)")


def check_alerts(conditions: Sequence[str]) -> None:
    """Refuse a condition that means nothing, before any work is done."""
    for condition in conditions:
        _condition(condition)


def alerts_met(found: Diagnosis, conditions: Sequence[str]) -> list[str]:
    """Those of the conditions that hold, as they were written.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, diagnose, simulate
    >>> found = diagnose(simulate(Environment(5, 10), EpsilonGreedy(0.3), n_rounds=1000).log)
    >>> alerts_met(found, ["changed", "moving", "exploration>0.2", "exploration > 90%"])
    ['exploration>0.2']
    """
    return [condition for condition in conditions if _condition(condition)(found)]


def _condition(text: str) -> Callable[[Diagnosis], bool]:
    from onlooker.diagnosis.result import State

    state = text.strip().replace("-", " ")
    if state in get_args(State):
        return lambda found: found.values.state == state
    matched = _EXPLORATION.fullmatch(text.strip())
    if matched is None or matched[2].count(".") > 1 or matched[2] == ".":
        states = ", ".join(one.replace(" ", "-") for one in get_args(State))
        raise InputError(
            f"--alert {text}: is not a condition; use one of {states}, or exploration>0.2, exploration<0.01"
        )
    above, limit = matched[1] == ">", float(matched[2]) / (100 if matched[3] else 1)

    def met(found: Diagnosis) -> bool:
        share = found.exploration.share
        return share is not None and (share > limit if above else share < limit)

    return met
