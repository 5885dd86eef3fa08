"""`onlooker compare`: observers side by side on one log."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from onlooker.cli import options
from onlooker.cli.console import prepare_kernels, print_comparison, print_json, progress_bar
from onlooker.cli.opening import open_log, print_assumptions
from onlooker.errors import InputError


@click.command()
@click.argument("log", required=False)
@options.simulation_options
@options.seed
@options.column_options
@options.as_json
def compare(
    log: str | None,
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

    Examples: onlooker compare log.parquet; onlooker compare --learner lints --rounds 5000 --seed 3
    """
    from onlooker import comparison
    from onlooker.environment import Environment
    from onlooker.study import study

    if log is not None:
        _check_unused("learner", "settings", "n_rounds", "seed", "n_features", "n_arms", "noise")
        rounds, assumed = open_log(log, columns)
        what = f"{log}: {rounds!r}"
        prepare_kernels(rounds.features.dtype.name)
        with progress_bar("observing") as progress:
            found = comparison.compare(rounds, progress=progress)
    else:
        player = options.make_learner(learner, settings)
        environment = Environment(n_features, n_arms, noise, seed=seed)
        assumed = []
        what = f"{player!r} for {n_rounds} rounds, seed {seed}: {n_features} features, {n_arms} arms"
        prepare_kernels()
        found = study(environment, player, n_rounds, seed, watch=progress_bar).comparison
    if as_json:
        print_json({"what": what, "assumed": assumed, **found.to_dict()})
        return
    click.echo(what)
    print_assumptions(assumed)
    print_comparison(found)


def _check_unused(*names: str) -> None:
    """Options that describe a simulation have no meaning beside a log."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            raise InputError(f"{parameter.opts[0]} describes a simulation, but a log was given: leave one of them out")
