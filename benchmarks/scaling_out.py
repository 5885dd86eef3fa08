"""What a pass on a Ray cluster costs, and what to expect of it at a billion rounds.

Run it on an idle machine: `python benchmarks/scaling_out.py`. A log of 300,000 rounds x 20 arms x 20 features is spread
over two workers, each with one core. Passes are medians; bytes are those of all messages of a pass, both ways. What
follows for other sizes is computed by `expected` from what was measured, and printed with its formula.
"""

import argparse
import pickle
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from onlooker import BanditLog, SuffixImitation, scan_log, write_log
from onlooker.clusters import RayParts
from onlooker.imitation.objective import FAIR, Pass
from onlooker.imitation.out_of_core import RunPass

ARMS, FEATURES, WORKERS, TURNS = 20, 20, 2, 9
BILLION = 1_000_000_000


@dataclass(frozen=True)
class Cost:
    """Of one kind of pass."""

    seconds: float
    rate: float
    """Feature values a second and worker."""
    sent: int
    """Bytes to a worker, whatever it keeps."""
    named: float
    """Bytes to a worker for every part that it is to work on."""
    received: float
    """Bytes back a part."""
    adding: float
    """Seconds of the driver a part."""


def write_log_of(rounds: int, folder: Path) -> None:
    rng = np.random.default_rng(0)
    theta = rng.normal(size=FEATURES)
    for number, start in enumerate(range(0, rounds, 10_000)):
        features = rng.standard_normal((min(10_000, rounds - start), ARMS, FEATURES), dtype=np.float32)
        chosen = (features @ theta + rng.gumbel(size=features.shape[:2])).argmax(axis=1)
        write_log(BanditLog.from_dense(features, chosen), folder / f"{number:04d}.parquet")


def seconds_of(action: Callable[[], object]) -> float:
    turns = []
    for _ in range(TURNS):
        began = time.perf_counter()
        action()
        turns.append(time.perf_counter() - began)
    return statistics.median(turns)


def nothing(part: BanditLog, first: int) -> None:
    """What remains of a pass when workers have nothing to do."""


def cost_of(parts: RayParts, wanted: Pass, values: int, overhead: float) -> Cost:
    task = RunPass(wanted)
    list(parts.run(task))
    sent, received = parts.link.sent, parts.link.received
    found = list(parts.run(task))
    sent, received = parts.link.sent - sent, parts.link.received - received
    seconds = seconds_of(lambda: reduce(add, parts.run(task)))
    messages = [pickle.dumps(one) for one in found]
    adding = seconds_of(lambda: reduce(add, map(pickle.loads, messages))) / len(found)
    working = seconds - overhead - adding * len(found)
    task_bytes = len(pickle.dumps(task))
    named = (sent - WORKERS * task_bytes) / len(found)
    return Cost(seconds, values / WORKERS / working, task_bytes, named, received / len(found), adding)


def expected(cost: Cost, overhead: float, rounds: int, workers: int, part_rows: int) -> tuple[float, float, float]:
    """Seconds of a pass, bytes of its messages, and bytes of features that each worker keeps."""
    values, n_parts = rounds * ARMS * FEATURES, rounds * ARMS / part_rows
    seconds = values / (workers * cost.rate) + overhead + n_parts * cost.adding
    messages = workers * cost.sent + n_parts * (cost.named + cost.received)
    return seconds, messages, 4 * values / workers


def report(rounds: int) -> None:
    # By its name, so that workers can import it.
    from scaling_out import nothing as idle

    values = rounds * ARMS * FEATURES
    with TemporaryDirectory() as place:
        write_log_of(rounds, Path(place))
        scan = scan_log(f"{place}/*.parquet")
        began = time.perf_counter()
        with RayParts(scan, workers=WORKERS) as parts:
            opening = time.perf_counter() - began
            overhead = seconds_of(lambda: list(parts.run(idle)))
            theta = np.full(FEATURES, 0.1)
            costs = {
                "gradient": cost_of(parts, Pass(theta=theta), values, overhead),
                "and curvature": cost_of(parts, Pass(theta=theta, share=FAIR), values, overhead),
            }
            n_parts = len(list(parts.run(idle)))
            before = parts.link.sent + parts.link.received
            began = time.perf_counter()
            observer = SuffixImitation(burn_in="rule").fit(parts)
            fitting = time.perf_counter() - began
            moved = parts.link.sent + parts.link.received - before
            same = np.array_equal(observer.theta_, SuffixImitation(burn_in="rule").fit(scan).theta_)
    print(f"{rounds:,} rounds x {ARMS} arms x {FEATURES} features, float32 ({4 * values / 1e6:,.0f} MB)")
    print(f"{WORKERS} workers, {n_parts} parts; starting a cluster and loading: {opening:.1f} s")
    print(f"a pass with nothing to do: {1e3 * overhead:.1f} ms\n")
    print(
        "| pass | seconds | values a second and worker | bytes to a worker | and a part | back a part | driver a part |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, cost in costs.items():
        print(
            f"| {name} | {cost.seconds:.3f} | {cost.rate / 1e6:,.0f} million | {cost.sent:,} "
            f"| {cost.named:,.0f} | {cost.received:,.0f} "
            f"| {1e6 * cost.adding:.0f} us |"
        )
    print(
        f"\na fit: {observer.n_iter_} passes after sketching, {fitting:.2f} s, {moved / 1e6:.2f} MB of messages; ",
        end="",
    )
    print(f"theta identical to that of one machine: {same}\n")
    print("seconds a pass = rounds * arms * features / (workers * rate) + overhead + parts * driver a part")
    print("parts = rounds * arms / batch_rows\n")
    print(f"{BILLION:,} rounds x {ARMS} arms x {FEATURES} features:\n")
    print("| workers | batch_rows | memory each | pass with the gradient | messages | pass with curvature | messages |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for workers in (64, 256, 1024):
        for part_rows in (100_000, 2_000_000):
            cells = []
            for cost in costs.values():
                seconds, moved, kept = expected(cost, overhead, BILLION, workers, part_rows)
                cells.append(f"{seconds:,.1f} s | {moved / 1e6:,.0f} MB")
            print(f"| {workers} | {part_rows:,} | {kept / 1e9:,.1f} GB | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300_000)
    report(parser.parse_args().rounds)
