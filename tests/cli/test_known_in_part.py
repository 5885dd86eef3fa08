"""No command leaves out without a word what a log knows only in part: each says it, in its text and in its JSON."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

N, K = 120, 6
KEPT = 4
"""Offers of a round that were kept."""
PICKED_GROUP = ("--chosen", "picked_page", "--picked-group", "page")
MARKS = ("--possible", "maybe")
SAMPLE = ("--offer-probability", "kept")
MISSING = ("--missing", "leave-out")
SAID = {
    "sets": "picks known to a set in {rounds} of {rounds} rounds, of 2 of 4 arms on average",
    "sample": "offers are a sample: {rows} rows stand for about {stand_for:,}",
    "missing": "3 rounds of 120 (12 rows) miss a feature and are left out",
    "lost": "round ids skip {skipped} of 179 numbers: if these rounds were lost, `track --gaps ids`",
}
WHOLE = {
    "fit": (),
    "diagnose": (),
    "track": (),
    "report": ("--out", "{}/page.html"),
    "propensities": ("--out", "{}/with.parquet", "--observer", "suffix"),
    "compare": ("--observer", "naive"),
    "convert": ("{}/converted.parquet",),
    "fit by user": ("--by", "user"),
    "diagnose by user": ("--by", "user"),
    "track by user": ("--by", "user"),
    "report by user": ("--by", "user", "--out", "{}/page.html"),
    "propensities by user": ("--by", "user", "--out", "{}/with.parquet", "--observer", "suffix"),
}
IN_PARTS = {
    "fit in parts": ("--memory-limit", "16GB"),
    "diagnose in parts": ("--memory-limit", "16GB"),
    "convert": ("{}/converted.csv",),
}
"""Ids of a log that is not in memory are not looked at: that would take a pass of its own."""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A log that lost something of every kind: picks, offers, rounds and features."""
    rng = np.random.default_rng(0)
    price, speed = rng.normal(size=(2, N, K))
    chosen = (price - speed + rng.gumbel(size=(N, K))).argmax(axis=1)
    price[[2, 20, 70], chosen[[2, 20, 70]]] = np.nan
    pages = np.arange(K) // 2
    maybe = pages == pages[chosen][:, None]
    kept = np.sort(np.argsort(rng.random((N, K)) - 2 * maybe, axis=1)[:, :KEPT], axis=1)
    rows = np.repeat(np.arange(N), KEPT), kept.ravel()
    table = {
        "round": rows[0] // 2 * 3 + rows[0] % 2,
        "user": np.where(rows[0] % 2, "a", "b"),
        "page": np.char.add("p", pages[rows[1]].astype(str)),
        "picked_page": np.char.add("p", pages[chosen][rows[0]].astype(str)),
        "maybe": maybe[rows].astype(int),
        "kept": np.full(N * KEPT, 0.25),
        "price": pa.array(price[rows], from_pandas=True),
        "speed": speed[rows],
    }
    path = tmp_path_factory.mktemp("partial") / "log.csv"
    pa.csv.write_csv(pa.table(table), path)
    return path


def shown(run, command, path, options, more, *, as_json):
    ran = run(command.split()[0], path, *more, *options, *(["--json"] if as_json else []))
    assert ran.code == 0, ran.err
    return "\n".join(json.loads(ran.out)["assumed"]) if as_json else ran.out


def counts(rounds):
    # Three rounds that miss a feature leave their numbers too.
    return {"rounds": rounds, "rows": rounds * KEPT, "stand_for": rounds * KEPT * 4, "skipped": 179 - rounds}


FEATURES = ("--feature", "price", "--feature", "speed")


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", WHOLE)
def test_every_command_says_all_of_it(run, path, tmp_path, command, as_json):
    more = [one.format(tmp_path) for one in WHOLE[command]]
    text = shown(run, command, path, (*PICKED_GROUP, *SAMPLE, *MISSING, *FEATURES), more, as_json=as_json)
    for said in SAID.values():
        assert said.format(**counts(N - 3)) in text
    assert ("those among the sampled offers" in text) == ("propensities" in command)


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("written", [False, True], ids=["named", "written"])
@pytest.mark.parametrize("command", IN_PARTS)
def test_logs_that_are_not_in_memory(run, path, tmp_path, command, written, as_json):
    """Whether options name the columns, or a file that onlooker wrote has them."""
    options, source = (*MARKS, *SAMPLE, "--feature", "speed"), path
    if written:
        source = tmp_path / "log.parquet"
        assert run("convert", path, source, *options).code == 0
        options = ()
    text = shown(run, command, source, options, [one.format(tmp_path) for one in IN_PARTS[command]], as_json=as_json)
    for kind in ("sets", "sample"):
        assert SAID[kind].format(**counts(N)) in text


@pytest.mark.parametrize(
    ("command", "options", "why"),
    [
        ("track", MARKS, "only a set of arms is known"),
        ("track", MISSING, "needs the log in memory"),
        ("fit", MISSING, "needs the log in memory"),
        ("diagnose", MISSING, "needs the log in memory"),
    ],
)
def test_what_cannot_be_done_in_parts_is_refused(refused, path, command, options, why):
    picks = () if options == MARKS else PICKED_GROUP
    assert why in refused(command, path, *options, *picks, "--feature", "speed", "--memory-limit", "16GB")


@pytest.mark.parametrize("target", ["log.csv", "log.jsonl", "log.parquet"])
def test_what_is_converted_knows_as_much(run, path, tmp_path, target):
    assert run("convert", path, tmp_path / target, *MARKS, *SAMPLE, "--feature", "speed").code == 0
    text = run("fit", tmp_path / target, "--burn-in", "naive").out
    for kind in ("sets", "sample", "lost"):
        assert SAID[kind].format(**counts(N)) in text


@pytest.mark.parametrize("target", ["log.vw", "log.dsjson", "log.npz"])
def test_formats_without_a_place_for_sets_are_refused(refused, path, tmp_path, target):
    assert "only a set of arms is known" in refused(
        "propensities", path, "--out", tmp_path / target, *MARKS, "--feature", "speed", "--observer", "suffix"
    )
