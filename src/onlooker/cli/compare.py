"""`onlooker compare`: observers side by side on one log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from onlooker.base.errors import InputError
from onlooker.cli import options
from onlooker.cli.console import CHARTS, TABLES, check_target, print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import FILE, log_argument, method_names, open_log

if TYPE_CHECKING:
    from onlooker.evaluation.comparison import Comparison, Row
    from onlooker.observers.methods import Method


@click.command(short_help="Compare observers on LOG or on a simulated log.")
@log_argument(metavar="[LOG]...", required=False)
@click.option(
    "--observer",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=method_names,
    help="Run this observer; repeat for more.",
)
@click.option("--all", "everything", is_flag=True, help="Also run the slow observers: minutes for 10,000 rounds.")
@click.option(
    "--out", type=FILE, metavar="TABLE.csv", help="Also write the table as CSV, safe to open in a spreadsheet."
)
@click.option("--chart", type=FILE, metavar="FILE", help="Also draw a chart (.png or .svg).")
@options.simulation_options
@options.seed
@options.held_to
@options.column_options
@options.as_json
def compare(
    log: str | None,
    names: tuple[str, ...],
    everything: bool,
    out: str | None,
    chart: str | None,
    learner: str,
    settings: tuple[str, ...],
    n_rounds: int,
    seed: int,
    as_json: bool,
    n_features: int,
    n_arms: int,
    noise: float,
    **columns: Any,
) -> None:
    """Run the observers on LOG, or on a simulated log where the truth is known.

    By default all fast observers run, which takes seconds: naive, rule, auto (suffix imitation), tracking, dynamic,
    ibcb, ibcb-logit, blocks, change-point and ranked. The slow ones are zero-one, bayesian and nonparametric. How well
    each fast one predicts every pick from those before it needs no truth: "share ahead", from 0% for random guessing.

    Examples: onlooker compare log.parquet; onlooker compare --learner lints --rounds 5000 --seed 3;
    onlooker compare --observer auto --observer ibcb --out table.csv --chart chart.png
    """
    from onlooker.base.memory_limit import FITTING
    from onlooker.evaluation import comparison
    from onlooker.evaluation.study import study
    from onlooker.logs.log import check_room
    from onlooker.simulation.environment import Environment

    methods = _methods(names, everything=everything)
    check_target("--out", out, TABLES, log=log)
    check_target("--chart", chart, CHARTS, log=log)
    if log is not None:
        _check_unused("learner", "settings", "n_rounds", "seed", "n_features", "n_arms", "noise")
        opened = open_log(log, columns)
        rounds, assumed = opened.log, opened.assumed
        if not names:
            unable = ", ".join(method.name for method in methods if not method.takes(rounds))
            assumed = [*assumed, f"left out, since they need every pick and offer: {unable}"] if unable else assumed
            methods = tuple(method for method in methods if method.takes(rounds))
        what = f"{log}: {rounds!r}"
        check_room(rounds, FITTING)
        with progress_bar("observing") as progress:
            observers = {method.title: method.make() for method in methods}
            found = comparison.compare(rounds, observers, memory=True, ahead=_quick(methods), progress=progress)
    else:
        player = options.make_learner(learner, settings)
        environment = Environment(n_features, n_arms, noise, seed=seed)
        assumed = []
        what = f"{player!r} for {n_rounds} rounds, seed {seed}: {n_features} features, {n_arms} arms"
        played = study(
            environment,
            player,
            n_rounds,
            seed,
            observers={method.title: method.make() for method in methods},
            memory=True,
            ahead=_quick(methods),
            watch=progress_bar,
        )
        found = played.comparison
    _write(found, out, chart, simulated=log is None)
    if as_json:
        print_json({"what": what, "assumed": assumed, "out": out, "chart": chart, **found.to_dict()})
        return
    say(what)
    print_assumptions(assumed)
    print_comparison(found)
    for path in filter(None, (out, chart)):
        say(f"written: {path}")


def _methods(names: tuple[str, ...], *, everything: bool) -> tuple[Method, ...]:
    from onlooker.observers.methods import METHODS, find_methods

    if names and everything:
        raise InputError("--all runs every observer, but --observer names some: leave one of them out")
    if names:
        return find_methods(names)
    return tuple(method for method in METHODS if method.quick or everything)


def _quick(methods: tuple[Method, ...]) -> list[str]:
    """Those whose share one step ahead is measured: it takes several fits."""
    return [method.title for method in methods if method.quick]


def _write(found: Comparison, out: str | None, chart: str | None, *, simulated: bool) -> None:
    rows = [asdict(row) for row in found.rows]
    if out is not None:
        from onlooker.evaluation.comparison import COLUMNS, MEMORY
        from onlooker.experiments.tables import write_csv

        fields = [field for _, field, _ in (*COLUMNS, MEMORY)]
        write_csv(out, [{field: row[field] for field in fields} for row in rows], fields)
    if chart is not None:
        from onlooker.report.plots import comparison_charts, write_charts

        write_charts(comparison_charts(rows, reference=found.rows[0].name if simulated else None), chart)


def _check_unused(*names: str) -> None:
    """Options that describe a simulation have no meaning beside a log."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{parameter.opts[0]} describes a simulation, but a log was given: leave one of them out")


_TRUTH_KNOWN = """
direction error: distance to the true direction; predictive regret: reward missed per round on fresh offers;
agreement: with the learner's own picks over the last tenth of the log, which the observers saw.
Small errors and regrets are good, and large agreements."""


_TRUTH_UNKNOWN = """
agreement: with the learner's own picks over the last tenth of the log, which the observers saw.
What the learner should have learned is not known, so errors cannot be given."""


_AHEAD = """share ahead: how much of what random guessing leaves open about a pick is known from the picks before it.
100% is certainty, which nobody who watches a learner that explores can reach. It needs no truth."""


_MEMORY = "peak MB: memory that the fit took at its most, beyond the log itself."


def print_comparison(found: Comparison) -> None:
    """Print the table, what its columns mean, and the observers' warnings."""
    known = any(row.direction_error is not None for row in found.rows)
    say(f"{found}\n{_TRUTH_KNOWN if known else _TRUTH_UNKNOWN}")
    if any(row.share is not None for row in found.rows):
        say(_AHEAD)
    if any(row.peak_mb is not None for row in found.rows):
        say(_MEMORY)
    _print_warnings(found.rows)


def _print_warnings(rows: Sequence[Row]) -> None:
    """Print the observers' warnings, each sentence once."""
    said: dict[str, list[str]] = {}
    for row in rows:
        for text in row.warnings:
            said.setdefault(text, []).append(row.name)
    for text, names in said.items():
        say(f"warning ({'; '.join(names)}): {text}", err=True)
