"""`onlooker fit`: what the system behind a log values."""

from __future__ import annotations

import warnings
from typing import Any

import click

from onlooker.base.errors import OnlookerWarning
from onlooker.cli import options
from onlooker.cli.console import check_target, print_json, progress_bar, say
from onlooker.cli.opening import opened, print_assumptions
from onlooker.cli.options import FILE, LEVEL, OneOf, check_engine, engine_options


@click.command(short_help="Estimate what the learner behind LOG values, with intervals.")
@click.argument("log", type=FILE)
@options.burn_in
@click.option(
    "--loss",
    default="softmax",
    show_default=True,
    type=OneOf(["softmax", "zero_one"]),
    help="zero_one minimises missed picks by search (algorithm 1): slow, without intervals.",
)
@options.l2
@click.option(
    "--covariance",
    default="sandwich",
    show_default=True,
    type=OneOf(["sandwich", "model"]),
    help="Covariance estimate behind the intervals.",
)
@click.option("--level", default=0.95, show_default=True, type=LEVEL, help="Nominal coverage of the intervals.")
@click.option("--out", type=FILE, metavar="FILE", help="Save the policy as JSON.")
@options.memory_limit
@engine_options
@options.seed
@options.column_options
@options.as_json
def fit(
    log: str,
    burn_in: str,
    loss: str,
    l2: float,
    covariance: str,
    level: float,
    out: str | None,
    memory_limit: str | None,
    engine: str,
    address: str | None,
    seed: int,
    as_json: bool,
    **columns: Any,
) -> None:
    """Estimate the policy behind LOG by suffix imitation: one weight per feature, with intervals.

    Early rounds, in which the learner still explored, are ignored (--burn-in).

    Examples: onlooker fit log.parquet --out policy.json; onlooker fit 'day*.parquet' --memory-limit 800MB
    """
    check_target("--out", out, log=log)
    check_engine(engine, address)
    from onlooker.observers import SuffixImitation
    from onlooker.observers.suffix_imitation import as_burn_in

    observer = SuffixImitation(
        burn_in=as_burn_in(options.as_burn_in(burn_in), l2=l2), l2=l2, loss=loss, covariance=covariance, seed=seed
    )
    place = opened(log, columns, engine, address, memory_limit)
    with place as (rounds, assumed), warnings.catch_warnings(), progress_bar("fitting") as progress:
        # The summary lists them.
        warnings.simplefilter("ignore", OnlookerWarning)
        observer.fit(rounds, progress=progress)
    summary = observer.summary(level)
    if out is not None:
        observer.policy_.save(out)
    if as_json:
        print_json({"log": log, "out": out, "assumed": assumed, **summary.to_dict()})
        return
    say(f"{log}: {rounds!r}")
    print_assumptions(assumed)
    say(str(summary))
    if out is not None:
        say(f"policy saved to {out}")
