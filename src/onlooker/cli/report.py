"""`onlooker report`: the findings about a log's learner, on one page."""

from __future__ import annotations

import shlex
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onlooker.base.defaults import BURN_IN, L2
from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.base.text import redacted
from onlooker.cli import groups, options
from onlooker.cli.console import check_target, flag, in_flags, print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import FILE, LogName, located, log_argument, open_logs

if TYPE_CHECKING:
    from onlooker.formats.opening import Opened
    from onlooker.logs.log import BanditLog
    from onlooker.report.log_analysis import LogAnalysis
    from onlooker.report.page import Source


@click.command(short_help="Write all findings about LOG to one HTML page.")
@log_argument()
@click.option(
    "--out", default="report.html", show_default=True, type=FILE, metavar="FILE", help="Where to write the page."
)
@click.option(
    "--by",
    metavar="COLUMN",
    help="Column that names the learner or restart; each gets its own section, more than a dozen one overview.",
)
@click.option("--pool", is_flag=True, help="With --by and many learners: draw all weights towards their mean.")
@groups.workers
@options.burn_in
@options.score
@options.l2
@options.held_to
@options.column_options
@options.as_json
def report(
    log: str,
    out: str,
    by: str | None,
    pool: bool,
    workers: int | None,
    burn_in: str,
    score: str,
    l2: float,
    as_json: bool,
    **columns: Any,
) -> None:
    """Write one HTML page about LOG: the diagnosis, the weights, when the learner settled, how to use the policy.

    The page is one file that opens offline, without scripts. It contains feature names and weights, but no rows of LOG.

    Examples: onlooker report log.parquet --out report.html; onlooker report visits.csv --round visit --chosen bought
    """
    check_target("--out", out, log=log)
    start = options.as_burn_in(burn_in)
    from dataclasses import asdict

    from onlooker.base.memory_limit import FITTING
    from onlooker.formats.places import UnchangedFiles
    from onlooker.logs.log import check_room
    from onlooker.report.groups_page import SECTIONS
    from onlooker.report.log_analysis import analyse
    from onlooker.report.log_page import page_of, write_report
    from onlooker.report.page import Input, Source

    place = located(log, columns)
    # The hashes are of what was read.
    with UnchangedFiles(place.paths, place.pattern).checked():
        opened, heard = _opened(log, by, columns)
        inputs = tuple(Input.of(path, Path(name).name) for path, name in opened.files.items())
        if columns["like"]:
            inputs = (*inputs, Input.of(columns["like"]))
    logs, assumed = opened.log, opened.assumed
    source = Source(
        name=Path(log).resolve().name if Path(log).exists() else str(log),
        by=by,
        inputs=inputs,
        assumed=tuple(assumed),
        warnings=tuple(heard),
        command=shlex.join(["onlooker", *map(redacted, sys.argv[1:])]),
        saving=_saving(log, by, next(iter(logs)), columns, burn_in, score, l2),
    )
    for rounds in logs.values():
        check_room(rounds, FITTING)
    if len(logs) > SECTIONS and score != "linear":
        raise InputError(f"--score: is for {SECTIONS} learners at most, leave it out")
    if len(logs) > SECTIONS:
        _overview(log, logs, source, out, burn_in=start, l2=l2, pool=pool, workers=workers, as_json=as_json)
        return
    if pool:
        raise InputError(f"--pool: is for more than {SECTIONS} learners, which --by COLUMN names: leave it out")
    found = {}
    for name, rounds in logs.items():
        try:
            found[name] = analyse(rounds, burn_in=start, l2=l2, score=score, watch=progress_bar)
        except InputError as error:
            raise InputError(f"{log}: {f'{by} {name}: ' if by is not None else ''}{error}") from error
    write_report(page_of(found, source), out)
    if as_json:
        learners = {name: one.to_dict() for name, one in found.items()}
        shared = {"log": log, "out": out, "assumed": assumed, "inputs": [asdict(one) for one in source.inputs]}
        print_json(shared | (learners[""] if by is None else {"by": by, "learners": learners}))
        return
    _print(found, log, by, assumed, out)


def _print(found: dict[str, LogAnalysis], log: str, by: str | None, assumed: list[str], out: str) -> None:
    """Print the diagnosis and warnings of each learner, the assumptions, and where the report is."""
    for name, one in found.items():
        say(one.diagnosis.sentence if by is None else f"{by} {name}: {one.diagnosis.sentence}")
        for text in one.warnings:
            say(f"warning: {text}" if by is None else f"warning ({by} {name}): {text}", err=True)
    say(f"{log}:")
    print_assumptions(assumed)
    say(f"report: {out}")


def _overview(
    log: str,
    logs: dict[str, BanditLog],
    source: Source,
    out: str,
    *,
    burn_in: str | float,
    l2: float,
    pool: bool,
    workers: int | None,
    as_json: bool,
) -> None:
    """One page about many learners, without sections for each."""
    from dataclasses import asdict

    from onlooker.observers import SuffixImitation
    from onlooker.observers.groups import fit_groups
    from onlooker.report.groups_page import analyse_group, groups_page
    from onlooker.report.log_page import write_report

    tried = groups.for_each("analysing", partial(analyse_group, burn_in=burn_in, l2=l2), logs, workers)
    found = {name: one for name, one in tried.items() if not isinstance(one, InputError)}
    failed = {name: str(one) for name, one in tried.items() if isinstance(one, InputError)}
    pooled = None
    if pool:
        with progress_bar("pooling") as progress:
            kept = {name: logs[name] for name in found}
            pooled = fit_groups(kept, SuffixImitation(burn_in=burn_in, l2=l2), pool=True, progress=progress)
        failed |= {name: why for name, why in pooled.failed.items() if found.pop(name, None)}
    page = groups_page(found, failed, source, pooled)
    write_report(page, out)
    if as_json:
        learners = {
            name: {
                "verdict": one.diagnosis.verdict,
                "rounds": one.n_rounds,
                "coefficients": [asdict(c) for c in (one.fit if pooled is None else pooled[name]).coefficients],
            }
            for name, one in found.items()
        }
        print_json({"log": log, "out": out, "by": source.by, "assumed": list(source.assumed), "learners": learners})
        return
    say(page.lead)
    groups.print_failed(source.by or "", failed)
    say(f"{log}:")
    print_assumptions(list(source.assumed))
    say(f"report: {out}")


def _opened(path: str, by: str | None, columns: dict[str, Any]) -> tuple[Opened[dict[str, BanditLog]], list[str]]:
    """The logs by name, a single one without; and the warnings while they were read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OnlookerWarning)
        opened = open_logs(path, by, columns)
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return opened, [in_flags(str(one.message)) for one in caught if issubclass(one.category, OnlookerWarning)]


def _saving(path: str, by: str | None, name: str, columns: dict[str, Any], burn_in: str, score: str, l2: float) -> str:
    """Lines that save the policy: a command, or Python where a file holds several logs."""
    given = {option: _shown(value) for option, value in columns.items() if value}
    names = path.words if isinstance(path, LogName) else [path]
    if by is None:
        words = ["onlooker", "fit", *names, "--out", "policy.json"]
        for option, value in given.items():
            for one in value if isinstance(value, tuple) else (value,):
                words += [flag(option), one]
        words += [] if burn_in == BURN_IN else ["--burn-in", burn_in]
        words += [] if score == "linear" else ["--score", score]
        words += [] if l2 == L2 else ["--l2", repr(l2)]
        return f"$ {shlex.join(words)}"
    like = given.pop("like", None)
    arguments = [
        repr(names[0] if len(names) == 1 else names),
        f"by={by!r}",
        *(f"{k}={list(v) if isinstance(v, tuple) else v!r}" for k, v in given.items()),
    ]
    if like is not None:
        arguments.append(f"like=LinearPolicy.load({like!r})")
    settings = [f"burn_in={options.as_burn_in(burn_in)!r}", *([] if l2 == L2 else [f"l2={l2!r}"])]
    settings += [] if score == "linear" else [f"score={score!r}"]
    return "\n".join(
        (
            "from onlooker import LinearPolicy, SuffixImitation, read_logs",
            "",
            f"log = read_logs({', '.join(arguments)})[{name!r}]",
            f"SuffixImitation({', '.join(settings)}).fit(log).policy_.save('policy.json')",
        )
    )


def _shown(value: Any) -> Any:
    """The value of an option as it may be printed: a table of items may be at an address, too."""
    return redacted(value) if isinstance(value, str) else value
