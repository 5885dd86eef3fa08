"""Damaged files of other tools, through the command line: exit 2 and one line with file, place and remedy."""

import gzip
import io
import json
import zipfile

import numpy as np
import pytest

from onlooker.cli import main
from onlooker.formats import text_lines


@pytest.fixture
def refused(monkeypatch, capsys, tmp_path):
    def line(name, content, *options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        policy = tmp_path / "policy.json"
        monkeypatch.setattr("sys.argv", ["onlooker", "fit", str(path), "--out", str(policy), *options])
        with pytest.raises(SystemExit) as stopped:
            main()
        said = capsys.readouterr()
        assert stopped.value.code == 2
        assert said.out == ""
        assert said.err.startswith(f"onlooker: {path}: ")
        assert said.err.count("\n") == 1
        assert said.err[:-1].isprintable()
        assert len(said.err) < len(str(path)) + 400
        assert not policy.exists()
        return said.err

    return line


GOOD = "0:1:0.5 | a:1 b:2\n| a:3\n\n"

VW = {
    "no pick": (GOOD + "| a\n| b\n", "line 4 begins a round without a pick: label"),
    "no pick, shared": (GOOD + "shared | u\n| a\n", "line 4 begins a round without a pick"),
    "two picks": ("0:1:0.5 | a\n\n0:1:1 | a\n| b\n1:1:1 | c\n", "line 5 is labelled, but so is line 3"),
    "two labels": ("0:1:0.5 1:1:0.5 | a\n| b\n", "line 1 has 2 labels"),
    "label on the shared line": ("shared 0:1:0.5 | u\n| a\n", "line 1 is shared and carries a label"),
    "shared line in the middle": ("0:1:0.5 | a\nshared | u\n", "line 2 is shared, but does not begin its round"),
    "two shared lines": ("shared | u\nshared | v\n0:1:0.5 | a\n", "line 2 is shared, but does not begin"),
    "shared line alone": (GOOD + "shared | u\n\n" + GOOD, "line 4 begins a round that offers no arm"),
    "label of words": ("yes | a\n| b\n", "line 1 has the label 'yes': write action:cost:probability"),
    "label of four parts": ("1:2:3:4 | a\n| b\n", "line 1 has the label '1:2:3:4'"),
    "negative action": ("-1:2:0.5 | a\n| b\n", "line 1 has the label '-1:2:0.5'"),
    "no bar": (GOOD + "a b c\n", "line 4 has no '|'"),
    "nan": ("0:1:0.5 | a:1\n| a:nan\n", "line 2, feature 'a' is nan: fill it in"),
    "infinity": ("0:1:0.5 |n a:1\n|n a:-Infinity\n", "line 2, feature 'n^a' is -inf"),
    "overflow": ("0:1:0.5 |n:1e300 a:1e300\n| b\n", "line 1, feature 'n^a' is inf"),
    "missing value": ("0:1:0.5 | a:\n| b\n", "line 1 has 'a:': write name, name:number or name:text"),
    "two colons": ("0:1:0.5 | a:1:2 3\n| b\n", "line 1 has 'a:1:2'"),
    "scale of words": ("0:1:0.5 |n:x a\n| b\n", "line 1 has the namespace 'n:x'"),
    "scale without a namespace": ("0:1:0.5 |:2 a\n| b\n", "line 1 has the namespace ':2'"),
    "two levels": ("0:1:0.5 | c:x c:y\n| c:x\n", "line 1 gives the category 'c' two values"),
    "no features": ("0:1:0.5 |\n|\n", "has no feature that differs between arms"),
    "one level": ("0:1:0.5 | c:x\n| c:x\n", "has no feature that differs between arms"),
    "only blank lines": ("\n\n \n", "holds no rounds"),
    "zero bytes": (b"0:1:0.5 | a\n| b\0\n", "line 2 has a zero byte"),
    "not UTF-8": (b"0:1:0.5 | a\n| \xff\xfe\n", "line 2 is not text in UTF-8"),
    "not UTF-8, category": (b"0:1:0.5 | a:\xff\n| b\n", "line 1 is not text in UTF-8"),
    "not UTF-8, tag": (b"0:1:0.5 \xff| a\n| b\n", "line 1 is not text in UTF-8"),
}


@pytest.mark.parametrize("damage", VW)
def test_vw_text(refused, damage):
    content, message = VW[damage]
    assert message in refused("log.vw", content)


ARMS = [{"p": 1}, {"p": 2}]
EVENT = {"_labelIndex": 0, "_label_Action": 1, "c": {"_multi": ARMS}}


def changed(**fields):
    return json.dumps({**EVENT, **fields})


FINE = json.dumps(EVENT) + "\n"
DSJSON = {
    "no pick": (FINE + json.dumps({"a": [1, 2], "c": {"_multi": ARMS}}), "line 2 has no pick"),
    "picks that disagree": (FINE + changed(_label_Action=2), "line 2 picks position 0 by '_labelIndex'"),
    "pick beyond the arms": (changed(_labelIndex=2, _label_Action=3), "line 1 picks position 2, but offers 2 arms"),
    "pick before the arms": (changed(_labelIndex=None, _label_Action=0), "line 1 picks position -1"),
    "pick of text": (changed(_labelIndex="0"), "line 1 has '0' as '_labelIndex': it must be a whole number"),
    "pick of a fraction": (changed(_labelIndex=0.0), "line 1 has '0.0' as '_labelIndex'"),
    "slots": (changed(c={"_multi": ARMS, "_slots": [{}]}), "line 1 fills slots, but has no picks"),
    "outcomes": (changed(_outcomes=[]), "line 1 fills slots, but has no picks"),
    "slots without outcomes": (
        changed(c={"_multi": ARMS, "_slots": [{}, {}]}, _outcomes=[{"_a": [0]}]),
        "line 1 has 2 slots in '_slots', but 1 in '_outcomes'",
    ),
    "an arm in two slots": (
        changed(c={"_multi": ARMS, "_slots": [{}, {}]}, _outcomes=[{"_a": [0, 1]}, {"_a": [0]}]),
        "line 1 offers arm 0 in slot 1, but an earlier slot has it",
    ),
    "a slot without a pick": (changed(c={"_multi": ARMS}, _outcomes=[{"_a": []}]), "line 1 has no pick for slot 0"),
    "a slot with an odd arm": (
        changed(c={"_multi": ARMS}, _outcomes=[{"_a": ["x"]}]),
        "line 1 has 'x' in '_a' of slot 0",
    ),
    "continuous": (changed(_label_ca={}), "line 1 picks from a continuous range"),
    "no arms": (changed(c={"_multi": []}), "line 1 offers no arm"),
    "no list of arms": (changed(c={"x": 1}), "line 1 offers no arm"),
    "an arm of text": (changed(c={"_multi": [{"p": 1}, "x"]}), "line 1 has an arm 1 that is not an object"),
    "a list of text": (changed(c={"_multi": [{"p": ["x"]}]}), "line 1 has a str in the list 'p'"),
    "deduplicated": (changed(c={"_multi": [{"__aid": 7}, {}]}), "line 1 refers to an arm that another line"),
    "no context": (changed(c=None), "line 1 has no 'c'"),
    "no event": ('{"x": 1}\n', "line 1 has no 'c'"),
    "a list": ("[1, 2]\n", "line 1 is not an event but JSON of another kind"),
    "cut off": (FINE + FINE[:40], "line 2 is not JSON"),
    "nan": (FINE + FINE.replace("2}", "NaN}"), "line 2, feature 'p' is nan"),
    "infinity": (FINE.replace('"p": 2', '"p": 1e999'), "line 1, feature 'p' is inf"),
    "a vast number": (FINE.replace('"p": 2', '"p": 1' + "0" * 400), "line 1 has a number in 'p' that is too large"),
    "a number of 5000 digits": (FINE.replace('"p": 2', '"p": 1' + "0" * 5000), "line 1 is not JSON"),
    "deep": ('{"c": ' * 100_000, "line 1 is nested too deeply"),
    "deep features": (changed(c={"_multi": []}).replace("[]", '{"a":' * 900 + "1" + "}" * 900), "line 1"),
    "not UTF-8": (b'{"c": "\xff"}\n', "line 1 is not text in UTF-8"),
    "zero bytes": (FINE.encode() + b"\0\n", "line 2 has a zero byte"),
    "rewards alone": ('{"RewardValue": 1, "EventId": "e"}\n', "holds no rounds"),
}


@pytest.mark.parametrize("damage", DSJSON)
def test_dsjson(refused, damage):
    content, message = DSJSON[damage]
    assert message in refused("log.dsjson", content)


VISIT = "1241160900 109513 0 |user 2:.1 3:.2 4:.3 5:.4 6:.5 1:1 |109513 2:.1 3:.2 4:.3 5:.4 6:.5 1:1"
R6A = {
    "all cut off": (VISIT[:-4] + "\n" + VISIT[:-4], "holds no visit that can be read (2 lines are malformed)"),
    "other features": (VISIT.replace(" 2:.1 3:", " 7:.1 3:"), "line 1 has other features than 2, 3, 4, 5, 6 and 1"),
    "no bar": (VISIT + "\n" + VISIT.replace("|109513", "109513"), "line 2 is not 'timestamp article click |user"),
    "value of text": (VISIT + "\n" + VISIT.replace("2:.1", "2:x", 1), "line 2 has a value that is not a number"),
    "nan": (VISIT + "\n" + VISIT.replace(".5 1:1 |", "nan 1:1 |"), "line 2, feature 6 is nan"),
    "infinity": (VISIT + "\n" + VISIT[:-1] + "inf", "line 2, feature 1 is inf"),
    "zero bytes": (VISIT + "\n\0", "line 2 has a zero byte"),
}


@pytest.mark.parametrize("damage", R6A)
def test_yahoo_r6a(refused, damage):
    content, message = R6A[damage]
    assert message in refused("day.txt", content)


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def member(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(name, content)
    return buffer.getvalue()


GIVEN = {"action": np.array([0, 1]), "action_context": np.eye(2)}
VAST = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
VAST += b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + b"\n"
OBP = {
    "no archive": (b"PK\x03\x04 but not really", "cannot be read as arrays"),
    "cut off": (archive(**GIVEN)[:-40], "cannot be read as arrays"),
    "no pick": (archive(action_context=np.eye(2)), "has no array 'action'"),
    "no features": (archive(action=np.array([0])), "has no array 'action_context'"),
    "pickled": (archive(action=np.array([0, None]), action_context=np.eye(2)), "cannot be read as arrays (Object"),
    "pick beyond": (archive(**GIVEN | {"action": np.array([0, 2])}), "round 1 picks action 2, but there are 2"),
    "nan": (archive(**GIVEN | {"action_context": np.full((2, 1), np.nan)}), "feature 'action_context_0' is nan"),
    "vast by its header": (member("action.npy", VAST), "does not fit into memory"),
    "no array": (member("action.npy", b"hello"), "array 'action' has dtype |S5"),
    "ids that do not fit": (archive(**GIVEN, round_ids=np.arange(5)), "'round_ids' has 5 entries, but 2 are needed"),
    "names that do not fit": (archive(**GIVEN, feature_names=np.array(["a"])), "feature_names has 1 names"),
}


@pytest.mark.parametrize("damage", OBP)
def test_obp(refused, damage):
    content, message = OBP[damage]
    assert message in refused("feedback.npz", content)


@pytest.mark.parametrize("name", ["log.vw.gz", "log.dsjson.gz", "log.json.gz", "day.gz"])
def test_gzip_that_is_cut_off(refused, name):
    text = {"log.vw.gz": GOOD, "day.gz": VISIT + "\n"}.get(name, FINE) * 5000
    assert "cannot be decompressed" in refused(name, gzip.compress(text.encode())[:-20])


@pytest.mark.parametrize("name", ["log.vw.gz", "log.dsjson.gz"])
def test_lines_without_an_end(refused, monkeypatch, name):
    monkeypatch.setattr(text_lines, "LONGEST", 1 << 20)
    assert "line 1 is longer than 1 MB" in refused(name, gzip.compress(b"0:1:1 | " + b"a" * (1 << 23)))


@pytest.mark.parametrize("name", ["log.vw", "log.dsjson"])
def test_long_lines_in_the_middle(refused, monkeypatch, name):
    monkeypatch.setattr(text_lines, "LONGEST", 1000)
    good = {"log.vw": GOOD, "log.dsjson": FINE}[name]
    assert f"line {1 + good.count(chr(10))} is longer than" in refused(name, good + "x" * 2000 + "\n" + good)
