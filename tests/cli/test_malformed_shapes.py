"""Malformed logs of every shape but the long one: exit 2, one line with file, place and remedy, and nothing written."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def jsonl(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def text(column, *values, chosen="chosen"):
    """CSV with JSON text in a column."""
    lines = [f"{column},{chosen}"]
    lines += ['"{}",{}'.format(value.replace('"', '""'), pick) for value, pick in values]
    return ("\n".join(lines) + "\n").encode()


A, B = {"id": "a", "x": 1.5}, {"id": "b", "x": 2.0}
TWO = json.dumps([A, B])
WIDE = b"chosen,arm1_x,arm2_x,arm1_y,arm2_y\n1,1,2,3,4\n2,5,6,7,8\n"
FLAGS = b"arm1_chosen,arm2_chosen,arm1_x,arm2_x\n1,0,1,2\n"
SLATE = b"round,position,x\n1,1,2\n1,,3\n"

CASES = {
    # wide
    "wide: a pick that is no arm": (
        "csv",
        WIDE + b"3,1,2,3,4\n",
        [],
        "column 'chosen', row 3 .* is '3', which is not an arm",
    ),
    "wide: a pick of 0 and of the last": ("csv", WIDE + b"0,1,2,3,4\n", [], "row 3 .* is '0', which is not an arm"),
    "wide: a word as a pick": ("csv", WIDE + b"left,1,2,3,4\n", [], "row 3 .* is 'left', which is not an arm"),
    "wide: a fraction as a pick": (
        "jsonl",
        jsonl({"chosen": 1.5, "arm1_x": 1, "arm2_x": 2}),
        [],
        "is 1.5, which is not a 64-bit integer",
    ),
    "wide: no pick": ("csv", WIDE + b",1,2,3,4\n", [], "column 'chosen', row 3 .* is missing"),
    "wide: part of an arm": (
        "csv",
        WIDE + b"1,1,2,3,\n",
        [],
        "column 'arm2_y', row 3 .* is missing, but other columns of arm '2'",
    ),
    "wide: picked but not offered": ("csv", WIDE + b"2,1,,3,\n", [], "row 3 .* picks arm '2', which was not offered"),
    "wide: nothing offered": ("csv", WIDE + b"1,,,,\n", [], "row 3 .* offers no arm"),
    "wide: an infinite feature": ("csv", WIDE + b"1,1,inf,3,4\n", [], "feature 'x' of an arm in row 3 .* is inf"),
    "wide: a word among numbers": (
        "csv",
        WIDE + b"1,1,many,3,4\n",
        [],
        "column 'arm2_x', row 3 .* is 'many', not a number",
    ),
    "wide: text for one arm": (
        "csv",
        b"chosen,arm1_x,arm2_x\n1,1,red\n2,2,blue\n",
        [],
        "column 'arm2_x', row 1 .* is 'red', not a number as for other arms",
    ),
    "wide: a column short": ("csv", b"chosen,arm1_x,arm2_x,arm1_y\n1,1,2,3\n", [], "arm '2' has no column for 'y'"),
    "wide: no column of picks": ("csv", b"pick,arm1_x,arm2_x\n1,1,2\n", [], "no column 'chosen'.*--chosen"),
    "wide: a doubled column": (
        "csv",
        b"chosen,arm1_x,arm1_x,arm2_x\n1,1,2,3\n",
        ["--wide", "arm{arm}_{feature}"],
        "'arm1_x' twice",
    ),
    "wide: a pattern without an arm": ("csv", WIDE, ["--wide", "arm_{feature}"], "--wide is 'arm_{feature}': .* {arm}"),
    "wide: a pattern that fits nothing": (
        "csv",
        WIDE,
        ["--wide", "alt{arm}-{feature}"],
        "no column is called like 'alt",
    ),
    "wide: no rows": ("csv", b"chosen,arm1_x,arm2_x\n", [], "no rows"),
    "wide: a round twice": (
        "csv",
        b"round,chosen,arm1_x,arm2_x\n7,1,1,2\n8,1,1,2\n7,1,1,2\n",
        ["--wide", "arm{arm}_{feature}"],
        "column 'round', row 3 .* is 7 again, as in row 1|row 3 .* is '7' again",
    ),
    "wide: a round without an id": (
        "csv",
        b"round,chosen,arm1_x,arm2_x\n7,1,1,2\n,1,1,2\n",
        [],
        "column 'round', row 2 .* is missing",
    ),
    "wide: a time that is none": (
        "csv",
        b"t,chosen,arm1_x,arm2_x\n2024-01-01,1,1,2\nsoon,1,1,2\n",
        ["--order-by", "t"],
        "column 't', row 2 .* is 'soon'",
    ),
    "wide: two flags": ("csv", FLAGS + b"1,1,1,2\n", [], "row 2 .* has 2 picks in 'chosen'"),
    "wide: no flag": ("csv", FLAGS + b"0,0,1,2\n", [], "row 2 .* has no pick in 'chosen'"),
    "wide: a flag of 2": ("csv", FLAGS + b"2,0,1,2\n", [], "column 'arm1_chosen', row 2 .* is 2: write 0 and 1"),
    "wide: a flag for what is not offered": (
        "csv",
        FLAGS + b"0,1,1,\n",
        [],
        "row 2 .* picks arm '2', which was not offered",
    ),
    "wide: features that are not there": ("csv", WIDE, ["--feature", "z"], "no column 'z'"),
    "wide: slates": ("csv", WIDE, ["--slate", "p"], "a wide table has one pick per row"),
    "wide: two shapes": (
        "csv",
        WIDE,
        ["--wide", "{arm}_{feature}", "--candidates", "c"],
        "--wide and --candidates are two shapes",
    ),
    "wide: contexts too": (
        "csv",
        WIDE,
        ["--wide", "{arm}_{feature}", "--context", "age"],
        "--wide is for tables that describe the arms",
    ),
    # candidates
    "candidates: not JSON": (
        "csv",
        text("candidates", (TWO, 0), ("[{", 0)),
        [],
        "column 'candidates', row 2 .* is not JSON",
    ),
    "candidates: no list": (
        "csv",
        text("candidates", (TWO, 0), ('{"x": 1}', 0)),
        [],
        "row 2 .* is not a list of objects",
    ),
    "candidates: numbers": (
        "csv",
        text("candidates", (TWO, 0), ("[1, 2]", 0)),
        [],
        "row 2 .* is not a list of objects",
    ),
    "candidates: a key twice": ("csv", text("candidates", ('[{"x": 1, "x": 2}]', 0)), [], "row 1 .* has a key twice"),
    "candidates: nested deeply": (
        "csv",
        text("candidates", ('[{"x": ' + "[" * 200 + "1" + "]" * 200 + "}]", 0)),
        [],
        "nested too deeply",
    ),
    "candidates: of two kinds": (
        "csv",
        text("candidates", (TWO, 0), ('[{"id": "a", "x": "red"}]', 0)),
        [],
        "row 2 .* of another kind before",
    ),
    "candidates: none": (
        "jsonl",
        jsonl({"candidates": [A], "chosen": 0}, {"candidates": [], "chosen": 0}),
        [],
        "row 2 .* has no candidate",
    ),
    "candidates: null": (
        "jsonl",
        jsonl({"candidates": [A], "chosen": 0}, {"candidates": None, "chosen": 0}),
        [],
        "row 2 .* has no candidate",
    ),
    "candidates: one is null": (
        "jsonl",
        jsonl({"candidates": [A, None], "chosen": 0}),
        [],
        "row 1 .* has a candidate that is null",
    ),
    "candidates: a missing feature": (
        "jsonl",
        jsonl({"candidates": [A, B], "chosen": "a"}, {"candidates": [A, {"id": "b"}], "chosen": "a"}),
        [],
        "'x' of candidate 2 in row 2 .* is missing",
    ),
    "candidates: a missing id": (
        "jsonl",
        jsonl({"candidates": [A, B], "chosen": "a"}, {"candidates": [A, {"x": 2.0}], "chosen": "a"}),
        [],
        "'id' of candidate 2 in row 2 .* is missing",
    ),
    "candidates: an id that is not there": (
        "jsonl",
        jsonl({"candidates": [A, B], "chosen": "a"}, {"candidates": [A, B], "chosen": "c"}),
        [],
        "row 2 .* is 'c', the id of none of the row's candidates: 'a', 'b'",
    ),
    "candidates: an id twice": (
        "jsonl",
        jsonl({"candidates": [A, A], "chosen": "a"}),
        [],
        "is 'a', the id of 2 of the row's",
    ),
    "candidates: a position too high": (
        "jsonl",
        jsonl({"candidates": [{"x": 1}, {"x": 2}], "chosen": 0}, {"candidates": [{"x": 1}], "chosen": 1}),
        [],
        "row 2 .* is '1', but the row has 1 candidates",
    ),
    "candidates: a negative position": (
        "jsonl",
        jsonl({"candidates": [{"x": 1}], "chosen": -1}),
        [],
        "row 1 .* is '-1'",
    ),
    "candidates: positions or ids": (
        "jsonl",
        jsonl({"candidates": [{"id": 1, "x": 1}, {"id": 0, "x": 2}], "chosen": 0}),
        [],
        "may hold positions or the ids in 'id': name the ids as --arm",
    ),
    "candidates: text without ids": (
        "jsonl",
        jsonl({"candidates": [{"x": 1}], "chosen": "a"}),
        [],
        "have no id: name it as --arm",
    ),
    "candidates: no pick": (
        "jsonl",
        jsonl({"candidates": [A, B]}),
        [],
        "neither a round nor its candidates have 'chosen'",
    ),
    "candidates: a missing pick": (
        "jsonl",
        jsonl({"candidates": [A, B], "chosen": "a"}, {"candidates": [A, B], "chosen": None}),
        [],
        "column 'chosen', row 2 .* is missing",
    ),
    "candidates: two flags": (
        "jsonl",
        jsonl({"candidates": [A | {"chosen": True}, B | {"chosen": True}]}),
        [],
        "row 1 .* has 2 picks",
    ),
    "candidates: a flag of 3": (
        "jsonl",
        jsonl({"candidates": [A | {"chosen": 3}, B | {"chosen": 0}]}),
        [],
        "of a candidate in row 1 .* is 3",
    ),
    "candidates: picks in both": (
        "jsonl",
        jsonl({"candidates": [A | {"chosen": 1}], "chosen": 0}),
        [],
        "both a round and its candidates have 'chosen'",
    ),
    "candidates: two lists": (
        "jsonl",
        jsonl({"one": [A], "two": [B], "chosen": 0}),
        [],
        "'one', 'two' may be the candidates: name one",
    ),
    "candidates: a column that is not there": (
        "jsonl",
        jsonl({"c": [A], "chosen": 0}),
        ["--candidates", "d"],
        "no column 'd'.*--candidates",
    ),
    "candidates: a column of numbers": (
        "csv",
        WIDE,
        ["--candidates", "arm1_x"],
        "column 'arm1_x' holds .*: candidates are lists of objects",
    ),
    "candidates: an arm that is not there": (
        "jsonl",
        jsonl({"candidates": [A], "chosen": "a"}),
        ["--arm", "sku"],
        "the candidates have no 'sku'",
    ),
    "candidates: NaN": (
        "csv",
        text("candidates", ('[{"x": NaN}]', 0)),
        [],
        "'x' of candidate 1 in row 1 .* is missing",
    ),
    "candidates: infinity": (
        "csv",
        text("candidates", ('[{"x": Infinity}]', 0)),
        [],
        "feature 'x' of an arm in row 1 .* is inf",
    ),
    # slates and products
    "slate: no such column": ("csv", SLATE, ["--slate", "rank"], "no column 'rank'.*--slate"),
    "slate: a position twice": (
        "csv",
        SLATE + b"1,1,4\n",
        ["--slate", "position"],
        "round 1, row 3 .* has the 'position' of another pick",
    ),
    "slate: nothing shown": ("csv", SLATE + b"2,,4\n2,,5\n", ["--slate", "position"], "round 2, row 3 .* has no pick"),
    "slate: half a position": (
        "csv",
        SLATE + b"2,1.5,4\n2,,5\n",
        ["--slate", "position"],
        "row 3 .* is 1.5: positions are whole numbers",
    ),
    "cross: no such column": ("csv", WIDE, ["--cross", "x:z"], "no column 'z'"),
    "cross: bare": (
        "csv",
        WIDE,
        ["--cross"],
        "--cross stands alone, but a table needs pairs of columns: pass them as --cross age:price",
    ),
    "cross: three columns": ("csv", WIDE, ["--cross", "x:y:z"], "a table needs pairs of columns"),
    "cross: a key": (
        "csv",
        SLATE.replace(b"position", b"chosen"),
        ["--cross", "round:x"],
        "column 'round' cannot be multiplied",
    ),
}


@pytest.mark.parametrize("scanned", [False, True], ids=["whole", "in parts"])
@pytest.mark.parametrize("name", CASES)
def test_refused_in_one_line(refused, tmp_path, name, scanned):
    suffix, data, options, expected = CASES[name]
    path, out = tmp_path / f"log.{suffix}", tmp_path / "policy.json"
    path.write_bytes(data)
    limit = ["--memory-limit", "16GB"] if scanned else []
    line = refused("fit", path, "--out", out, *options, *limit)
    assert re.search(expected, line), line
    assert "fault of onlooker's own" not in line
    assert len(line) < 600
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_there_are_enough_of_them():
    assert len(CASES) >= 40


def test_lists_of_other_things_in_parquet(refused, tmp_path):
    pq.write_table(pa.table({"candidates": [[1, 2], [3]], "chosen": [0, 0]}), tmp_path / "log.parquet")
    line = refused("fit", tmp_path / "log.parquet", "--candidates", "candidates")
    assert "candidates are lists of objects" in line
