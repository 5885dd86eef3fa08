"""`onlooker propensities`: with what probability the learner behind a log picked each arm."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from onlooker.base.checks import counted
from onlooker.base.errors import InputError, LowOverlapWarning
from onlooker.cli import groups, options
from onlooker.cli.console import CHARTS, check_target, print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import FILE, OneOf, log_argument, open_log, open_logs

if TYPE_CHECKING:
    from onlooker.logs.log import BanditLog

_OF_SAMPLE = "propensities are those among the sampled offers of a round: among all offers each is smaller"
_UNKNOWN = {
    "vw": "costs are not known: the labels have 0 in their place",
    "dsjson": "costs are not known: the labels have 0 in their place",
    "obp": "rewards are not known: add 'reward' before an evaluation",
}


@click.command(short_help="Write LOG with the probability that the learner gave each arm.")
@log_argument()
@click.option("--out", type=FILE, metavar="FILE", required=True, help="Where to write the log with its propensities.")
@click.option(
    "--format",
    "kind",
    type=OneOf(["obp", "vw", "dsjson", "parquet", "csv"]),
    help="How to write it; by default as the name of FILE says.",
)
@click.option(
    "--observer",
    default="auto",
    show_default=True,
    type=OneOf(["auto", "suffix", "tracking", "dynamic"]),
    help="Who predicts the picks; auto weighs all three by how well they do.",
)
@options.score
@click.option("--chart", type=FILE, metavar="FILE", help="Also draw the calibration curve (.png or .svg).")
@groups.by
@groups.workers
@options.held_to
@options.column_options
@options.as_json
def propensities(
    log: str,
    out: str,
    kind: str | None,
    observer: str,
    score: str,
    chart: str | None,
    by: str | None,
    workers: int | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Write LOG with a column `propensity`: how probable each arm was in its round, from the picks before it.

    As a long table (parquet, csv), for the Open Bandit Pipeline (obp: .npz with pscore and pi_b), or for Vowpal Wabbit
    (vw: labels 0:0:propensity; dsjson: p). Costs and rewards are not known and have to be added there.

    Example: onlooker propensities log.parquet --out with_propensities.parquet
    """
    from onlooker.base.memory_limit import FITTING
    from onlooker.evaluation.propensities import propensities as found_for
    from onlooker.formats.propensities import find_format, write_propensities
    from onlooker.logs.log import check_room

    check_target("--out", out, log=log)
    check_target("--chart", chart, CHARTS, log=log)
    try:
        kind = find_format(out, kind)
    except InputError as error:
        raise InputError(f"--out {error}".replace("pass format,", "pass --format,")) from error
    if by is not None:
        groups.refuse(by, chart=chart)
        _write_groups(
            log, by, _observer(observer, score), columns, out=out, kind=kind, workers=workers, as_json=as_json
        )
        return
    opened = open_log(log, columns)
    opened.assumed.extend(_notes([opened.log]))
    check_room(opened.log, FITTING)
    if opened.log.n_arms.max() < 2:
        raise InputError(f"{log}: no round offers a choice between two arms or more, there is nothing to predict")
    with progress_bar("observing") as progress:
        found = found_for(opened.log, _observer(observer, score), progress=progress)
    write_propensities(opened.log, found.values, out, format=kind)
    if chart is not None:
        found.calibration().plot(chart)
    if as_json:
        document = {"log": log, "assumed": opened.assumed, "out": out, "format": kind, "chart": chart}
        print_json({**document, **found.to_dict(), "unknown": _UNKNOWN.get(kind)})
        return
    _print(log, found, kind)
    print_assumptions(opened.assumed)
    for path in filter(None, (out, chart)):
        say(f"written: {path}")


def _write_groups(
    log: str,
    by: str,
    observer: Any,
    columns: dict[str, Any],
    *,
    out: str,
    kind: str,
    workers: int | None,
    as_json: bool,
) -> None:
    """The propensities of many learners in one table, each from its own picks."""
    from onlooker.evaluation.propensities import propensities as found_for
    from onlooker.formats.propensities import TABLES, write_groups

    if kind not in TABLES:
        raise InputError(f"--by {by}: {kind} has no column for the learner: write {' or '.join(TABLES)}")
    opened = open_logs(log, by, columns)
    opened.assumed.extend(_notes(opened.log.values()))
    tried = groups.for_each("observing", partial(found_for, observer=observer), opened.log, workers)
    found = {name: one for name, one in tried.items() if not isinstance(one, InputError)}
    failed = {name: str(one) for name, one in tried.items() if isinstance(one, InputError)}
    groups.check_some(log, by, found, failed)
    write_groups({name: (opened.log[name], one.values) for name, one in found.items()}, by, out, format=kind)
    if as_json:
        learners = {name: one.to_dict() for name, one in found.items()}
        document = {"log": log, "by": by, "assumed": opened.assumed, "out": out, "format": kind}
        print_json({**document, "groups": learners, "failed": failed})
        return
    say(f"{log}: {counted(len(found), 'group')} by {by}")
    print_assumptions(opened.assumed)
    rows = {
        name: [str(one.log.n_rounds), f"{one.share:.1%}", type(one.observer).__name__] for name, one in found.items()
    }
    headings = ["rounds", "information share", "best single observer"]
    groups.print_table(by, headings, rows, "--json prints all of them")
    groups.print_failed(by, failed)
    say(f"written: {out}")


def _notes(logs: Iterable[BanditLog]) -> list[str]:
    """What a sample of the offers means for propensities."""
    return [_OF_SAMPLE] if any(log.offer_probability is not None for log in logs) else []


def _observer(name: str, score: str) -> Any:
    """The observer by its name; `auto` with a score that is not linear is suffix imitation."""
    from onlooker.observers import DynamicImitation, SuffixImitation, TrackingObserver

    makers = {"suffix": SuffixImitation, "tracking": TrackingObserver, "dynamic": DynamicImitation}
    if score == "linear":
        return makers[name]() if name in makers else name
    return makers.get(name, SuffixImitation)(score=score)


def _print(log: str, found: Any, kind: str) -> None:
    say(f"{log}: {found.log!r}")
    name = type(found.observer).__name__
    shares = ", ".join(f"{other} {share:.1%}" for other, share in found.shares.items() if other != name)
    say(f"information share one step ahead: {found.share:.1%} (0% is random guessing, 100% certainty; no truth needed)")
    own = found.shares.get(name, found.share)
    best = f"best single observer in the second half: {name}, overall" if shares else f"observer: {name}"
    say(f"{best} {own:.1%}{f' ({shares})' if shares else ''}")
    fit = found.calibration()
    say(f"calibration: the likeliest arm was picked as often as predicted, to within {fit.misfit:.1%} on average")
    with warnings.catch_warnings():
        # Said here, in the line below.
        warnings.simplefilter("ignore", LowOverlapWarning)
        covered = found.overlap()
    say(f"overlap: {covered.sentence}")
    if covered.is_unreliable:
        say("warning: estimates that divide by these propensities are not reliable", err=True)
    if kind in _UNKNOWN:
        say(_UNKNOWN[kind])
