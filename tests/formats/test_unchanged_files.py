"""Files that change while they are read are refused, whatever the format, the change and the moment."""

import gzip
import os
import re
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import TrackingObserver, burn_in_sweep, diagnose
from onlooker.base.errors import InputError
from onlooker.formats import LogScan, read_log, scan, scan_log, write_parts
from onlooker.formats.places import UnchangedFiles
from onlooker.formats.scan import Held
from onlooker.logs.log import BanditLog
from onlooker.observers import SuffixImitation
from onlooker.report.page import Input

ROUNDS, ARMS = 240, 3
OPTIONS = {"nested": {}, "ordered": {"order_by": "round"}, "long": {}, "csv": {}, "jsonl": {}, "gz": {}, "vw": {}}
NAMES = {
    "nested": "log.parquet",
    "ordered": "log.parquet",
    "long": "log.parquet",
    "csv": "log.csv",
    "jsonl": "log.jsonl",
    "gz": "log.csv.gz",
    "vw": "log.vw",
}


def tables(seed):
    """Features with two digits each, so that logs of all seeds take the same number of bytes as text; and picks."""
    rng = np.random.default_rng(seed)
    features = rng.integers(10, 100, (ROUNDS, ARMS, 2))
    scores = features @ [0.05, -0.02 * seed] + rng.gumbel(size=(ROUNDS, ARMS))
    return features, scores.argmax(axis=1)


def content(kind, seed):
    """A log as a file of its kind has it; as long for all seeds."""
    features, picks = tables(seed)
    if kind in {"nested", "ordered", "long"}:
        sink = pa.BufferOutputStream()
        if kind == "long":
            chosen = np.zeros((ROUNDS, ARMS), dtype=np.int64)
            chosen[np.arange(ROUNDS), picks] = 1
            columns = {"round": np.repeat(np.arange(ROUNDS), ARMS), "chosen": chosen.ravel()}
            table = pa.table(columns | {name: features[:, :, j].ravel() * 1.0 for j, name in enumerate("ab")})
        else:
            arms = pa.array((features * 1.0).tolist(), pa.list_(pa.list_(pa.float64())))
            table = pa.table({"round": np.arange(ROUNDS), "arms": arms, "chosen": picks})
        plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        pq.write_table(table, sink, row_group_size=len(table) // 6, **plain)
        return sink.getvalue().to_pybytes()
    if kind == "vw":
        lines = ["shared |"]
        for row, pick in zip(features.tolist(), picks, strict=True):
            cost = [f"{arm}:1:0.5 " if arm == pick else " " * 8 for arm in range(ARMS)]
            lines += [*(f"{cost[arm]}| a:{a} b:{b}" for arm, (a, b) in enumerate(row)), "", "shared |"]
        return ("\n".join(lines[:-1]) + "\n").encode()
    rows = [(t, int(arm == picks[t]), *features[t, arm]) for t in range(ROUNDS) for arm in range(ARMS)]
    if kind == "jsonl":
        return "".join(f'{{"round": {t}, "chosen": {c}, "a": {a}, "b": {b}}}\n' for t, c, a, b in rows).encode()
    text = "round,chosen,a,b\n" + "".join(f"{t},{c},{a},{b}\n" for t, c, a, b in rows)
    return gzip.compress(text.encode(), 0, mtime=0) if kind == "gz" else text.encode()


def replace(path, other):
    beside = path.with_name("other.tmp")
    beside.write_bytes(other)
    before = path.stat()
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.replace(path)


def overwrite(path, other):
    before = path.stat()
    assert len(other) == before.st_size
    with open(path, "r+b") as file:
        file.write(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def grow(path, other):
    with open(path, "ab") as file:
        file.write(other)


def cut(path, other):
    os.truncate(path, len(other) * 2 // 3)


CHANGES = {replace: "was replaced", overwrite: "was written to|changed", grow: "grew from", cut: "was cut from"}


@pytest.fixture
def after(monkeypatch):
    """Do something after so many parts were read, in all passes together."""
    monkeypatch.setattr(LogScan, "sample_bytes", 3000)

    def schedule(number, act):
        original, read = scan._read, []

        def counted(*arguments):
            log = original(*arguments)
            read.append(log.n_rounds)
            if len(read) == number:
                act()
            return log

        monkeypatch.setattr(scan, "_read", counted)
        return read

    return schedule


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("kind", OPTIONS)
def test_a_change_at_any_moment_is_refused(tmp_path, after, kind, change):
    path, other = tmp_path / NAMES[kind], content(kind, 2)
    path.write_bytes(content(kind, 1))
    opened = scan_log(path, batch_rows=150, **OPTIONS[kind])
    read = after(0, None)
    right = SuffixImitation(burn_in=30).fit(opened)
    n_reads, n_parts = len(read), len(opened.held.known)
    assert n_reads > 2 * n_parts
    for number in (0, 1, n_parts, n_parts + 1, n_reads - 1):
        path.write_bytes(content(kind, 1))
        opened = scan_log(path, batch_rows=150, **OPTIONS[kind])
        after(number, lambda: change(path, other))
        if number == 0:
            change(path, other)
        said = ""
        try:
            found = SuffixImitation(burn_in=30).fit(opened)
        except InputError as error:
            said = str(error)
        if said:
            assert re.fullmatch(rf".*{path.name}: .*({CHANGES[change]}).*run this again.*", said)
        else:
            # Nothing of the other content was read any more, and only reading it can tell.
            assert change is overwrite
            assert number > n_parts
            assert np.array_equal(found.theta_, right.theta_)
            assert np.array_equal(found.covariance_, right.covariance_)


@pytest.mark.parametrize(
    "use",
    [
        lambda log: burn_in_sweep(log, [0.5, 0.8]),
        lambda log: TrackingObserver().fit(log),
        diagnose,
        lambda log: SuffixImitation(burn_in="auto").fit(log),
    ],
    ids=["sweep", "tracking", "diagnose", "auto"],
)
@pytest.mark.parametrize("kind", ["nested", "csv"])
def test_whoever_reads_it(tmp_path, after, use, kind):
    path = tmp_path / NAMES[kind]
    for change in CHANGES:
        path.write_bytes(content(kind, 1))
        opened = scan_log(path, batch_rows=150)
        after(2, lambda change=change: change(path, content(kind, 2)))
        with pytest.raises(InputError, match="run this again"):
            use(opened)


@pytest.mark.parametrize("kind", OPTIONS)
def test_content_is_compared_where_the_system_does_not_tell(tmp_path, monkeypatch, kind):
    path = tmp_path / NAMES[kind]
    path.write_bytes(content(kind, 1))
    opened = scan_log(path, batch_rows=150, **OPTIONS[kind])
    monkeypatch.setattr(UnchangedFiles, "check", lambda _: None)
    first = list(opened.run(HeldBy()))
    overwrite(path, content(kind, 2))
    with pytest.raises(InputError, match="the content of the log changed while it was read"):
        list(opened.run(HeldBy()))
    overwrite(path, content(kind, 1))
    assert list(opened.run(HeldBy())) == first


class HeldBy:
    def __call__(self, part, first):
        return first, Held.by(part)


def test_a_sign_a_swap_or_a_pick_makes_a_difference():
    features = np.arange(12.0).reshape(6, 2)
    log = BanditLog(features, [0, 2, 4, 6], [0, 1, 0])
    others = [
        BanditLog(-features, [0, 2, 4, 6], [0, 1, 0]),
        BanditLog(features[[1, 0, 2, 3, 4, 5]], [0, 2, 4, 6], [0, 1, 0]),
        BanditLog(features, [0, 3, 4, 6], [0, 0, 0]),
        BanditLog(features, [0, 2, 4, 6], [0, 1, 1]),
        log[:2],
    ]
    assert len({Held.by(one) for one in (log, *others)}) == 6
    assert Held.by(log) == Held.by(BanditLog(np.asfortranarray(features), [0, 2, 4, 6], [0, 1, 0]))
    assert Held.by(log[1:]) == Held.by(BanditLog(features[2:].copy(), [0, 2, 4], [1, 0]))


def test_files_of_a_pattern(tmp_path):
    for day in (1, 2, 3):
        rows = "".join(f"{day}{t:03},{day},1,{t}\n{day}{t:03},{day},0,7\n" for t in range(ROUNDS))
        (tmp_path / f"day{day}.csv").write_text("round,time,chosen,x\n" + rows)
    (tmp_path / "day3.csv").rename(tmp_path / "later.csv")
    opened = scan_log(f"{tmp_path}/day*.csv", order_by="time")
    (tmp_path / "night.csv").write_bytes(b"x")
    assert sum(part.n_rounds for part in opened) == 2 * ROUNDS
    (tmp_path / "later.csv").rename(tmp_path / "day3.csv")
    with pytest.raises(InputError, match=r"day3\.csv: appeared while the files of .*day\*\.csv were read"):
        list(opened)
    (tmp_path / "day3.csv").unlink()
    grow(tmp_path / "day2.csv", b"2999,2,1,11\n")
    with pytest.raises(InputError, match=r"day2\.csv: grew from"):
        list(opened)
    (tmp_path / "day2.csv").unlink()
    with pytest.raises(InputError, match=r"day2\.csv: cannot be read any more \(No such file"):
        list(opened)


def test_a_table_beside_the_log(tmp_path):
    rows = "".join(f"2019-11-24 00:00:{t:02d},{t % 3},1,0,0.3\n" for t in range(50))
    (tmp_path / "men.csv").write_text("timestamp,item_id,position,click,propensity_score\n" + rows)
    items = tmp_path / "item_context.csv"
    items.write_text("item_id,item_feature_0,item_feature_1\n0,0.5,a\n1,0.25,b\n2,0.125,b\n")
    opened = scan_log(tmp_path / "men.csv")
    assert sum(part.n_rounds for part in opened)
    items.write_text("item_id,item_feature_0,item_feature_1\n0,0.5,a\n1,0.75,b\n2,0.125,b\n")
    with pytest.raises(InputError, match=r"item_context\.csv: was written to"):
        list(opened)


def test_a_log_that_is_left_alone_or_gets_other_permissions_is_read_as_often_as_asked(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(content("csv", 1))
    opened = scan_log(path, batch_rows=150)
    first = [SuffixImitation(burn_in=30).fit(opened).theta_ for _ in range(2)]
    path.chmod(0o600)
    os.link(path, tmp_path / "backup.csv")
    assert np.array_equal(SuffixImitation(burn_in=30).fit(opened).theta_, first[0])
    assert np.array_equal(*first)
    grow(path, b"9999,1,11,11\n9999,0,12,11\n")
    assert read_log(path).n_rounds == ROUNDS + 1


def test_a_file_that_was_just_written_is_waited_for(tmp_path):
    path = tmp_path / "log.csv"
    for _ in range(20):
        path.write_bytes(content("csv", 1))
        files = UnchangedFiles([path])
        overwrite(path, content("csv", 2))
        with pytest.raises(InputError, match="was written to"):
            files.check()


def test_files_that_are_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_bytes(content("csv", 1))
    time.sleep(0.03)
    original = BanditLog.from_parts
    monkeypatch.setattr(BanditLog, "from_parts", lambda parts: overwrite(path, content("csv", 2)) or original(parts))
    with pytest.raises(InputError, match=r"log\.csv: was written to while it was read"):
        read_log(path)
    assert Input.of(path).size == path.stat().st_size


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("kind", OPTIONS)
def test_nothing_is_written_of_a_log_that_changes(tmp_path, kind, change):
    path = tmp_path / NAMES[kind]
    path.write_bytes(content(kind, 1))
    opened = scan_log(path, batch_rows=150, **OPTIONS[kind])

    def parts():
        for number, part in enumerate(opened):
            yield part
            if number == 0:
                change(path, content(kind, 2))

    with pytest.raises(InputError, match=CHANGES[change]):
        write_parts(parts(), tmp_path / "out.parquet")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
