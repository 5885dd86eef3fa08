"""How often 95% intervals cover the weights that slates were picked by: `python scripts/slate_coverage.py [logs]`.

Every log has 300 rounds in which three of six arms are picked, one after the other, by the Plackett-Luce model.
"""

import sys

import numpy as np
import pyarrow as pa

from onlooker import BanditLog, SuffixImitation

THETA = np.array([1.0, -0.5, 0.3])


def slates(seed: int, rounds: int = 300, arms: int = 6, filled: int = 3) -> BanditLog:
    """A log of slates: the arms with the largest sums of score and Gumbel noise, which is Plackett-Luce."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rounds, arms, len(THETA)))
    order = np.argsort(-(features @ THETA + random.gumbel(size=(rounds, arms))), axis=1)
    position = np.zeros((rounds, arms), dtype=int)
    np.put_along_axis(position, order[:, :filled], np.arange(filled) + 1, axis=1)
    columns = {f"x{j}": features[:, :, j].ravel() for j in range(len(THETA))}
    table = pa.table({"round": np.repeat(np.arange(rounds), arms), "position": position.ravel(), **columns})
    return BanditLog.from_frame(table, slate="position")


def coverage(logs: int) -> float:
    """Share of the weights that lie within their intervals."""
    hits = []
    for seed in range(logs):
        observer = SuffixImitation(burn_in="naive", l2=0.0).fit(slates(seed))
        hits.append(np.abs(observer.theta_ - THETA) < 1.96 * np.sqrt(np.diag(observer.covariance_)))
    return float(np.mean(hits))


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{count} logs: 95% intervals cover {coverage(count):.1%} of the weights")
