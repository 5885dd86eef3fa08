"""What is fuzzed: every reader of logs, and the loading of policies, tracking states and finished cells."""

import io
import json
import random
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz import seeds
from fuzz.mutators import as_json, mutate_bytes, mutate_gzip, mutate_text, mutate_tree
from fuzz.outcome import complaint
from onlooker import BanditLog, LinearPolicy, TrackingObserver, load_policy, read_log, read_logs, scan_log
from onlooker.base.documents import sealed
from onlooker.experiments.ledger import Job, Ledger

Make = Callable[[random.Random], bytes]
Load = Callable[[Path], Any]


@dataclass(frozen=True)
class Target:
    """One kind of file, and all that reads it."""

    name: str
    """What the file is called in its folder."""
    make: Make
    """Draws an input."""
    loads: tuple[Load, ...]
    """Ways to read it; each input goes one of them."""
    share: int = 1
    """Part of a long run that it gets, beside those of the others."""

    def write(self, data: bytes, folder: Path) -> Path:
        """Put an input where it is read from."""
        path = folder / self.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        return path

    def judge(self, data: bytes, folder: Path, *, every: bool = False) -> str | None:
        """What is wrong with how an input is taken, by one of the ways to read it, or by every one."""
        path = self.write(data, folder)
        chosen = self.loads if every else (self.loads[sum(data[:64]) % len(self.loads)],)
        return next((found for load in chosen if (found := complaint(load, path, folder))), None)


class _Folder(Target):
    """The Open Bandit Dataset: two files."""

    def write(self, data: bytes, folder: Path) -> Path:
        place = folder / self.name
        place.mkdir(exist_ok=True)
        items, _, log = data.partition(seeds.SPLIT)
        (place / "item_context.csv").write_bytes(items)
        (place / f"{self.name}.csv").write_bytes(log)
        return place


def _text(originals: tuple[bytes, ...]) -> Make:
    return lambda chance: mutate_text(chance, chance.choice(originals))


def _gzipped(originals: tuple[bytes, ...]) -> Make:
    def make(chance: random.Random) -> bytes:
        data = chance.choice(originals)
        return mutate_gzip(chance, mutate_text(chance, data) if chance.randrange(2) else data)

    return make


def _lines(originals: tuple[bytes, ...]) -> Make:
    """JSON lines: values within them are swapped, or their text is."""

    def make(chance: random.Random) -> bytes:
        data = chance.choice(originals)
        if not chance.randrange(3):
            return mutate_text(chance, data)
        trees = [json.loads(line) for line in data.splitlines()]
        at = chance.randrange(len(trees))
        trees[at] = mutate_tree(chance, trees[at])
        return b"\n".join(as_json(chance, tree) for tree in trees)

    return make


def _document(originals: Callable[[], tuple[Any, ...]]) -> Make:
    def make(chance: random.Random) -> bytes:
        data = as_json(chance, mutate_tree(chance, chance.choice(originals())))
        return data if chance.randrange(4) else mutate_text(chance, data)

    return make


def _long_parquet(chance: random.Random) -> bytes:
    columns: dict[str, Any] = {
        "round": pa.array([1, 1, 2, 2, 3]),
        "arm": pa.array(list("ababa")),
        "chosen": pa.array([1, 0, 0, 1, 1]),
        "x": pa.array([0.5, 1, -2, 3, 1e3]),
        "colour": pa.array(["red", "blue", "red", "green", "red"]).dictionary_encode(),
    }
    return _parquet(chance, columns, 5)


def _nested_parquet(chance: random.Random) -> bytes:
    if chance.randrange(2):
        return mutate_bytes(chance, chance.choice(seeds.parquet()))
    columns: dict[str, Any] = {
        "round": pa.array(["a", "b", "c"]),
        "chosen": pa.array([0, 1, 0]),
        "arm_ids": pa.array([[1], [2, 3], [4]]),
        "arms": pa.array([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0]]]),
    }
    return _parquet(chance, columns, 3)


def _parquet(chance: random.Random, columns: dict[str, Any], n_rows: int) -> bytes:
    """A table with a column of another kind in it, then perhaps other bytes."""
    kind = chance.randrange(4)
    if kind:
        columns[chance.choice([*columns, "more"])] = _column(chance, n_rows)
    if kind == 2:
        del columns[chance.choice(list(columns))]
    metadata = None
    if kind == 3:
        metadata = {
            chance.choice(("onlooker", "pandas", "ARROW:schema")): as_json(chance, mutate_tree(chance, _METADATA))
        }
    file = io.BytesIO()
    table = pa.table(columns).replace_schema_metadata(metadata)
    if kind == 1 and not chance.randrange(8):
        table = table.append_column(chance.choice(table.column_names), table.column(0))
    try:
        pq.write_table(
            table,
            file,
            compression=chance.choice(("none", "snappy", "zstd", "gzip", "lz4")),
            use_dictionary=bool(chance.randrange(2)),
            row_group_size=chance.choice((1, 2, 100)),
            store_schema=bool(chance.randrange(2)),
        )
    except (pa.ArrowException, UnicodeError):
        return chance.choice(seeds.parquet())
    return file.getvalue() if kind and chance.randrange(2) else mutate_bytes(chance, file.getvalue())


_METADATA = {"format": 1, "feature_names": ["price", "colour=red"], "categories": {"colour": ["blue", "red"]}}
_KINDS: tuple[Any, ...] = (
    *(pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.string(), pa.large_string(), pa.binary()),
    *(pa.null(), pa.date32(), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("s")),
    *(pa.decimal128(5, 2), pa.list_(pa.float64()), pa.list_(pa.list_(pa.float64())), pa.list_(pa.list_(pa.string()))),
    *(pa.list_(pa.list_(pa.int8(), 2)), pa.list_(pa.list_(pa.float32(), 0)), pa.struct([("a", pa.int8())])),
    *(
        pa.dictionary(pa.int8(), pa.string()),
        pa.binary(4),
        pa.list_(pa.string()),
        pa.list_(pa.null()),
        pa.string_view(),
    ),
)


def _column(chance: random.Random, n_rows: int) -> Any:
    """A column of some type, its values fitting or missing."""
    kind = chance.choice(_KINDS)
    values = [
        [],
        [[]],
        [[1.0]],
        [[1, 2], [3, 4]],
        ["a"],
        [None],
        0,
        1,
        2**40,
        -1,
        0.5,
        "a",
        "",
        "1",
        b"abcd",
        b"\xff",
        True,
        {"a": 1},
        None,
    ]
    drawn: list[Any] = []
    for _ in range(n_rows):
        value = chance.choice(values)
        try:
            pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            value = drawn[-1] if drawn else None
        drawn.append(value)
    try:
        return pa.array(drawn, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(n_rows)


def _npz(chance: random.Random) -> bytes:
    arrays = dict(chance.choice(seeds.npz()))
    kind = chance.randrange(3)
    if kind:
        arrays[chance.choice([*arrays, "feature_names", "round_ids", "position", "more"])] = _array(chance)
    if kind == 2:
        del arrays[chance.choice(list(arrays))]
    data = seeds.archive(arrays, compress=bool(chance.randrange(2)))
    return data if kind and chance.randrange(2) else mutate_bytes(chance, data)


def _array(chance: random.Random) -> Any:
    shape = chance.choice(((), (0,), (4,), (3, 2), (4, 2), (4, 3, 2), (0, 3, 2), (4, 0, 2), (3, 0), (1, 1, 1, 1)))
    kind = chance.choice(
        ("i8", "u8", "f8", "f4", "f2", "c16", "U3", "S3", "M8[s]", "m8[s]", "V5", "?", "O", ">i4", "i8,f4")
    )
    array = np.zeros(shape, dtype=kind)
    if array.dtype.kind in "iuf" and array.size:
        array[...] = chance.choice((0, 1, 2, -1 if array.dtype.kind != "u" else 3, 60_000))
    if array.dtype.kind == "f" and array.size:
        array.flat[0] = chance.choice((np.nan, np.inf, 1e300 if array.itemsize == 8 else 1.0))
    return array


def _cell(path: Path) -> Any:
    return Ledger(path.parent.parent).read(Job(path.stem, '{"seed": 0, "d": [20, 50], "rate": 0.5}'))


def _scan(path: Path, **columns: Any) -> Any:
    return [len(log.features) for log in scan_log(path, batch_rows=2, **columns)]


def _with(load: Callable[..., Any], *arguments: Any, **columns: Any) -> Load:
    return lambda path: load(path, *arguments, **columns)


def _state(path: Path) -> Any:
    return str(TrackingObserver.load(path).summary())


def _resealed(chance: random.Random) -> bytes:
    """A state with other values, and mostly with the digest of these."""
    tree = mutate_tree(chance, chance.choice(seeds.states()))
    if isinstance(tree, dict) and chance.randrange(4):
        with suppress(ValueError, TypeError, RecursionError):
            return sealed({name: value for name, value in tree.items() if name != "digest"}).encode()
    return as_json(chance, tree)


def _tampered(chance: random.Random) -> bytes:
    """A state as it was saved, with bits flipped, cut, or with numbers, fields and names swapped or doubled."""
    data, kind = chance.choice(seeds.sealed_states()), chance.randrange(5)
    if kind < 2:
        return mutate_bytes(chance, data)
    if kind == 2:
        return mutate_text(chance, data)
    words = list(re.finditer(rb"-?\d[\d.e+-]*" if kind == 3 else rb'"\w+": (?:"[^"]*"|[^\[{,}]+)', data))
    one, other = sorted(chance.sample(words, 2), key=re.Match.start)
    (a, b), (c, d) = one.span(), other.span()
    if kind == 4 and chance.randrange(2):
        return data[:c] + data[a:b] + b", " + data[c:]
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _as_saved(path: Path) -> Any:
    """Load a state, which must be one of those that were saved: any other should have been refused."""
    found = TrackingObserver.load(path)._document()
    if not any(found == {name: one[name] for name in one if name != "digest"} for one in seeds.states()):
        raise AssertionError("a changed state was taken")


_LIKE = LinearPolicy([0.5, -1.0], ["price", "colour=red"], {"colour": ["blue", "red"]})
_LONG = (
    read_log,
    _scan,
    _with(read_logs, "round"),
    _with(read_log, order_by="time"),
    _with(read_log, like=_LIKE),
    _with(_scan, like=_LIKE),
    _with(read_log, categories=["arm"]),
)
_SPARSE = (read_log, _with(read_log, cross=True), _with(read_log, features=["ad^price", "x"]), _scan)


def _policy(path: Path) -> None:
    """Read a policy of any kind, and score with it where it has names to make offers by."""
    policy: Any = load_policy(path)
    names = policy.feature_names
    if names is not None and len(names) <= 100:
        policy.choose(BanditLog(np.ones((2, len(names))), [0, 2], [0], feature_names=names))


TARGETS: dict[str, Target] = {
    "csv": Target("log.csv", _text(seeds.CSV), (*_LONG, _with(read_log, decimal=",")), share=2),
    "csv_gz": Target("log.csv.gz", _gzipped(seeds.CSV), (read_log, _scan)),
    "tsv": Target("log.tsv", _text(seeds.CSV[-1:]), (read_log, _scan)),
    "jsonl": Target("log.jsonl", _lines(seeds.JSONL), _LONG, share=2),
    "jsonl_gz": Target("log.json.gz", _gzipped(seeds.JSONL), (read_log, _scan)),
    "nested": Target(
        "log.parquet",
        _nested_parquet,
        (read_log, _scan, _with(read_log, order_by="round"), _with(read_logs, "round"), _with(read_log, like=_LIKE)),
        share=2,
    ),
    "long": Target("log.pq", _long_parquet, _LONG, share=2),
    "vw": Target("log.vw", _text(seeds.VW), _SPARSE, share=3),
    "vw_gz": Target("log.vw.gz", _gzipped(seeds.VW), (read_log,)),
    "dsjson": Target("log.dsjson", _lines(seeds.DSJSON), (*_SPARSE, _with(read_log, order_by="Timestamp")), share=3),
    "dsjson_gz": Target("log.dsjson.gz", _gzipped(seeds.DSJSON), (read_log,)),
    "r6a": Target("log.txt", _text(seeds.R6A), (read_log, _with(read_log, cross=True)), share=2),
    "open_bandit": _Folder(
        "campaign",
        _text(seeds.OPEN_BANDIT),
        (read_log, _with(read_log, position=1), _with(read_log, order_by="timestamp"), _scan),
    ),
    "npz": Target("log.npz", _npz, (read_log, _with(read_log, cross=True), _with(read_log, position=1), _scan)),
    "policy": Target("policy.json", _document(seeds.policies), (_policy,), share=3),
    "state": Target("state.json", _resealed, (_state,), share=2),
    "tampered": Target("state.json", _tampered, (_as_saved,), share=2),
    "cell": Target("cells/cell.json", _document(lambda: tuple(map(json.loads, seeds.CELL))), (_cell,)),
}
"""By name."""
