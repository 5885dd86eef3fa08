"""One log as the tests of places keep it: in files, folders, databases and stores."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

ROUNDS, ARMS = 120, 3


def log_table():
    """A long table with numbers of every kind, a category, a reward, and the time of each round."""
    rng = np.random.default_rng(7)
    rows = ROUNDS * ARMS
    price, size = rng.normal(size=rows), rng.integers(1, 9, size=rows)
    colour = rng.choice(["red", "blue", "green"], size=rows)
    score = (price - 0.3 * size + (colour == "red") + rng.gumbel(size=rows)).reshape(ROUNDS, ARMS)
    chosen = (np.arange(ARMS) == score.argmax(axis=1)[:, None]).reshape(-1)
    rounds = np.repeat(np.arange(ROUNDS), ARMS)
    return pa.table(
        {
            "round": rounds,
            "arm": np.tile(["x", "y", "z"], ROUNDS),
            "chosen": chosen.astype(np.int64),
            "price": price,
            "size": size,
            "colour": colour,
            "reward": rng.normal(size=rows),
            "step": rounds * 10,
            "row": np.arange(rows),
            "shop": np.where(rounds < ROUNDS // 2, "n", "s"),
        }
    )


def parts(table, *, whole=False):
    """The table in three; without `whole` they are cut within a round."""
    cuts = [0, 99, 201, len(table)] if whole else [0, 100, 200, len(table)]
    return [table[start:stop] for start, stop in pairwise(cuts)]


def records(table):
    """Rows as tuples."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
