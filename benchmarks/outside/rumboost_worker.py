"""RUMBoost at work in an environment of its own: `python -m outside.rumboost_worker DATA OUT`.

A function of stumps for every column of every mode, without interactions, as its authors fit Swissmetro: learning rate
0.1, falling in time, cost and headway. Held-out persons decide how many trees there are, and all persons then grow so
many, as for LightGBM beside. It does not know which modes are on offer: the others' probabilities are left out.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from rumboost.rumboost import rum_train

MODES = ("TRAIN", "SM", "CAR")
ALTERNATIVES = ("TT", "CO", "HE")
SETTINGS = {"learning_rate": 0.1, "max_depth": 1, "monotone_constraints_method": "advanced", "num_threads": 1}
MOST_TREES, PATIENCE = 3000, 100


def structure(attributes: list[str]) -> list[dict]:
    """Which columns the score of each mode consists of."""
    found = []
    for mode in MODES:
        own = [f"{mode}_{name}" for name in ALTERNATIVES if (mode, name) != ("CAR", "HE")]
        columns = own + attributes
        alone = [[place] for place in range(len(columns))]
        signs = [-1] * len(own) + [0] * len(attributes)
        found.append({"columns": columns, "monotone_constraints": signs, "interaction_constraints": alone})
    return found


def probabilities(
    table: pd.DataFrame, labels: np.ndarray, persons: np.ndarray, test: np.ndarray, shape: list[dict]
) -> np.ndarray:
    """Of the three modes, for the rows of the test."""

    def data(rows: np.ndarray) -> lightgbm.Dataset:
        return lightgbm.Dataset(table[rows], label=labels[rows], free_raw_data=False)

    settings = SETTINGS | {"num_classes": 3, "objective": "multiclass", "verbosity": -1}
    known = np.unique(persons[~test])
    held = ~test & np.isin(persons, known[int(0.8 * len(known)) :])
    tried = settings | {"early_stopping_round": PATIENCE}
    judge = [data(held)]
    n_trees = rum_train(tried, data(~test & ~held), shape, MOST_TREES, valid_sets=judge).best_iteration
    return rum_train(settings, data(~test), shape, n_trees).predict(data(test))


def main(path: str, out: str) -> None:
    given = np.load(path)
    table = pd.DataFrame(given["values"], columns=given["names"])
    labels, persons, offered = given["labels"], given["persons"], given["offered"]
    attributes = given["attributes"].tolist()
    with Path(out).open("w") as answers:
        for test in given["tests"]:
            for name, some in (("RUMBoost", []), ("RUMBoost, travellers' attributes", attributes)):
                start = time.process_time()
                found = probabilities(table, labels, persons, test, structure(some)) * offered[test]
                seconds = time.process_time() - start
                picked = found[np.arange(len(found)), labels[test]] / found.sum(axis=1)
                gmpca = 100 * float(np.exp(np.log(np.maximum(picked, 1e-15)).mean()))
                answers.write(json.dumps({"name": name, "gmpca": gmpca, "seconds": seconds}) + "\n")
                answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
