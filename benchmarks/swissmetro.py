"""Score models on Swissmetro, a survey of travellers' choices: GMPCA on persons that no model has seen.

    python benchmarks/swissmetro.py [--splits 20] [--first 0]

The data are in the distribution of biogeme, which is downloaded with pip and only unpacked. Trips of purpose 1 or 3
with a known choice: 6,768 rounds of 752 persons. Persons are split, never rows: 30% of them are test. GMPCA is the
geometric mean of the probabilities that a model gives to the choices, in percent. RUMBoost runs on the same splits in
an environment of its own, which is made the first time; every model has one thread.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from rivals.environments import clean_environment, python_of
from rivals.methods import Method

from onlooker import Additive, BanditLog, Boosted, Linear, SuffixImitation

NAME = "biogeme/data/data/swissmetro.dat"
MODES = ("TRAIN", "SM", "CAR")
ATTRIBUTES = ("AGE", "INCOME", "LUGGAGE", "MALE", "GA", "FIRST", "WHO", "PURPOSE", "TICKET")
RUMBOOST = Method("RUMBoost", "", "", ("rumboost==1.0.2",))
FALLING = {name: -1 for mode in ("train", "sm", "car") for name in (f"{mode} time", f"{mode} cost")}


def survey(folder: Path) -> dict[str, np.ndarray]:
    """The columns of the survey, trips of purpose 1 or 3 with a known choice."""
    file = folder / "swissmetro.dat"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d"]
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([*pip, place, "biogeme"], check=True)  # noqa: S603  our own list
            with zipfile.ZipFile(next(Path(place).glob("*.whl"))) as wheel:
                file.write_bytes(wheel.read(NAME))
    names, *rows = file.read_text().splitlines()
    values = np.array([row.split() for row in rows if row.strip()], dtype=np.float64)
    found = dict(zip(names.split(), values.T, strict=True))
    kept = np.isin(found["PURPOSE"], (1, 3)) & (found["CHOICE"] != 0)
    return {name: column[kept] for name, column in found.items()}


def alternatives(data: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Time, cost and headway of every mode, shape (n, 3), in hundreds; and which modes are on offer."""
    time_, cost, headway = (np.zeros((len(data["ID"]), 3)) for _ in range(3))
    for k, mode in enumerate(MODES):
        time_[:, k] = data[f"{mode}_TT"] / 100
        free = (data["GA"] == 1) & (mode != "CAR")
        cost[:, k] = np.where(free, 0.0, data[f"{mode}_CO"] / 100)
        headway[:, k] = data[f"{mode}_HE"] / 100 if mode != "CAR" else 0.0
    offered = np.column_stack([data["TRAIN_AV"] * (data["SP"] != 0), data["SM_AV"], data["CAR_AV"] * (data["SP"] != 0)])
    return time_, cost, headway, offered > 0


def made(columns: dict[str, np.ndarray], data: dict[str, np.ndarray], offered: np.ndarray) -> BanditLog:
    """A log with a column for each of these, shape (n, 3) each."""
    features = np.stack(list(columns.values()), axis=-1)[offered]
    position = np.cumsum(offered, axis=1) - 1
    chosen = position[np.arange(len(offered)), data["CHOICE"].astype(int) - 1]
    offsets = np.append(0, np.cumsum(offered.sum(axis=1)))
    return BanditLog(features, offsets, chosen, feature_names=list(columns))


def logs_of(data: dict[str, np.ndarray]) -> tuple[BanditLog, BanditLog, BanditLog]:
    """With columns of the alternatives; also of the travellers, by mode; and for trees, all of them side by side."""
    time_, cost, headway, offered = alternatives(data)
    columns: dict[str, np.ndarray] = {}
    for k, mode in enumerate(MODES):
        mine = np.arange(3) == k
        if mode != "SM":
            columns[f"{mode.lower()}"] = np.tile(mine.astype(float), (len(offered), 1))
        for name, values in (("time", time_), ("cost", cost), ("headway", headway)):
            if values[:, k].any():
                columns[f"{mode.lower()} {name}"] = np.where(mine, values, 0.0)
    travellers = dict(columns)
    for name in ATTRIBUTES:
        for k, mode in ((0, "train"), (2, "car")):
            travellers[f"{mode} {name}"] = np.where(np.arange(3) == k, data[name][:, None], 0.0)
    beside = {"train": columns["train"], "car": columns["car"], "time": time_, "cost": cost, "headway": headway}
    for name, values in (("time", time_), ("cost", cost), ("headway", headway)):
        for k, mode in enumerate(MODES):
            beside[f"{name} of {mode}"] = np.tile(values[:, [k]], (1, 3))
    beside |= {name: np.tile(data[name][:, None], (1, 3)) for name in ATTRIBUTES}
    return tuple(made(one, data, offered) for one in (columns, travellers, beside))


def gmpca(log: BanditLog, probabilities: np.ndarray) -> float:
    """Geometric mean of the probabilities of the picks, in percent."""
    return 100 * float(np.exp(np.log(np.maximum(probabilities[log.chosen_rows], 1e-15)).mean()))


def lightgbm_multiclass(data: dict[str, np.ndarray], train: np.ndarray, test: np.ndarray, persons: np.ndarray) -> float:
    """LightGBM as a classifier of three classes, on all columns; stopped by held-out persons."""
    import lightgbm

    time_, cost, headway, offered = alternatives(data)
    rows = np.hstack([time_, cost, headway, offered, *(data[name][:, None] for name in ATTRIBUTES)])
    labels = data["CHOICE"].astype(int) - 1
    known = np.unique(persons[train])
    held = np.isin(persons[train], known[int(0.8 * len(known)) :])
    settings = {"objective": "multiclass", "num_class": 3, "learning_rate": 0.05, "num_leaves": 15}
    settings |= {"min_data_in_leaf": 30, "feature_fraction": 0.5, "bagging_fraction": 0.8, "bagging_freq": 1}
    settings |= {"verbosity": -1, "deterministic": True, "seed": 0, "num_threads": 1}
    fit = lightgbm.Dataset(rows[train][~held], labels[train][~held])
    judge = fit.create_valid(rows[train][held], labels[train][held])
    stop = lightgbm.early_stopping(30, verbose=False)
    n_trees = lightgbm.train(settings, fit, 1000, valid_sets=[judge], callbacks=[stop]).best_iteration
    found = lightgbm.train(settings, lightgbm.Dataset(rows[train], labels[train]), n_trees).predict(rows[test])
    return 100 * float(np.exp(np.log(np.maximum(found[np.arange(len(found)), labels[test]], 1e-15)).mean()))


def rumboost(data: dict[str, np.ndarray], tests: list[np.ndarray], folder: Path) -> list[dict[str, Any]]:
    """GMPCA and processor seconds of RUMBoost on every split, without and with the travellers' attributes."""
    *own, offered = alternatives(data)
    named = dict(zip(("TT", "CO", "HE"), own, strict=True))
    given = {f"{mode}_{name}": x[:, k] for name, x in named.items() for k, mode in enumerate(MODES)}
    given |= {name: data[name] for name in ATTRIBUTES}
    known = {"labels": data["CHOICE"].astype(int) - 1, "persons": data["ID"].astype(int), "offered": offered}
    values, out = np.column_stack(list(given.values())), folder / "rumboost.jsonl"
    names = {"names": list(given), "attributes": list(ATTRIBUTES)}
    np.savez(folder / "rumboost.npz", values=values, tests=np.array(tests), **known, **names)
    command = [str(python_of(RUMBOOST, folder).absolute()), "-m", "outside.rumboost_worker"]
    files = [str((folder / "rumboost.npz").absolute()), str(out.absolute())]
    place = Path(__file__).parent
    subprocess.run([*command, *files], cwd=place, env=clean_environment(), capture_output=True, check=True)  # noqa: S603
    return [json.loads(line) for line in out.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--data", type=Path, default=Path("build/swissmetro"))
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    data = survey(wanted.data)
    persons = data["ID"].astype(int)
    print(f"{len(persons)} rounds, {len(np.unique(persons))} persons, {wanted.splits} splits")
    own, travellers, beside = logs_of(data)
    models = {
        "linear (MNL)": (own, Linear()),
        "additive": (own, Additive()),
        "additive, falling in time and cost": (own, Additive(monotone=FALLING)),
        "linear, travellers' attributes": (travellers, Linear()),
        "additive, travellers' attributes": (travellers, Additive()),
        "boosted": (beside, Boosted()),
    }
    found: dict[str, list[float]] = {name: [] for name in (*models, "LightGBM, three classes")}
    seconds = dict.fromkeys(found, 0.0)
    everyone = np.unique(persons)
    tests = [
        np.isin(persons, np.random.default_rng(split).permutation(everyone)[: round(0.3 * len(everyone))])
        for split in range(wanted.first, wanted.first + wanted.splits)
    ]
    for log, score in models.values():
        SuffixImitation(burn_in="naive", score=score, covariance="model").fit(log[:500])  # kernels and imports
    for test in tests:
        for name, (log, score) in models.items():
            start = time.process_time()
            observer = SuffixImitation(burn_in="naive", score=score, covariance="model")
            observer.fit(log[np.flatnonzero(~test)])
            seconds[name] += time.process_time() - start
            judged = log[np.flatnonzero(test)]
            found[name].append(gmpca(judged, observer.policy_.probabilities(judged)))
        start = time.process_time()
        places = np.flatnonzero(~test), np.flatnonzero(test)
        found["LightGBM, three classes"].append(lightgbm_multiclass(data, *places, persons))
        seconds["LightGBM, three classes"] += time.process_time() - start
        print(json.dumps({name: round(values[-1], 2) for name, values in found.items()}), flush=True)
    for one in rumboost(data, tests, wanted.data):
        found.setdefault(one["name"], []).append(one["gmpca"])
        seconds[one["name"]] = seconds.get(one["name"], 0.0) + one["seconds"]
    print("| score | GMPCA, % | std. error | processor seconds a fit |\n|---|--:|--:|--:|")
    for name, values in found.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        print(f"| {name} | {np.mean(values):.2f} | {error:.2f} | {seconds[name] / len(values):.1f} |")


if __name__ == "__main__":
    main()
