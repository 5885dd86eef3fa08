"""`onlooker fit`: what the system behind a log values."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import click

from onlooker.base.errors import InputError, OnlookerWarning
from onlooker.cli import groups, options
from onlooker.cli.console import check_target, print_assumptions, print_json, progress_bar, say
from onlooker.cli.options import FILE, LEVEL, OneOf, check_engine, engine_options, log_argument, open_logs, opened

if TYPE_CHECKING:
    from onlooker.observers import SuffixImitation
    from onlooker.observers.groups import Groups


@click.command(short_help="Estimate what the learner behind LOG values, with intervals.")
@log_argument()
@options.burn_in
@click.option(
    "--loss",
    default="softmax",
    show_default=True,
    type=OneOf(["softmax", "zero_one"]),
    help="zero_one minimises missed picks by search (algorithm 1): slow, without intervals.",
)
@options.score
@options.l2
@click.option(
    "--covariance",
    default="sandwich",
    show_default=True,
    type=OneOf(["sandwich", "model"]),
    help="Covariance estimate behind the intervals.",
)
@click.option("--level", default=0.95, show_default=True, type=LEVEL, help="Nominal coverage of the intervals.")
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Save the policy as JSON; with --by, a table (.csv, .parquet, .jsonl).",
)
@groups.by
@click.option("--pool", is_flag=True, help="With --by: draw the weights of all groups towards their mean.")
@groups.workers
@options.memory_limit
@engine_options
@options.seed
@options.column_options
@options.as_json
def fit(
    log: str,
    burn_in: str,
    loss: str,
    score: str,
    l2: float,
    covariance: str,
    level: float,
    out: str | None,
    by: str | None,
    pool: bool,
    workers: int | None,
    memory_limit: str | None,
    engine: str,
    address: str | None,
    seed: int,
    as_json: bool,
    **columns: Any,
) -> None:
    """Estimate the policy behind LOG by suffix imitation: one weight per feature, with intervals.

    Early rounds, in which the learner still explored, are ignored (--burn-in).

    Examples: onlooker fit log.parquet --out policy.json; onlooker fit log.csv --by shop --pool
    """
    check_target("--out", out, () if by is None else groups.TABLES, log=log)
    check_engine(engine, address)
    from onlooker.observers import SuffixImitation

    observer = SuffixImitation(
        burn_in=options.as_burn_in(burn_in),
        l2=l2,
        loss=loss,
        covariance=covariance,
        seed=seed,
        score=score,
    )
    # A rule that cannot be is refused before the log is read.
    observer.burn_in = observer._rule  # noqa: SLF001  no name for users
    if pool and score != "linear":
        raise InputError("--score: weights are pooled of linear scores only, leave out --pool or use --score linear")
    if by is not None:
        groups.refuse(by, memory_limit=memory_limit, engine=engine)
        _fit_groups(log, by, observer, columns, level=level, pool=pool, workers=workers, out=out, as_json=as_json)
        return
    if pool:
        raise InputError("--pool: there is nothing to pool without --by COLUMN, which names the learner of each round")
    place = opened(log, columns, engine, address, memory_limit)
    with place as (rounds, assumed), warnings.catch_warnings(), progress_bar("fitting") as progress:
        # The summary lists them.
        warnings.simplefilter("ignore", OnlookerWarning)
        observer.fit(rounds, progress=progress)
    summary = observer.summary(level)
    if out is not None:
        observer.policy_.save(out)
    choice = observer.score_choice_
    taken = score if choice is None else choice.name
    if as_json:
        print_json({"log": log, "out": out, "assumed": assumed, "score": taken, **summary.to_dict()})
        return
    say(f"{log}: {rounds!r}")
    print_assumptions(assumed)
    if choice is not None:
        say(str(choice))
    if score != "linear":
        say(f"score: {taken}, {observer.policy_!r}" + ABOUT.get(taken, ""))
    say(str(summary))
    if out is not None:
        say(f"policy saved to {out}")


def _fit_groups(
    log: str,
    by: str,
    observer: SuffixImitation,
    columns: dict[str, Any],
    *,
    level: float,
    pool: bool,
    workers: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Fit every learner on its own, or all of them together by partial pooling."""
    from dataclasses import asdict

    from onlooker.observers.groups import fit_groups, overview

    opened = open_logs(log, by, columns)
    n_workers = groups.n_workers(workers, len(opened.log))
    with progress_bar("fitting") as progress:
        found = fit_groups(opened.log, observer, pool=pool, level=level, workers=n_workers, progress=progress)
    groups.check_some(log, by, found, found.failed)
    if out is not None:
        groups.write_table(found.rows(), out)
    if as_json:
        fits = {
            name: {
                "rounds": one.n_rounds,
                "burn_in": one.burn_in,
                "agreement": one.agreement,
                "coefficients": [asdict(weight) for weight in one.coefficients],
                "warnings": list(one.warnings),
            }
            for name, one in found.fits.items()
        }
        shared = {"log": log, "by": by, "out": out, "assumed": opened.assumed, "pooled": _common(found)}
        print_json(shared | {"groups": fits, "failed": dict(found.failed)})
        return
    say(f"{log}: {overview(found)} by {by}")
    print_assumptions(opened.assumed)
    _print_groups(by, found)
    groups.print_failed(by, found.failed)
    if out is not None:
        say(f"table of all groups written to {out}")


def _common(found: Groups) -> dict[str, Any] | None:
    """What the groups have in common, for JSON."""
    if found.pooled is None or not found.fits:
        return None
    names = [one.name for one in next(iter(found.fits.values())).coefficients]
    spread = found.pooled.spread.diagonal() ** 0.5
    return {"features": names, "mean": found.pooled.mean.tolist(), "standard_deviation": spread.tolist()}


def _print_groups(by: str, found: Groups) -> None:
    """One line a group: rounds, agreement, and the weights, those of which zero is outside the interval marked."""
    if not found.fits:
        return
    names = [one.name for one in next(iter(found.fits.values())).coefficients]
    widest = names[:WEIGHTS]
    rows = {
        name: [
            str(fit.n_rounds),
            f"{fit.agreement:.2f}",
            *(f"{one.estimate:.3g}{'*' if one.low > 0 or one.high < 0 else ' '}" for one in fit.coefficients[:WEIGHTS]),
        ]
        for name, fit in found.fits.items()
    }
    groups.print_table(by, ["rounds", "agreement", *widest], rows, "--out FILE.csv writes all, --json prints them")
    if len(names) > WEIGHTS:
        say(f"{len(names) - WEIGHTS} more weights are in the table that --out writes")
    say(f"* clearly non-zero: zero is outside the {100 * found.level:g}% interval")
    common = _common(found)
    if common is not None:
        values = zip(names, common["mean"], common["standard_deviation"], strict=True)
        shown = ", ".join(f"{name} {mean:.3g} ({spread:.2g})" for name, mean, spread in list(values)[:WEIGHTS])
        say(f"mean over groups (standard deviation between them): {shown}")


ABOUT = {
    "additive": "; the estimate of a feature with a curve is the curve's mean slope",
    "neural": "; it has no weights for single features",
    "boosted": "; it has no weights for single features",
}
"""What the table below a score shows."""

WEIGHTS = 8
"""Weights of a group that are printed; a file has them all."""
