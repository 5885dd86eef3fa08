"""No command leaves out without a word what a log knows only in part: every command, every kind, as text and as JSON."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from onlooker import read_log, write_log

N, K = 120, 6
FEATURES = ("--feature", "price", "--feature", "speed")
SETS = "picks known to a set in 120 of 120 rounds, of 2 of 6 arms on average"
SAMPLE = "offers are a sample: 480 rows stand for about 1,920"
KINDS = {
    "groups": (("--chosen", "picked_page", "--picked-group", "page"), SETS),
    "marks": (("--possible", "maybe"), SETS),
    "sample": (("--offer-probability", "kept"), SAMPLE),
    "missing": (("--missing", "leave-out"), "3 rounds of 120 (18 rows) miss a feature and are left out"),
    "lost": ((), "round ids skip 59 of 179 numbers"),
    "written sets": ((), SETS),
    "written sample": ((), SAMPLE),
}
"""Options, and what has to be said."""
COMMANDS = {
    "fit": (),
    "diagnose": (),
    "track": (),
    "report": ("--out", "{}/page.html"),
    "propensities": ("--out", "{}/with.parquet", "--observer", "suffix"),
    "compare": ("--observer", "naive"),
    "convert": ("{}/converted.parquet",),
    "fit in parts": ("--memory-limit", "16GB"),
    "diagnose in parts": ("--memory-limit", "16GB"),
    "track in parts": ("--memory-limit", "16GB"),
    "fit by user": ("--by", "user"),
    "diagnose by user": ("--by", "user"),
    "track by user": ("--by", "user"),
    "report by user": ("--by", "user", "--out", "{}/page.html"),
    "propensities by user": ("--by", "user", "--out", "{}/with.parquet", "--observer", "suffix"),
}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A file for each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(0)
    price, speed = rng.normal(size=(2, N, K))
    chosen = (price - speed + rng.gumbel(size=(N, K))).argmax(axis=1)
    pages = np.arange(K) // 2
    columns = {
        "round": np.repeat(np.arange(N), K),
        "user": np.repeat(np.where(np.arange(N) % 2, "a", "b"), K),
        "price": price.ravel(),
        "speed": speed.ravel(),
    }
    picked = {"chosen": (np.arange(K) == chosen[:, None]).astype(int).ravel()}
    lost = np.repeat(np.arange(N) // 2 * 3 + np.arange(N) % 2, K)
    holes = price.ravel().copy()
    holes[[7, 8, 100, 400]] = np.nan
    four = np.sort(np.argsort(rng.random((N, K)) - 2 * (np.arange(K) == chosen[:, None]), axis=1)[:, :4], axis=1)
    sampled = (np.arange(N)[:, None] * K + four).ravel()
    tables = {
        "groups": columns
        | {
            "page": np.tile([f"p{one}" for one in pages], N),
            "picked_page": np.repeat([f"p{pages[one]}" for one in chosen], K),
        },
        "marks": columns | {"maybe": (pages == pages[chosen][:, None]).astype(int).ravel()},
        "missing": columns | picked | {"price": pa.array(holes, from_pandas=True)},
        "lost": columns | picked | {"round": lost},
        "sample": {name: values[sampled] for name, values in (columns | picked).items()}
        | {"kept": np.full(len(sampled), 0.25)},
    }
    paths = {}
    for kind, table in tables.items():
        paths[kind] = folder / f"{kind}.csv"
        pa.csv.write_csv(pa.table(table), paths[kind])
    for kind, source in {"written sets": "marks", "written sample": "sample"}.items():
        named = {"marks": {"possible": "maybe"}, "sample": {"offer_probability": "kept"}}[source]
        paths[kind] = folder / f"{source}.parquet"
        write_log(read_log(paths[source], features=["price", "speed"], **named), paths[kind])
    return paths


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_said(run, logs, tmp_path, command, kind, as_json):
    if "written" in kind and "user" in command:
        pytest.skip("a written log is one learner's")
    options, said = KINDS[kind]
    more = [one.format(tmp_path) for one in COMMANDS[command]]
    named = () if "written" in kind else FEATURES
    ran = run(command.split()[0], logs[kind], *more, *options, *named, *(["--json"] if as_json else []))
    assert ran.code == 0, ran.err
    shown = "\n".join(json.loads(ran.out)["assumed"]) if as_json else ran.out
    assert said in shown


