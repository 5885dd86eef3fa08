"""JSON that would overrun a parser's stack is refused before any parser sees it, and honest JSON is not."""

import gzip
import json

import pytest

from onlooker import InputError, LinearPolicy, TrackingObserver, read_log, scan_log
from onlooker.base.checks import DEEPEST, NestedLines, check_nesting, parsed

ROWS = b'{"round":1,"chosen":1,"x":1.5}\n{"round":1,"chosen":0,"x":2.5}\n'
DEEP = {
    "objects": b'{"a":' * 30_000,
    "lists": b'{"a":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "over lines": b'{"a":\n' * 30_000,
    "behind a string": b'{"s":"\\"]]]]]","a":' + b"[" * 30_000,
    "behind what is closed too often": b"{" + b"}" * 30_000 + b'\n{"a":' + b"[" * 20_000,
    "behind an open string": b'{"a":"\n{"a":' + b"[" * 30_000,
}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".jsonl.gz"])
def test_deep_lines_are_refused(tmp_path, deep, suffix):
    path = tmp_path / f"log{suffix}"
    data = ROWS + deep + b"\n"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    for read in (read_log, scan_log):
        with pytest.raises(InputError, match=r"row \d|cannot be read as JSON") as caught:
            read(path)
        assert str(caught.value).isprintable()


def test_deep_lines_far_into_a_file_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    flat = b"".join(b'{"round":%d,"chosen":%d,"x":[1.5]}\n' % (i // 2, i % 2) for i in range(200_000))
    path.write_bytes(flat + DEEP["lists"] + b"\n")
    with pytest.raises(InputError, match=r"row 200001 .* nested too deeply"):
        read_log(path, features=["x"])


@pytest.mark.parametrize("load", [LinearPolicy.load, TrackingObserver.load])
def test_deep_documents_are_refused(tmp_path, load):
    path = tmp_path / "document.json"
    for inner in (b"[" * 900 + b"]" * 900, b"[" * 30_000, b'{"a":' * 30_000):
        path.write_bytes(b'{"schema": "onlooker.policy/1", "theta": ' + inner + b"}")
        with pytest.raises(InputError, match="nested too deeply"):
            load(path)


def test_brackets_in_strings_are_no_nesting(tmp_path):
    name = '[{"\\' * 200
    assert parsed(json.dumps({name: [name]}).encode()) == {name: [name]}
    path = tmp_path / "log.jsonl"
    lines = [{"round": i // 2, "chosen": i % 2, "x": i * 0.5, "c": f"{name}{i % 3}"} for i in range(2_000)]
    path.write_text("\r\n".join(map(json.dumps, lines)))
    assert read_log(path, features=["x"]).n_rounds == 1_000


@pytest.mark.parametrize("between", ["\n", "\r\n", " \n\n "])
def test_what_is_kept_of_flat_lines_does_not_grow(between):
    guard = NestedLines()
    text = "".join(json.dumps({"round": i, "x": [[1], "}"]}) + between for i in range(1_000)).encode()
    for start in range(0, len(text), 777):
        guard.see(text[start : start + 777])
        assert len(guard._rest) < 2_000


def test_the_bound_is_exact():
    check_nesting(b"[" * DEEPEST + b"]" * DEEPEST)
    with pytest.raises(InputError):
        check_nesting(b"[" * (DEEPEST + 1))


@pytest.mark.parametrize("text", [b'{"a": "\\ud800"}', b'{"\\uDFFF": 1}'])
def test_halves_of_letters_are_refused(text):
    with pytest.raises(InputError, match="an unpaired surrogate"):
        parsed(text)
    assert parsed(b'"\\ud83d\\ude00"') == "\U0001f600"


def test_halves_of_letters_in_names(tmp_path):
    with pytest.raises(InputError, match="not valid Unicode text"):
        LinearPolicy([1.0], ["\ud800"])
    path = tmp_path / "log.dsjson"
    path.write_bytes(b'{"_labelIndex":0,"c":{"_multi":[{"x":1,"_tag":"\\ud800"},{"x":2}]}}\n')
    with pytest.raises(InputError, match="line 1 has an unpaired surrogate"):
        read_log(path)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"round":1,"chosen":1,"x\\ud800":1}\n{"round":1,"chosen":0,"x\\ud800":2}\n')
    with pytest.raises(InputError):
        read_log(path)
    path = tmp_path / "policy.json"
    path.write_bytes(b'{"schema": "onlooker.policy/1", "theta": [1], "feature_names": ["\\ud800"]}')
    with pytest.raises(InputError, match="an unpaired surrogate"):
        LinearPolicy.load(path)
