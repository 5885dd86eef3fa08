"""Small files that stand for gigabytes, each made in a moment."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

POLICY = b'{"schema": "onlooker.policy/1", "theta": ['


def write_bombs(folder: Path) -> None:
    """Write one of every kind."""
    for name, content in (_compressed() | _tables() | _arrays() | _texts()).items():
        (folder / name).write_bytes(content)
    # Eight gigabytes that take no room on the disk.
    with open(folder / "vast.policy", "wb") as file:
        file.truncate(8_000_000_000)


def _compressed() -> dict[str, bytes]:
    """Gzip: the same member again and again, two gigabytes and more of each."""
    vw, rows = b"| a:1 b:2\n" * 500_000, b"1,0,0\n" * 1_000_000
    line, events = b"[]," * 1_000_000, b'{"_labelIndex":0,"c":{"_multi":[{"x":1},{"x":2}]}}\n' * 100_000
    objects = b'{"round":1,"chosen":0,"x":1}\n' * 200_000
    distinct = (b"1:1:0.5 | " + b" ".join(b"%d_%d" % (k, j) for j in range(20_000)) + b"\n| 1\n\n" for k in range(60))
    return {
        "rows.csv.gz": gzip.compress(b"round,chosen,x\n") + 400 * gzip.compress(rows),
        "objects.jsonl.gz": 400 * gzip.compress(objects),
        "lines.vw.gz": gzip.compress(b"1:1:0.5 | a:1\n") + 400 * gzip.compress(vw),
        "events.dsjson.gz": 400 * gzip.compress(events),
        "one_line.jsonl.gz": gzip.compress(b'{"round":1,"x":[') + 700 * gzip.compress(line),
        "one_line.dsjson.gz": gzip.compress(b'{"c":[') + 700 * gzip.compress(line),
        # No bomb by its compression, but every word is another feature.
        "words.vw.gz": gzip.compress(b"".join(distinct), 1),
    }


def _tables() -> dict[str, bytes]:
    """Parquet: runs of one value, long texts in dictionaries, a round of a hundred million arms, a page that lies."""
    n = 1_000_000
    same = pa.table({"round": np.zeros(n, dtype=np.int64), "chosen": np.zeros(n, dtype=np.int8), "x": np.zeros(n)})
    runs = io.BytesIO()
    with pq.ParquetWriter(runs, same.schema, compression="zstd") as writer:
        for _ in range(15):
            writer.write_table(same)
    long = pa.DictionaryArray.from_arrays(np.arange(50_000, dtype=np.int32) % 2, ["x" * 1_000_000, "y" * 1_000_000])
    columns = {"round": np.arange(50_000), "chosen": np.ones(50_000, dtype=np.int8), "x": np.zeros(50_000)}
    arms = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(20_000_001, dtype=np.float32)), 1)
    rounds = pa.ListArray.from_arrays(pa.array([0, 1, 20_000_001], pa.int32()), arms)
    return {
        "runs.parquet": runs.getvalue(),
        "names.parquet": _written(pa.table(columns | {"round": long})),
        "levels.parquet": _written(pa.table(columns | {"colour": long})),
        "one_round.parquet": _written(pa.table({"chosen": [0, 0], "arms": rounds})),
        "page.parquet": _lying(),
    }


def _lying() -> bytes:
    """A page that says it unpacks to two gigabytes, in a file that says nothing of the kind."""
    plain = {"use_dictionary": False, "write_statistics": False, "column_encoding": "PLAIN"}
    content = bytearray(_written(pa.table({"round": [1] * 800, "chosen": [1] * 800, "x": [0.5] * 800}), **plain))
    # In the first page's header the second field, its size, takes two bytes of seven bits each; the largest takes five.
    at = content.index(b"\x15\x00\x15", 4) + 3
    assert content[at] >= 128 > content[at + 1]
    return bytes(content[:at] + b"\xfe\xff\xff\xff\x0f" + content[at + 2 :])


def _arrays() -> dict[str, bytes]:
    """An archive of zeros, and small arrays that are to be repeated for every round."""
    zeros, repeated = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zeros, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in {"action": np.zeros(80_000_000, dtype=np.int64), "action_context": np.eye(2)}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array)
    np.savez_compressed(repeated, action=np.zeros(100_000, dtype=int), action_context=np.zeros((1000, 100)))
    return {"zeros.npz": zeros.getvalue(), "repeated.npz": repeated.getvalue()}


def _texts() -> dict[str, bytes]:
    """A header without end, and saved documents of nothing but brackets."""
    numbers = b"1,0," + b",".join([b"1"] * 50) + b"\n"
    return {
        "header.csv": b"x," * 30_000_000,
        "numbers.csv": b"round,chosen," + b",".join(b"x%d" % j for j in range(50)) + b"\n" + numbers * 700_000,
        "deep.policy": b"[" * 20_000_000,
        "wide.policy": POLICY + b"[]," * 5_000_000 + b"1]}",
    }


def _written(table: pa.Table, **options: object) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **{"compression": "zstd", **options})
    return file.getvalue()
