"""`onlooker track`: follow the learner behind a log, say how it explores, go on as the log grows."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.base.checks import counted
from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.base.text import one_line, shown
from onlooker.cli import groups, options
from onlooker.cli.console import CHARTS, check_target, print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import (
    FILE,
    LEVEL,
    Number,
    OneOf,
    located,
    log_argument,
    open_log,
    open_logs,
    open_scan,
    words,
)

if TYPE_CHECKING:
    from onlooker.diagnosis import Diagnosis
    from onlooker.logs.categories import Encoded
    from onlooker.logs.log import BanditLog
    from onlooker.logs.parts import Parts
    from onlooker.logs.policy import LinearPolicy
    from onlooker.observers import TrackingObserver
    from onlooker.observers.summaries import TrackingSummary
    from onlooker.observers.tracking import Exploration
    from onlooker.report.page import Table


_USE = "use auto, or a family with its constant as in ucb:1.0, ts:20, lapse:0.05 or softmax:0.5"


@click.command(short_help="Follow the learner behind LOG over time; how it explores.")
@log_argument()
@click.option(
    "--exploration",
    shell_complete=words("auto"),
    help="Exploration: auto (the default), ucb:1.0, ts:20, lapse:0.05 (random in 5% of rounds), softmax:0.5.",
)
@click.option("--ridge", type=Number(1e-9, 1e9), help="The learner's own ridge penalty; 1 by default.")
@click.option("--level", default=0.95, show_default=True, type=LEVEL, help="Nominal coverage of the intervals.")
@click.option(
    "--out", type=FILE, metavar="FILE", help="Save the policy as JSON; with --by, a table (.csv, .parquet, .jsonl)."
)
@groups.by
@groups.workers
@click.option(
    "--state", type=FILE, metavar="FILE", help="Resume from this file if it exists, and save the new state there."
)
@click.option(
    "--repeated",
    default="skip",
    show_default=True,
    type=OneOf(["skip", "follow"]),
    help="Rounds that the state has seen before: skip them, or follow them as new ones.",
)
@click.option(
    "--gaps",
    type=OneOf(["ids", "times"]),
    help="Rounds are lost where ids skip numbers, or times (--order-by) leave a gap: move on over them.",
)
@click.option("--chart", type=FILE, metavar="FILE", help="Plot the estimate over time (.svg or .png).")
@options.memory_limit
@options.column_options
@options.as_json
def track(
    log: str,
    exploration: str | None,
    ridge: float | None,
    level: float,
    out: str | None,
    by: str | None,
    workers: int | None,
    state: str | None,
    repeated: str,
    gaps: str | None,
    chart: str | None,
    memory_limit: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Follow the learner behind LOG round by round: its weights over time, and how it explores.

    Examples: onlooker track log.parquet --chart path.svg; onlooker track today.parquet --state state.json
    """
    table = () if by is None else groups.TABLES
    for flag, path, suffixes in (("--out", out, table), ("--state", state, ()), ("--chart", chart, CHARTS)):
        check_target(flag, path, suffixes, log=log)
    if by is not None:
        groups.refuse(by, state=state, chart=chart, memory_limit=memory_limit)
        observer, _ = _observer(None, exploration, ridge)
        _track_groups(log, by, observer, columns, level=level, gaps=gaps, workers=workers, out=out, as_json=as_json)
        return
    _check_gaps(gaps, state, memory_limit)
    with _held(state):
        observer, before = _observer(state, exploration, ridge)
        aside = [] if state is None or not before else like_before(log, columns, observer.policy_, state)
        opened = open_log(log, columns) if memory_limit is None else open_scan(log, columns, memory_limit)
        rounds, assumed = opened.log, opened.assumed
        if before and opened.format.by_name:
            _take_new(observer, rounds)
        if state is not None:
            from onlooker.base.memory_limit import STATE
            from onlooker.logs.log import check_room

            # Before the work, not after it.
            check_room(rounds, STATE)
        _follow(observer, rounds, repeated, gaps)
        if not observer.n_choices_:
            raise InputError(f"{log}: no round offers a choice between two arms or more, there is nothing to follow")
        if gaps is not None:
            assumed.append(_lost(gaps, observer.n_lost_, observer.n_rounds_))
        summary = observer.summary(level)
        verdict = _diagnosed(rounds, level)
        drawn = chart if chart is not None and _draw(observer, chart) else None
        if out is not None:
            observer.policy_.save(out)
        # Last: should anything before fail, the same command can be given again.
        if state is not None and observer.n_rounds_ > before:
            observer.save(state)
    assumed += aside
    counts = _counts(observer, before)
    if as_json:
        written = {"out": out, "state": state, "chart": drawn}
        kept = ("values", "exploration", "sentence", "notes")
        answers = verdict and {name: value for name, value in verdict.to_dict().items() if name in kept}
        print_json({"log": log, "assumed": assumed, **counts, **written, **summary.to_dict(), "diagnosis": answers})
        return
    say(f"{log}: {rounds!r}")
    print_assumptions(assumed)
    if before:
        print_assumptions([f"goes on after {before} rounds kept in {state}", *_repeats(counts)])
    _print(summary)
    if verdict is not None:
        _print_answers(verdict, log if before else None)
    for what, path in (("path drawn to", drawn), ("policy saved to", out), ("state kept in", state)):
        if path is not None:
            say(f"{what} {path}")


def _check_gaps(gaps: str | None, state: str | None, memory_limit: str | None) -> None:
    """Refuse `--gaps` together with options that read the log in pieces."""
    if gaps is not None and (state is not None or memory_limit is not None):
        flag = "--memory-limit" if state is None else "--state"
        raise InputError(f"--gaps {gaps}: needs the whole log at once, so leave {flag} out")


def _follow(observer: TrackingObserver, rounds: BanditLog | Parts, repeated: str, gaps: str | None) -> None:
    """Follow the rounds. Warnings are not shown: the summary lists them, and the output counts skipped rounds."""
    with warnings.catch_warnings(), progress_bar("following") as progress:
        warnings.simplefilter("ignore", OnlookerWarning)
        if gaps is None:
            observer.partial_fit(rounds, repeated=repeated, progress=progress)
        else:
            observer.fit(rounds, gaps=gaps, progress=progress)


def _track_groups(
    log: str,
    by: str,
    observer: TrackingObserver,
    columns: dict[str, Any],
    *,
    level: float,
    gaps: str | None,
    workers: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Follow every learner on its own; print one table of results."""
    opened = open_logs(log, by, columns)
    if gaps == "ids":
        _check_own_ids(opened.log, by)
    tried = groups.for_each("following", partial(_followed, observer, level, gaps), opened.log, workers)
    found = {name: one for name, one in tried.items() if not isinstance(one, InputError)}
    failed = {name: str(one) for name, one in tried.items() if isinstance(one, InputError)}
    groups.check_some(log, by, found, failed)
    if gaps is not None:
        of = sum(one.n_rounds for one in found.values())
        opened.assumed.append(_lost(gaps, of - sum(opened.log[name].n_rounds for name in found), of))
    if out is not None:
        kept = ("name", "estimate", "standard_error", "low", "high")
        rows = [
            {"group": name, "rounds": one.n_rounds} | {("feature" if k == "name" else k): getattr(c, k) for k in kept}
            for name, one in found.items()
            for c in one.coefficients
        ]
        groups.write_table(rows, out)
    if as_json:
        written = {"groups": {name: one.to_dict() for name, one in found.items()}, "failed": failed}
        print_json({"log": log, "by": by, "out": out, "assumed": opened.assumed, **written})
        return
    say(f"{log}: {counted(len(opened.log), 'group')} by {by}")
    print_assumptions(opened.assumed)
    cells = {
        name: [
            str(one.n_rounds),
            f"{one.foreseen:.0%}",
            one.families[0].words if one.fits else "none is proved",
            "-" if one.settled_round is None else str(one.settled_round),
        ]
        for name, one in found.items()
    }
    headings = ["rounds", "picks predicted", "explores by", "stable since"]
    groups.print_table(by, headings, cells, "--json prints all of them")
    groups.print_failed(by, failed)
    if out is not None:
        say(f"table of all groups written to {out}")


def _lost(gaps: str, n_lost: int, n_rounds: int) -> str:
    """Describe how many rounds were lost."""
    return (
        f"gaps by {gaps}: {counted(n_lost, 'round')} of {n_rounds:,} were lost, and the learner is "
        "taken to have learned there from picks like those nearby"
    )


def _check_own_ids(logs: dict[str, BanditLog], by: str) -> None:
    """Refuse round ids that no two groups share: they count the rounds of all groups, not those that one lost."""
    ids = [set(log.round_ids.tolist()) for log in logs.values() if log.round_ids is not None]
    if len(ids) > 1 and len(set().union(*ids)) == sum(map(len, ids)):
        raise InputError(
            f"--gaps ids: no two groups by {by} share a round id, so ids count the rounds of all groups, and a group's "
            "own gaps are not known. Number the rounds of every group by themselves"
        )


def _followed(observer: TrackingObserver, level: float, gaps: str | None, log: BanditLog) -> TrackingSummary:
    found = type(observer)(**observer.get_params(deep=False)).fit(log, gaps=gaps)
    if not found.n_choices_:
        raise InputError("no round offers a choice between two arms or more, there is nothing to follow")
    return found.summary(level, families=False)


def _take_new(observer: TrackingObserver, rounds: Encoded) -> None:
    """Add the features that rounds name for the first time: they were 0 before."""
    from onlooker.logs.categories import Encoding

    policy = observer.policy_
    if policy.feature_names is None or rounds.feature_names is None or policy.crossing is not None:
        return
    kept, levels = Encoding.of(observer.policy_), rounds.categories or {}
    known = kept.grown({column: levels[column] for column in kept.categories if column in levels})
    new = [name for name in rounds.feature_names if name not in known.feature_names]
    if new:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OnlookerWarning)
            observer.add_features(new)


def _counts(observer: TrackingObserver, before: int) -> dict[str, int]:
    return {
        "rounds_before": before,
        "rounds_skipped": observer.n_skipped_,
        "rounds_followed": observer.n_rounds_ - before,
        "rounds_unknown": observer.n_unknown_,
    }


def _repeats(counts: dict[str, int]) -> Iterator[str]:
    """Notes about rounds that were followed before."""
    skipped, followed = counts["rounds_skipped"], counts["rounds_followed"]
    if counts["rounds_unknown"]:
        yield (
            f"the state's first {counted(counts['rounds_unknown'], 'round')} were followed by release 0.1, which kept "
            "no record of them: should LOG hold some, they count twice"
        )
    if skipped and followed:
        yield f"skips {counted(skipped, 'round')} that it has followed before, follows {followed} new"
    elif skipped:
        yield f"nothing is new: skips {counted(skipped, 'round')} that it has followed before, the state stays as it is"


@contextmanager
def _held(state: str | None) -> Iterator[None]:
    """Keep other processes from a state until what was read of it has been written back."""
    from onlooker.base.files import locked

    with ExitStack() as held:
        if state is not None:
            target = Path(os.path.realpath(state))
            # Shortened, so that a name as long as the system allows still has a lock beside it.
            lock = target.parent / f".{target.name[:200]}.lock"
            try:
                held.enter_context(locked(lock, Path(state), "another state"))
            except OSError as error:
                raise InputError(f"{shown(state)}: cannot be locked ({one_line(error)}): name another place") from error
        yield


def _observer(state: str | None, exploration: str | None, ridge: float | None) -> tuple[TrackingObserver, int]:
    """The observer to go on with, and how many rounds it has seen."""
    from onlooker.observers import TrackingObserver

    wanted = None if exploration is None else _parsed(exploration)
    if state is None or not Path(state).exists():
        return TrackingObserver(exploration=wanted or "auto", ridge=1.0 if ridge is None else ridge), 0
    observer = TrackingObserver.load(state)
    for option, now, kept in (("exploration", wanted, observer.exploration), ("ridge", ridge, observer.ridge)):
        if now is not None and now != kept:
            message = f"{state} was made with {kept!r}: leave the option out, or name a new state"
            raise InputError(f"--{option}: {message}")
    return observer, observer.n_rounds_


def _parsed(text: str) -> str | Exploration:
    from onlooker.observers.tracking import FAMILIES

    if text == "auto":
        return text
    name, _, constant = text.partition(":")
    known = {family.lower(): made for family, made in FAMILIES.items()}
    if name not in known:
        raise InputError(f"--exploration {text}: {_USE}")
    try:
        value = float(constant)
    except ValueError:
        raise InputError(f"--exploration {text}: {constant!r} is not a number; {_USE}") from None
    return known[name](value)


def _draw(observer: TrackingObserver, path: str) -> bool:
    """Draw the path; False if there is none."""
    from onlooker.report.plots import write_charts
    from onlooker.report.plots.results import tracking_charts

    charts = tracking_charts(observer)
    if charts:
        write_charts(charts, path)
    else:
        say(f"warning: {path} is not drawn: no direction was found", err=True)
    return bool(charts)


def _print(summary: TrackingSummary) -> None:
    """Print the answer as a sentence, the families and the direction."""
    from onlooker.report.log_page import families_table

    say("\n" + "\n".join(summary.words))
    say("")
    if summary.named:
        _print_families(families_table(summary))
    say("\n" + "\n".join(line for line in str(summary).splitlines() if line not in summary.words))


def _diagnosed(rounds: BanditLog | Parts, level: float) -> Diagnosis | None:
    """The answers of `diagnose`; None where a log can be followed but not diagnosed."""
    from onlooker.diagnosis import diagnose

    try:
        with progress_bar("diagnosing"):
            return diagnose(rounds, level=level)
    except InputError:
        return None


def _print_answers(verdict: Diagnosis, part: str | None) -> None:
    """What `diagnose` answers, which supposes no family: what the learner values over time, and how it picks."""
    say("\n" + ("" if part is None else f"of the rounds in {part}: ") + verdict.sentence)
    for note in verdict.notes:
        say(f"note: {note}")


def _print_families(table: Table) -> None:
    from onlooker.base.text import text_table

    # What fits into 80 columns: in words once, and the evidence by what it lacks.
    kept = [place for place, column in enumerate(table.columns) if column.title != "log-evidence"]
    columns = [table.columns[place] for place in kept]
    lines = [[column.title for column in columns], *([row[place] for place in kept] for row in table.text())]
    for line in lines:
        line[0] = line[0].partition(" (")[0]
    for text in text_table(lines, "  ".join(">" if column.align == "right" else "<" for column in columns)):
        say(text)


def like_before(path: str, columns: dict[str, Any], policy: LinearPolicy, state: str) -> list[str]:
    """Encode a log as those before it; return notes about the options that this overrides."""
    from onlooker.formats.opening import find_format
    from onlooker.logs.categories import Encoding, Growing

    if columns["like"] is not None or policy.feature_names is None:
        return []
    if policy.crossing is not None:
        columns |= {"like": policy, "categories": (), "features": ()} if policy.crossing.named else {}
        return []
    place = located(path, columns)
    with place.said():
        if "like" not in find_format(place.files[0]).takes:
            return []
    kept = Encoding.of(policy).columns
    named = [*(columns["features"] or ()), *(columns["categories"] or ())]
    absent = [name for name in kept if name not in named]
    if columns["features"] and absent and not columns["cross"]:
        raise InputError(
            f"--feature: {state} has the feature {absent[0]!r} too: name all of its features, or none to have them all"
        )
    columns |= {"like": Growing(policy.feature_names, policy.categories), "features": (), "categories": ()}
    past = [] if columns["cross"] else [name for name in dict.fromkeys(named) if name not in kept]
    return [f"ignored, as {state} does not have it: {name!r}" for name in past]
