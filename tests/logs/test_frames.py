import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.base.errors import ColumnsLeftOutWarning, InputError
from onlooker.logs.log import BanditLog
from strategies import assert_same, plains

LIBRARIES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}

each_library = pytest.mark.parametrize("table", LIBRARIES.values(), ids=LIBRARIES)


@each_library
@given(plains(), st.data())
def test_shuffled_rows_give_the_same_rounds(table, plain, data):
    names = [f"x{j}" for j in range(plain.n_features)]
    columns = plain.long(names)
    rows = data.draw(st.permutations(range(len(columns["round"]))))
    columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    log = BanditLog.from_frame(table(columns), arm="arm", order_by="round", features=names)
    # Rounds are ordered by time; within a round rows keep their order of appearance.
    assert log.round_ids.tolist() == list(range(len(plain.rounds)))
    assert log.feature_names == tuple(names)
    for t in range(log.n_rounds):
        arms = [int(arm.split("/")[1]) for arm in log.arm_ids[log.offsets[t] : log.offsets[t + 1]]]
        assert arms == [int(columns["arm"][i].split("/")[1]) for i in range(len(rows)) if columns["round"][i] == t]
        assert log.arms(t).tolist() == [plain.rounds[t][k] for k in arms]
        assert arms[log.chosen[t]] == plain.chosen[t]


@each_library
@given(plains())
def test_rows_in_order(table, plain):
    log = BanditLog.from_frame(table(plain.long([f"x{j}" for j in range(plain.n_features)])), arm="arm")
    assert_same(log, plain)


@each_library
@given(plains(), st.data())
def test_rounds_come_in_order_of_appearance(table, plain, data):
    order = data.draw(st.permutations(range(len(plain.rounds))))
    columns = plain.long([f"x{j}" for j in range(plain.n_features)])
    rows = [i for t in order for i in range(len(columns["round"])) if columns["round"][i] == t]
    shuffled = {name: [values[row] for row in rows] for name, values in columns.items()}
    log = BanditLog.from_frame(table(shuffled), arm="arm")
    assert log.round_ids.tolist() == list(order)
    assert_same(log, type(plain)([plain.rounds[t] for t in order], [plain.chosen[t] for t in order]))


def columns(**changes):
    """Two rounds of two arms."""
    return {"round": [1, 1, 2, 2], "chosen": [0, 1, 1, 0], "price": [9.0, 7.0, 5.0, 8.0]} | changes


@each_library
@pytest.mark.parametrize("chosen", [[0, 1, 1, 0], [False, True, True, False], [0.0, 1.0, 1.0, 0.0]])
def test_picks_may_be_whole_or_boolean_or_float(table, chosen):
    assert BanditLog.from_frame(table(columns(chosen=chosen))).chosen.tolist() == [1, 0]


@each_library
@pytest.mark.parametrize(
    "ids",
    [
        ["01", "01", "1", "1"],
        [2**53 + 1, 2**53 + 1, 2**53, 2**53],
        [2**62 + 1, 2**62 + 1, -1, -1],
        [True, True, False, False],
    ],
)
def test_ids_stay_as_they_are(table, ids):
    log = BanditLog.from_frame(table(columns(round=ids, arm=ids)), arm="arm")
    assert log.round_ids.tolist() == [ids[0], ids[2]]
    assert log.arm_ids.tolist() == ids


@each_library
def test_features_default_to_every_other_number(table):
    frame = table(
        columns(size=[1, 2, 3, 4], seen=[True, False, True, True], name=["a", "a", "a", "a"], when=[1, 1, 2, 2])
    )
    with pytest.warns(ColumnsLeftOutWarning, match=r"not taken for features: 'name' \(the same in every row\)"):
        log = BanditLog.from_frame(frame, order_by="when")
    assert log.feature_names == ("price", "size", "seen")
    assert log.arms(0).tolist() == [[9, 1, 1], [7, 2, 0]]
    chosen = BanditLog.from_frame(frame, features=["size", "price"])
    assert chosen.feature_names == ("size", "price")
    assert chosen.arms(1).tolist() == [[3, 5], [4, 8]]


@each_library
def test_columns_may_have_other_names(table):
    frame = table({"trip": ["b", "a", "b"], "taken": [1, 1, 0], "price": [1, 2, 3]})
    log = BanditLog.from_frame(frame, round="trip", chosen="taken")
    assert log.round_ids.tolist() == ["b", "a"]
    assert log.features.tolist() == [[1], [3], [2]]


def test_float32_stays_where_every_feature_is():
    single = pa.array([1, 2, 3, 4], pa.float32())
    assert BanditLog.from_frame(pa.table(columns(price=single))).features.dtype == "float32"
    assert BanditLog.from_frame(pa.table(columns(price=single, size=[1, 2, 3, 4]))).features.dtype == "float64"


def test_nullable_and_categorical_pandas_columns():
    frame = pd.DataFrame(
        {
            "round": pd.Categorical(["b", "b", "a", "a"]),
            "chosen": pd.array([True, False, False, True], dtype="boolean"),
            "price": pd.array([1, 2, 3, 4], dtype="Int64"),
        },
        index=[7, 7, 3, 1],
    )
    log = BanditLog.from_frame(frame)
    assert log.round_ids.tolist() == ["b", "a"]
    assert log.features.tolist() == [[1], [2], [3], [4]]
    assert log.chosen.tolist() == [0, 1]


def test_arrow_chunks_and_dictionaries():
    part = pa.table(columns(round=pa.array(["a", "a", "b", "b"]).dictionary_encode()))
    other = pa.table(columns(round=pa.array(["d", "d", "c", "c"]).dictionary_encode()))
    log = BanditLog.from_frame(pa.concat_tables([part, other]))
    assert log.round_ids.tolist() == ["a", "b", "d", "c"]
    assert log.chosen.tolist() == [1, 0, 1, 0]


def test_rounds_are_ordered_by_time_not_by_text():
    when = pd.to_datetime(["2024-10-01", "2024-10-01", "2024-09-30", "2024-09-30"])
    log = BanditLog.from_frame(pd.DataFrame(columns(when=when)), order_by="when")
    assert log.round_ids.tolist() == [2, 1]


def test_equal_times_keep_the_order_of_appearance():
    log = BanditLog.from_frame(pa.table(columns(round=[5, 5, 3, 3], when=[1, 1, 1, 1])), order_by="when")
    assert log.round_ids.tolist() == [5, 3]


NAN = float("nan")


@each_library
@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (
            {},
            {"round": "trip"},
            "the table has no column 'trip': it has 'round', 'chosen', 'price'; name it as `round`",
        ),
        (
            {},
            {"round": "trip", "chosen": "prize"},
            "the table has no columns 'trip' and 'prize': .* did you mean 'price'\\? name them as `round` and `chosen`",
        ),
        ({}, {"features": ["prize"]}, "the table has no column 'prize': .* did you mean 'price'"),
        ({}, {"features": ["chosen"]}, "column 'chosen' cannot be a feature too"),
        ({}, {"features": ["price", "price"]}, "the features have 'price' twice"),
        ({}, {"features": []}, "the table has no feature besides"),
        ({"price": list("aaaa")}, {}, r"no feature besides 'round', 'chosen' \(left out: 'price'\)"),
        ({"price": [[1], [2], [3], [4]]}, {"features": ["price"]}, "column 'price' holds .*list.*, not numbers"),
        ({"price": [1.0, None, 2.0, 3.0]}, {}, "column 'price', row 2 .*is missing"),
        ({"price": [1.0, 2.0, NAN, 3.0]}, {}, "column 'price', row 3 .*is missing"),
        ({"price": [1.0, 2.0, float("inf"), 3.0]}, {}, "column 'price', row 3 .*is inf"),
        ({"round": ["a", "a", None, "b"]}, {}, "column 'round', row 3 .*is missing"),
        ({"round": [1.0, 1.0, NAN, NAN]}, {}, "column 'round', row 3 .*is missing"),
        ({"chosen": [1, 0, None, 1]}, {}, "column 'chosen', row 3 .*is missing"),
        ({"chosen": [0, 2, 1, 0]}, {}, "column 'chosen', row 2 .*is 2: use 1 for the pick"),
        ({"chosen": [0.0, 0.5, 1.0, 0.0]}, {}, "column 'chosen', row 2 .*is 0.5: use 1 for the pick"),
        ({"chosen": list("0110")}, {}, "column 'chosen', row 1 .*is the text '0': turn the column into numbers"),
        ({"chosen": [0, 1, 0, 0]}, {}, "round 2 has no pick in column 'chosen'"),
        ({"chosen": [1, 1, 0, 1]}, {}, "round 1 has 2 picks in column 'chosen'"),
        ({"when": [1, 2, 3, 3]}, {"order_by": "when"}, "'when', row 2 .*is 2, but the same round has 1 in row 1"),
        ({"round": [], "chosen": [], "price": []}, {"features": ["price"]}, "the table has no rows"),
    ],
)
def test_refuses(table, changes, options, message):
    with pytest.raises(InputError, match=message) as caught:
        BanditLog.from_frame(table(columns(**changes)), **options)
    assert "\n" not in str(caught.value)


def test_refuses_what_is_no_table():
    with pytest.raises(InputError, match="a dict is not a table: pass pandas, polars or pyarrow"):
        BanditLog.from_frame(columns())
    with pytest.raises(InputError, match="a LazyFrame is not a table"):
        BanditLog.from_frame(pl.LazyFrame(columns()))


def test_refuses_ids_of_two_kinds():
    with pytest.raises(InputError, match=r"column 'round', row 3 .* is 1, but the rows before it are of another kind"):
        BanditLog.from_frame(pd.DataFrame(columns(round=["a", "a", 1, 1])))


def test_refuses_doubled_columns():
    doubled = pa.table([[1], [1], [2.0], [3.0]], names=["round", "chosen", "price", "price"])
    for frame in (doubled, doubled.to_pandas()):
        with pytest.raises(InputError, match="two columns of the same name"):
            BanditLog.from_frame(frame)


def test_real_choices(data_folder):
    frame = pd.read_csv(data_folder / "modechoice.csv", sep=";")
    options = {"round": "individual", "chosen": "choice", "arm": "mode", "features": ["gc", "ttme"]}
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.sample(frac=1, random_state=0)):
        log = BanditLog.from_frame(table, order_by="individual", **options)
        assert (log.n_rounds, set(log.n_arms)) == (210, {4})
        # Greene's sample: 58 by air, 63 by train, 30 by bus, 59 by car.
        modes = log.arm_ids[log.chosen_rows].tolist()
        assert [modes.count(mode) for mode in (1, 2, 3, 4)] == [58, 63, 30, 59]


@each_library
def test_outcomes_are_no_features_however_they_are_spelt_unless_asked_for(table):
    frame = table(columns(Cost=[1, 2, 3, 4], Clicks=[1, 0, 0, 1], action_prob=[0.5] * 4, REWARD=[0, 1, 0, 1]))
    assert BanditLog.from_frame(frame).feature_names == ("price",)
    assert BanditLog.from_frame(frame, features=["Cost", "price"]).feature_names == ("Cost", "price")


def test_a_table_of_outcomes_alone_says_what_was_left_out():
    with pytest.raises(InputError, match=r"no feature besides .*left out: 'Cost'.*: name the features"):
        BanditLog.from_frame(pa.table({"round": [1, 1], "chosen": [1, 0], "Cost": [1, 2]}))


def test_what_is_not_a_number_is_no_category():
    table = {"round": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "price": [1.0, 2.0, 3.0, 4.0], "size": [1.0, NAN, 2.0, 1.0]}
    with pytest.raises(InputError, match=r"column 'size', row 2 .*is missing"):
        BanditLog.from_frame(pa.table(table), categories=["size"])
