import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.formats import nested_parquet, read_log, write_log, write_parts
from onlooker.logs.columns import is_outcome
from onlooker.logs.log import BanditLog
from strategies import IDS, NAMES, assert_equal_logs, plains

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def named_logs(draw):
    """Random logs, some with names for everything, some for nothing."""
    plain = draw(plains())
    n, rows, d = len(plain.rounds), sum(map(len, plain.rounds)), plain.n_features

    def ids(size, unique):
        kind = draw(st.sampled_from([None, IDS, INTEGERS]))
        return None if kind is None else np.array(draw(st.lists(kind, min_size=size, max_size=size, unique=unique)))

    reserved = {"round", "arm", "chosen"}
    free = NAMES.filter(lambda name: name not in reserved and not is_outcome(name))
    names = st.lists(free, min_size=d, max_size=d, unique=True)
    log = plain.log(feature_names=draw(st.none() | names), round_ids=ids(n, True), arm_ids=ids(rows, False))
    return log[draw(st.integers(0, n - 1)) :]


@given(named_logs(), st.sampled_from([1, 5, 1 << 19]))
def test_parquet_keeps_everything(tmp_path_factory, log, group_values):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_parquet, "_GROUP_VALUES", group_values)
        write_log(log, path)
    assert_equal_logs(read_log(path), log)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz"])
@given(log=named_logs())
def test_text_keeps_values_names_and_ids(tmp_path_factory, suffix, log):
    path = tmp_path_factory.mktemp("log") / f"log.{suffix}"
    write_log(log, path)
    # Named, since some names are those of ids and probabilities.
    again = read_log(path, features=log.feature_names or [f"x{j}" for j in range(log.n_features)])
    assert again.features.dtype == np.float64
    assert np.array_equal(again.features, log.features)
    assert np.array_equal(again.offsets, log.offsets)
    assert np.array_equal(again.chosen, log.chosen)
    assert again.feature_names == (log.feature_names or tuple(f"x{j}" for j in range(log.n_features)))
    expected = np.arange(log.n_rounds) if log.round_ids is None else log.round_ids
    assert list(map(str, again.round_ids)) == list(map(str, expected))
    assert (again.arm_ids is None) == (log.arm_ids is None)
    assert log.arm_ids is None or list(map(str, again.arm_ids)) == list(map(str, log.arm_ids))
    if suffix.startswith("jsonl") and log.round_ids is not None:
        # JSON tells numbers from text.
        assert again.round_ids.tolist() == log.round_ids.tolist()


@given(named_logs())
def test_long_parquet_keeps_all_but_made_up_names(tmp_path_factory, log):
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_parts([log], path, long=True)
    names = log.feature_names or tuple(f"x{j}" for j in range(log.n_features))
    ids = np.arange(log.n_rounds) if log.round_ids is None else log.round_ids
    same = BanditLog(log.features, log.offsets, log.chosen, feature_names=names, round_ids=ids, arm_ids=log.arm_ids)
    assert_equal_logs(read_log(path), same)


@given(named_logs(), st.data())
def test_categories_survive_in_parquet(tmp_path_factory, log, data):
    levels = data.draw(st.lists(NAMES, min_size=log.n_features + 1, max_size=log.n_features + 1, unique=True))
    names = [f"c={level}" for level in levels[1:]]
    log = BanditLog(log.features, log.offsets, log.chosen, feature_names=names, categories={"c": levels})
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    write_log(log, path)
    again = read_log(path)
    assert_equal_logs(again, log)
    assert again.categories == {"c": tuple(levels)}


EXTREMES = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, 2**53 + 1.0, 1e16, 123456789.12345679, 3.0]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_every_bit_of_a_float64_survives(tmp_path, suffix):
    random = np.frombuffer(np.random.default_rng(0).bytes(8 * 20_000), dtype=np.float64)
    values = np.concatenate([EXTREMES, random[np.isfinite(random)]])[:, None]
    log = BanditLog(values, np.arange(len(values) + 1), np.zeros(len(values), dtype=int))
    write_log(log, tmp_path / f"log.{suffix}")
    assert read_log(tmp_path / f"log.{suffix}").features.tobytes() == log.features.tobytes()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "ids",
    [
        ["01", "02"],
        ["1", "02"],
        ["a,b", 'say "x"'],
        ["NA", "null"],
        ["a\rb", "c\r\nd"],
        [" 1", "1 "],
        [2**53 + 1, 2**53 + 3],
        [2**63 + 1, 2**64 - 1],
        [-5, 5],
    ],
)
def test_ids_stay_as_they_are(tmp_path, suffix, ids):
    log = BanditLog(np.eye(2), [0, 1, 2], [0, 0], round_ids=ids, arm_ids=ids)
    write_log(log, tmp_path / f"log.{suffix}")
    again = read_log(tmp_path / f"log.{suffix}")
    assert again.round_ids.tolist() == ids
    assert again.arm_ids.tolist() == ids


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "names", [["a.b", "a"], ["a,b", "c;d;e"], ['"', "'"], ["\n", "\t"], ["\r", "\r\n"], ["é 😀", " "], ["1", "-2"]]
)
def test_odd_feature_names(tmp_path, suffix, names):
    log = BanditLog(np.array([[1.5, 2.0]]), [0, 1], [0], feature_names=names)
    write_log(log, tmp_path / f"log.{suffix}")
    assert read_log(tmp_path / f"log.{suffix}").feature_names == tuple(names)


def test_row_groups_hold_whole_rounds_of_a_bounded_size(tmp_path):
    sizes = np.random.default_rng(0).integers(1, 400, 300)
    features = np.random.default_rng(1).standard_normal((sizes.sum(), 100), dtype=np.float32)
    log = BanditLog(features, np.cumsum([0, *sizes]), sizes - 1)
    write_log(log, tmp_path / "log.parquet")
    metadata = pq.read_metadata(tmp_path / "log.parquet")
    counts = [metadata.row_group(i).column(1).num_values for i in range(metadata.num_row_groups)]
    assert len(counts) > 5
    assert max(counts) <= nested_parquet._GROUP_VALUES + 400 * 100
    assert_equal_logs(read_log(tmp_path / "log.parquet"), log)


def test_the_number_of_threads_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(nested_parquet, "_GROUP_VALUES", 10)
    features = np.random.default_rng(0).standard_normal((200, 3))
    log = BanditLog(features, np.arange(0, 201, 2), np.zeros(100, dtype=int))
    write_log(log, tmp_path / "log.parquet")
    for threads in "13":
        monkeypatch.setenv("ONLOOKER_THREADS", threads)
        assert_equal_logs(read_log(tmp_path / "log.parquet"), log)


def test_times_are_ids_too(tmp_path):
    times = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[us]")
    write_log(BanditLog(np.eye(2), [0, 1, 2], [0, 0], round_ids=times), tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").round_ids.tolist() == times.tolist()


def test_the_file_explains_itself_to_other_tools(tmp_path):
    log = BanditLog(np.eye(3, dtype=np.float32), [0, 1, 3], [0, 1], round_ids=["a", "b"])
    write_log(log, tmp_path / "log.parquet")
    assert pq.read_table(tmp_path / "log.parquet").to_pylist() == [
        {"round": "a", "chosen": 0, "arms": [[1, 0, 0]]},
        {"round": "b", "chosen": 1, "arms": [[0, 1, 0], [0, 0, 1]]},
    ]
    arms = pq.read_schema(tmp_path / "log.parquet").field("arms").type
    assert pa.types.is_fixed_size_list(arms.value_type)
    assert pa.types.is_float32(arms.value_type.value_type)
