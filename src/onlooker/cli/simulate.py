"""`onlooker simulate`: let a learner play, write the log an observer would see."""

from __future__ import annotations

from typing import Any

import click

from onlooker.cli import options
from onlooker.cli.console import check_target, print_json, progress_bar, say
from onlooker.cli.options import FILE


@click.command(short_help="Let a learner play; write its log without the rewards.")
@options.simulation_options
@options.seed
@click.option("--out", required=True, type=FILE, metavar="FILE", help="Where to write the log (.parquet or .csv).")
@click.option(
    "--truth", type=FILE, metavar="FILE", help="Also write what the log hides: theta* and the learner's own estimate."
)
@options.as_json
def simulate(
    learner: str,
    settings: tuple[str, ...],
    n_rounds: int,
    seed: int,
    out: str,
    truth: str | None,
    as_json: bool,
    **world: Any,
) -> None:
    """Let a learner play and write its log, without the rewards.

    Example: onlooker simulate --learner lints --features 20 --arms 50 --rounds 10000 --seed 1 --out log.parquet
    """
    import json

    from onlooker.base.files import write_text
    from onlooker.evaluation.metrics import direction_error
    from onlooker.formats import write_log
    from onlooker.formats.registry import check_writable
    from onlooker.simulation import play as simulation
    from onlooker.simulation.environment import Environment

    check_writable(out)
    check_target("--out", out)
    check_target("--truth", truth)
    player = options.make_learner(learner, settings)
    environment = Environment(**world, seed=seed)
    with progress_bar("simulating") as progress:
        played = simulation.simulate(environment, player, n_rounds, seed=seed, progress=progress)
    write_log(played.log, out)
    error = direction_error(played.learner_theta, played.theta_star)
    hidden = {
        "learner": repr(player),
        "seed": seed,
        "n_rounds": n_rounds,
        "learner_error": error,
        "regret": float(played.regret.sum()),
        "theta_star": played.theta_star.tolist(),
        "learner_theta": played.learner_theta.tolist(),
    }
    if truth is not None:
        write_text(truth, json.dumps(hidden, indent=2) + "\n")
    if as_json:
        print_json({"out": out, "truth": truth, **hidden})
        return
    say(f"{out}: {n_rounds} rounds of {player!r}, seed {seed}, without the rewards")
    say(f"a ridge estimate from its picks and rewards has direction error {error:.4f}")
    if truth is not None:
        say(f"theta* is in {truth}")
