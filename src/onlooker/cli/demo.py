"""`onlooker demo`: the whole story in one command, without arguments or data."""

from __future__ import annotations

import click

from onlooker.cli import options
from onlooker.cli.compare import print_comparison
from onlooker.cli.console import check_target, print_json, progress_bar, say
from onlooker.cli.options import FILE


@click.command(short_help="Simulate a learner, recover what it learned, show how close.")
@options.seed
@click.option(
    "--rounds", "n_rounds", default=10_000, show_default=True, type=click.IntRange(min=100), help="Rounds, N."
)
@click.option(
    "--out", default="onlooker-demo.html", show_default=True, type=FILE, metavar="FILE", help="Where to write the page."
)
@options.as_json
def demo(seed: int, n_rounds: int, out: str, as_json: bool) -> None:
    """Simulate a learner, hide its rewards, recover what it learned, show how close that came.

    Example: onlooker demo --seed 1
    """
    check_target("--out", out)
    from onlooker.base.files import write_text
    from onlooker.evaluation.study import study
    from onlooker.report.demo_page import demo_page
    from onlooker.report.page import render
    from onlooker.simulation.environment import Environment
    from onlooker.simulation.learners import LinUCB

    environment, learner = Environment(20, 50, seed=seed), LinUCB()
    found = study(environment, learner, n_rounds, seed, watch=progress_bar)
    write_text(out, render(demo_page(found)))
    said = [words for one in found.tracked for words in one.summary().words]
    if as_json:
        made = {"learner": repr(learner), "n_rounds": n_rounds, "seed": seed, "out": out}
        print_json({**made, **found.comparison.to_dict(), "tracked": said})
        return
    say(f"{learner!r} played {n_rounds} rounds of 50 arms with 20 features (seed {seed}).")
    say("The observers saw its offers and picks, never a reward. How close did they come to what it learned?\n")
    print_comparison(found.comparison)
    say("\nWhat tracking says of the learner, from its picks alone:")
    for words in said:
        say(f"  {words}")
    say(f"\nburn-in curves, and the way of the learner's estimate: {out}")
