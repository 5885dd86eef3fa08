"""Malformed logs through the command line: exit 2, one line with file, place and remedy, and nothing written."""

import gzip
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker.base.errors import InputError
from onlooker.formats import read_log, scan_log, write_log
from onlooker.formats import text_lines as compressed
from onlooker.logs.log import BanditLog

GOOD = b"round,chosen,x\n1,1,2\n1,0,3\n2,0,1\n2,1,5\n"

CSV = {
    "a header alone": (b"round,chosen,x\n", "no rows"),
    "blank lines": (b"\n\n\n", "no columns 'round' and 'chosen'"),
    "no header": (b"1,1,2\n1,0,3\n", "no columns 'round' and 'chosen'"),
    "doubled column": (b"round,chosen,x,x\n1,1,2,3\n", "column 'x' twice"),
    "too few fields": (GOOD + b"3,1\n", "Expected 3 columns, got 2"),
    "too many fields": (GOOD + b"3,1,2,4\n", "Expected 3 columns, got 4"),
    "a line for Excel": (b"sep=,\n" + GOOD, "begins with 'sep=,', a line that only Excel reads: delete it"),
    "parted by bars": (GOOD.replace(b",", b"|"), "separate columns by commas, semicolons or tabs"),
    "Parquet": (b"PAR1" + bytes(range(256)), "is Parquet, not text: call it .parquet"),
    "truncated in a quote": (
        b'round,chosen,x\n1,1,"2\n1,0,3\n',
        "column 'x', row 1 .* a quote .* not closed",
    ),
    "a word among numbers": (GOOD + b"3,1,many\n", "column 'x', row 5 "),
    "a word in the picks": (GOOD + b"3,yes,1\n", "column 'chosen', row 5 "),
    "a pick of 2": (b"round,chosen,x\n1,0,2\n1,2,3\n", "column 'chosen', row 2 .* is 2"),
    "two picks": (b"round,chosen,x\n1,1,2\n1,1,3\n", "round 1 has 2 picks"),
    "no pick": (b"round,chosen,x\n1,1,2\n7,0,3\n", "round 7 has no pick.*row 2 "),
    "missing feature": (b"round,chosen,x\n1,1,2\n1,0,\n", "column 'x', row 2 .* is missing"),
    "missing category": (b"round,chosen,c,x\n1,1,a,1\n1,0,,2\n2,1,b,3\n", "column 'c', row 2 .* is missing"),
    "missing pick": (b"round,chosen,x\n1,1,2\n1,,4\n", "column 'chosen', row 2 .* is missing"),
    "missing round": (b"round,chosen,x\n1,1,2\n,0,4\n", "column 'round', row 2 .* is missing"),
    "NaN": (b"round,chosen,x\n1,1,2\n1,0,nan\n", "column 'x', row 2 .* is missing"),
    "infinity": (b"round,chosen,x\n1,1,2\n1,0,-inf\n", "column 'x', row 2 .* is -inf"),
    "not UTF-8 in the header": (b"round,chosen,\xff\n1,1,2\n", "UTF-8"),
    "not UTF-8 in a row": (b"round,chosen,x,c\n1,1,2,a\n1,0,3,\xff\xfe\n", "UTF"),
    "NUL bytes": (GOOD + b"\0\0\0\0\n", "Expected 3 columns|row 5"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "UTF-8"),
    "a Parquet file in disguise": (b"PAR1\x15\x04\x15\x10PAR1", "UTF-8|no column"),
    "one endless line": (b"a" * 300_000, "field larger than field limit"),
    "only text that never varies": (b"round,chosen,c\n1,1,a\n1,0,a\n", "no feature"),
    "unsorted rounds in a scan": (GOOD + b"1,0,7\n", "row 5 .* goes back to round 1"),
    "unsorted rounds within a part": (GOOD + b"1,0,7\n3,1,4\n", "row 5 .* goes back to round 1"),
}


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


OFFER = {"round": 1, "chosen": 1, "x": 2.5}
JSONL = {
    "truncated": (lines(OFFER)[:-9], "row 1 .* is not JSON"),
    "broken later": (lines(OFFER, OFFER) + b'{"round": 1, "x"\n', "row 3 .* is not JSON"),
    "a list": (b"[1, 2]\n", "row 1 .* is no JSON object"),
    "one array of objects": (b"[" + lines(OFFER)[:-1] + b"]\n", "row 1 .* is no JSON object"),
    "a text among numbers": (lines(OFFER, OFFER | {"x": "many"}), "column 'x', row 2 .* holds text"),
    "ids of two kinds": (lines(OFFER, OFFER | {"round": "1"}), "column 'round', row 2 .* holds text"),
    "an id beyond 64 bits": (lines(OFFER, OFFER | {"round": 10**30}), "column 'round', row 2 .* not a 64-bit integer"),
    "an id with a fraction": (lines(OFFER, OFFER | {"round": 1.5}), "column 'round', row 2 .* not a 64-bit integer"),
    "no such key": (lines({"round": 1, "x": 2.5}), "no column 'chosen'"),
    "a key that goes missing": (lines(OFFER, {"round": 1, "chosen": 0}), "column 'x', row 2 .* is missing"),
    "null": (lines(OFFER, OFFER | {"chosen": None}), "column 'chosen', row 2 .* is missing"),
    "NaN": (lines(OFFER, {"round": 1, "chosen": 0, "x": float("nan")}), "column 'x', row 2 .* is missing"),
    "a nested feature": (lines(OFFER | {"x": {"y": 1}}), "no feature"),
    "two picks": (lines(OFFER, OFFER), "round 1 has 2 picks"),
    "not UTF-8": (lines(OFFER | {"c": "?"}).replace(b"?", b"\xff"), "UTF-8"),
    "doubled keys": (b'{"round": 1, "chosen": 1, "x": 1, "x": 2}\n', "row 1 .* has the key 'x' twice"),
    "a page of HTML": (b"<html>\n</html>\n", "row 1 .* is not JSON"),
    "NUL bytes": (lines(OFFER) + b"\0\0\0\n", "row 2 .* is not JSON"),
}


def table(**columns):
    return pa.table({"round": [1, 1, 2], "chosen": [1, 0, 1], "x": [1.0, 2.0, 3.0]} | columns)


def nested(**columns):
    return pa.table({"arms": [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], "chosen": [1, 0]} | columns)


PARQUET = {
    "no rows": (table().slice(0, 0), "holds no rounds: nothing was offered"),
    "a null": (table(x=[1.0, None, 3.0]), "column 'x', row 2 .* is missing"),
    "NaN": (table(x=[1.0, 2.0, float("nan")]), "column 'x', row 3 .* is missing"),
    "infinity": (table(x=[float("inf"), 2.0, 3.0]), "column 'x', row 1 .* is inf"),
    "picks that are text": (table(chosen=["1", "0", "1"]), "column 'chosen', row 1 .* is the text '1'"),
    "picks that are lists": (table(chosen=[[1], [0], [1]]), "column 'chosen'"),
    "no pick": (table(chosen=[0, 0, 1]), "round 1 has no pick"),
    "two picks": (table(chosen=[1, 1, 1]), "round 1 has 2 picks"),
    "features of structs": (table(x=[{"a": 1}] * 3), "no feature"),
    "text that is not UTF-8": (table(c=pa.array([b"a", b"\xff", b"c"]).view(pa.string())), "column 'c' is not text"),
    "a round without arms": (nested(arms=[[[1.0], [2.0]], []]), "round 1 .* offers no arm"),
    "ragged features": (nested(arms=[[[1.0, 2.0], [3.0]], [[1.0, 2.0]]]), "round 0 .*, arm 1 has 1 features"),
    "arms of text": (nested(arms=[[["a"], ["b"]], [["c"]]]), "features must be numbers"),
    "a pick that is not offered": (nested(chosen=[1, 1]), "round 1 picks position 1, but offers 1"),
    "a pick of -1": (nested(chosen=[-1, 0]), "round 0 picks position -1"),
    "a pick with a fraction": (nested(chosen=[0.5, 0.0]), "column 'chosen' holds double"),
    "no picks": (nested().drop_columns(["chosen"]), "no column 'chosen'"),
    "ids that do not match": (nested(arm_ids=[["a"], ["b"]]), "has 1 ids in column 'arm_ids'"),
}


@pytest.fixture
def refuses(refused, tmp_path):
    """Convert a file that must be refused; see that the line names it and says more, and that nothing was written."""

    def line(name, content, message, *options):
        source = tmp_path / name
        if isinstance(content, bytes):
            source.write_bytes(content)
        else:
            pq.write_table(content, source)
        said = refused("convert", source, tmp_path / "out.parquet", *options)
        assert said.startswith(f"onlooker: {source}: ")
        assert len(said) < 500
        assert sorted(path.name for path in tmp_path.iterdir()) == [name]
        assert re.search(message, said), said
        return said

    return line


@pytest.mark.parametrize("name", CSV)
def test_csv(refuses, name):
    refuses("log.csv", *CSV[name])


@pytest.mark.parametrize("name", JSONL)
def test_jsonl(refuses, name):
    refuses("log.jsonl", *JSONL[name])


@pytest.mark.parametrize("name", PARQUET)
def test_parquet(refuses, name):
    refuses("log.parquet", *PARQUET[name])


@pytest.mark.parametrize("name", [name for name in CSV if "unsorted" not in name])
def test_reading_whole_refuses_the_same(refused, tmp_path, name):
    (tmp_path / "log.csv").write_bytes(CSV[name][0])
    assert "log.csv: " in refused("fit", tmp_path / "log.csv", "--out", tmp_path / "policy.json")
    assert not (tmp_path / "policy.json").exists()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_empty(refuses, suffix):
    refuses(f"log.{suffix}", b"", "is empty: it should hold a log")


def test_times_that_fall_in_a_scan(tmp_path):
    (tmp_path / "log.csv").write_bytes(b"round,chosen,x,t\n1,1,1,5\n2,1,2,4\n")
    with pytest.raises(InputError, match=r"log.csv: column 't', row 2 .* is 4, after 5: .* sort the file"):
        list(scan_log(tmp_path / "log.csv", order_by="t"))


def test_a_round_at_two_times(refuses):
    content = b"round,chosen,x,t\n1,1,2,5\n1,0,3,6\n"
    refuses("log.csv", content, "column 't', row 2 .* is 6, but the same round has 5", "--order-by", "t")


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.99])
def test_truncated_parquet(refuses, tmp_path, cut):
    write_log(BanditLog(np.eye(50), np.arange(51), np.zeros(50, dtype=int)), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    (tmp_path / "whole.parquet").unlink()
    refuses("log.parquet", whole[: int(cut * len(whole))], "cannot be read as Parquet")


def test_parquet_that_declares_absurd_sizes(tmp_path, monkeypatch):
    """A file of zeros is small however long; a machine of 4 KB stands for one that is too small for it."""
    monkeypatch.setattr(os, "sysconf", lambda _: 64)
    big = pa.table({"round": np.arange(100_000), "chosen": np.ones(100_000, dtype=int), "x": np.zeros(100_000)})
    source = tmp_path / "log.parquet"
    pq.write_table(big, source)
    with pytest.raises(InputError, match=r"would take 0.0 GB, but this machine has"):
        read_log(source)


class TestCompressed:
    def test_a_bomb(self, refuses, monkeypatch):
        monkeypatch.setattr(compressed, "FLOOR", 1 << 20)
        bomb = gzip.compress(b"round,chosen,x\n" + b"1,0,0\n" * 3_000_000)
        assert len(bomb) < 60_000
        refuses("log.csv.gz", bomb, "grows to more than .* MB when decompressed")

    def test_a_bomb_of_json(self, refuses, monkeypatch):
        monkeypatch.setattr(compressed, "FLOOR", 1 << 20)
        bomb = gzip.compress(lines(OFFER) * 500_000)
        refuses("log.jsonl.gz", bomb, "grows to more than .* MB when decompressed")

    def test_truncated(self, refuses):
        refuses("log.csv.gz", gzip.compress(GOOD * 100)[:-20], "cannot be decompressed")

    def test_damaged(self, refuses):
        packed = bytearray(gzip.compress(np.random.default_rng(0).bytes(5000)))
        packed[2000] ^= 255
        packed[2001] ^= 255
        refuses("log.csv.gz", bytes(packed), "cannot be decompressed|UTF-8")

    def test_not_compressed_at_all(self, run, tmp_path):
        (tmp_path / "log.csv.gz").write_bytes(GOOD)
        assert run("convert", tmp_path / "log.csv.gz", tmp_path / "out.parquet").code == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [("log.csv", CSV["two picks"][0]), ("log.jsonl", JSONL["truncated"][0]), ("log.parquet", b"PAR1PAR1")],
)
def test_as_a_program(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-m", "onlooker", "convert", name, "out.parquet"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"onlooker: {name}: ")
    assert ran.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]
