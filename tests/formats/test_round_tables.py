"""Tables of one row per round: the same log from every file, table and stream, and one line for every mistake."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlooker import BanditLog, LinearPolicy, SuffixImitation, read_log, read_logs, scan_log, write_log
from onlooker.base.errors import InputError
from onlooker.formats.opening import open_log, open_scan
from strategies import assert_equal_logs

ARMS = ("news", "sport", "film", "art")
CONTEXT = ["age", "hour"]


@pytest.fixture(scope="module")
def visits():
    """One row per round: two numbers, a text, a time, and what was shown."""
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=(400, 2))
    scores = numbers @ rng.normal(size=(2, 4)) + rng.gumbel(size=(400, 4))
    return pd.DataFrame(
        {
            "visit": np.arange(400),
            "age": numbers[:, 0],
            "hour": numbers[:, 1],
            "device": np.array(["phone", "desk", "tablet"])[rng.integers(0, 3, 400)],
            "time": np.arange(400)[::-1],
            "shown": np.array(ARMS)[scores.argmax(axis=1)],
            "reward": rng.random(400),
        }
    )


@pytest.fixture(scope="module")
def shop():
    """A log with the ids on offer and the pick, its items, and the same log as a long table with products."""
    rng = np.random.default_rng(4)
    ids = [f"i{k}" for k in range(9)]
    items = pd.DataFrame(rng.normal(size=(9, 2)), columns=["price", "size"])
    items.insert(0, "item", ids)
    contexts = rng.normal(size=(500, 2))
    rows, picks, offers = [], [], []
    for t, context in enumerate(contexts):
        offered = rng.permutation(9)[: rng.integers(2, 6)]
        features = items[["price", "size"]].to_numpy()[offered]
        products = np.hstack([features, context[0] * features, context[1] * features])
        best = int(np.argmax(products @ [1, -1, 0.5, 0, 0, 1] + rng.gumbel(size=len(offered))))
        offers.append([ids[k] for k in offered])
        picks.append(ids[offered[best]])
        rows += [(t, int(j == best), *row) for j, row in enumerate(products)]
    log = pd.DataFrame({"age": contexts[:, 0], "hour": contexts[:, 1], "offered": offers, "pick": picks})
    return log, items, pd.DataFrame(rows, columns=["round", "chosen", *(f"f{j}" for j in range(6))])


def written(frame, path):
    """The frame as a file of the kind that its name says."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    else:
        frame.to_csv(path, index=False)
    return path


SOURCES = {
    "csv": lambda frame, folder: written(frame, folder / "log.csv"),
    "csv.gz": lambda frame, folder: written(frame, folder / "log.csv.gz"),
    "jsonl": lambda frame, folder: written(frame, folder / "log.jsonl"),
    "parquet": lambda frame, folder: written(frame, folder / "log.parquet"),
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "arrow": lambda frame, _: pa.Table.from_pandas(frame),
    "stream": lambda frame, _: pa.Table.from_pandas(frame).to_reader(),
}


def theta(log):
    return SuffixImitation(burn_in=0).fit(log).theta_


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("kind", SOURCES)
def test_contexts_are_the_same_log_from_everywhere(visits, tmp_path, kind):
    log = read_log(SOURCES[kind](visits, tmp_path), context=CONTEXT, arm="shown")
    expected = BanditLog.from_contexts(visits[CONTEXT].to_numpy(), visits["shown"], feature_names=CONTEXT)
    assert log.feature_names == tuple(CONTEXT)
    assert log.features.arms.tolist() == sorted(ARMS)
    np.testing.assert_array_equal(log.chosen, expected.chosen)
    # JSON of pandas has 15 digits.
    np.testing.assert_allclose(log.features.contexts, expected.features.contexts, rtol=1e-12)
    np.testing.assert_allclose(theta(log), theta(expected), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "frame", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_a_frame_is_read_as_a_file_is(visits, tmp_path, frame):
    options = {"context": CONTEXT, "arm": "shown", "round": "visit"}
    log = BanditLog.from_frame(frame(visits), **options)
    assert_equal_logs(log, read_log(written(visits, tmp_path / "log.csv"), **options))


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("kind", SOURCES)
def test_a_normalised_log_is_the_long_table_with_products(shop, tmp_path, kind):
    log, items, long = shop
    kept = log.assign(offered=log["offered"].map("|".join)) if "csv" in kind else log
    found = read_log(SOURCES[kind](kept, tmp_path), items=items, offered="offered", arm="pick", context=CONTEXT)
    assert found.weight_names == ("price", "size", "age*price", "age*size", "hour*price", "hour*size")
    np.testing.assert_allclose(theta(found), theta(BanditLog.from_frame(long)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("context", [["age", "hour"], ["age", "device"]])
@pytest.mark.parametrize("suffix", ["parquet", "npz", "csv"])
def test_contexts_can_be_written_and_read_again(visits, tmp_path, context, suffix):
    log = read_log(visits, context=context, arm="shown")
    path = tmp_path / f"log.{suffix}"
    write_log(log, path)
    again = read_log(path)
    assert again.feature_names == log.weight_names
    assert np.array_equal(again.features, log.features.toarray())


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_items_that_are_an_identity_are_weights_of_each_arm(visits):
    plain = read_log(visits, context=["1", *CONTEXT], arm="shown")
    items = pd.DataFrame(np.eye(4), columns=sorted(ARMS)).assign(id=sorted(ARMS))
    crossed = read_log(visits, items=items, context=CONTEXT, arm="shown", offered=None)
    by_arm, by_product = theta(plain).reshape(4, 3).T, theta(crossed).reshape(3, 4)
    np.testing.assert_allclose(by_product, by_arm, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mark", ["|", ";", ",", " ", " | ", ", "])
def test_offers_in_text_are_split_by_what_stands_between_them(shop, tmp_path, mark):
    log, items, _ = shop
    text = log.assign(offered=log["offered"].map(mark.join))
    options = {"items": items, "offered": "offered", "arm": "pick"}
    assert_equal_logs(read_log(written(text, tmp_path / "log.csv"), **options), read_log(log, **options))


@pytest.mark.parametrize("form", [str, json.dumps, lambda ids: str(np.array(ids))])
def test_offers_may_be_lists_written_as_text(shop, form):
    log, items, _ = shop
    options = {"items": items, "offered": "offered", "arm": "pick"}
    text = log.assign(offered=log["offered"].map(form))
    assert_equal_logs(read_log(text, **options), read_log(log, **options))


def test_ids_match_however_they_are_kept(tmp_path):
    log = pd.DataFrame({"pick": [10, 9, 10], "offered": [[9, 10], [10, 9, 7], [10, 7]]})
    texts = pd.DataFrame({"pick": ["10", "9", "10"], "offered": ["9 10", "10 9 7", "10 7"]})
    items = pd.DataFrame({"item": ["7", "9", "10"], "price": [1.0, 2.0, 3.0]})
    numbers = items.assign(item=[7, 9, 10])
    options = {"offered": "offered", "arm": "pick"}
    expected = read_log(log, items=numbers, **options)
    for given in (log, texts, written(texts, tmp_path / "log.csv")):
        for table in (items, numbers, written(items, tmp_path / "items.csv")):
            found = read_log(given, items=table, **options)
            np.testing.assert_array_equal(found.chosen, expected.chosen)
            np.testing.assert_array_equal(found.features.toarray(), expected.features.toarray())
    assert read_log(log, offered="offered", arm="pick").features.arms.tolist() == [7, 9, 10]


def test_the_pick_may_be_called_arm_or_chosen():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "arm": ["a", "b", "a"]})
    expected = read_log(frame, context=["x"])
    for name in ("chosen", "pick"):
        other = frame.rename(columns={"arm": name})
        options = {} if name == "chosen" else {"chosen": "pick"}
        assert_equal_logs(read_log(other, context=["x"], **options), expected)


def test_text_is_a_category_with_a_weight_for_the_reference(visits):
    log = read_log(visits, context=["age", "device"], arm="shown")
    assert log.feature_names == ("1", "age", "device=phone", "device=tablet")
    assert log.categories["device"] == ("desk", "phone", "tablet")
    np.testing.assert_array_equal(log.features.contexts[:, 0], 1.0)
    assert_equal_logs(log, BanditLog.from_contexts(visits[["age", "device"]], visits["shown"]))
    with_items = read_log(visits, context=["device"], arm="shown", items=pd.DataFrame({"id": ARMS, "x": range(4)}))
    assert with_items.feature_names == ("device=phone", "device=tablet")


def test_one_stands_for_a_column_of_ones_unless_the_table_has_one(visits):
    log = read_log(visits, context=["1"], arm="shown")
    np.testing.assert_array_equal(log.features.contexts, np.ones((400, 1)))
    own = read_log(visits.rename(columns={"age": "1"}), context=["1"], arm="shown")
    np.testing.assert_array_equal(own.features.contexts[:, 0], visits["age"])
    offered = visits.assign(offered=[list(ARMS)] * 400)
    assert read_log(offered, offered="offered", arm="shown").feature_names == ("1",)


def test_rounds_are_put_in_order_of_time(visits):
    log = read_log(visits, context=CONTEXT, arm="shown", order_by="time", round="visit")
    assert log.times.tolist() == list(range(400))
    assert log.round_ids.tolist() == list(range(400))[::-1]
    np.testing.assert_array_equal(log.features.contexts, visits[CONTEXT].to_numpy()[::-1])


def test_learners_in_one_table_are_told_apart(visits):
    logs = read_logs(visits.assign(shop=["a", "b"] * 200), by="shop", context=CONTEXT, arm="shown", order_by="time")
    assert [log.n_rounds for log in logs.values()] == [200, 200]
    np.testing.assert_array_equal(logs["a"].features.contexts, visits[CONTEXT].to_numpy()[::2][::-1])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("batch_rows", [7, 200, 100_000])
def test_a_scan_has_the_rounds_of_the_log(shop, tmp_path, suffix, batch_rows):
    log, items, _ = shop
    kept = log.assign(offered=log["offered"].map(";".join)) if suffix == "csv" else log
    halves = [written(kept[:300], tmp_path / f"a.{suffix}"), written(kept[300:], tmp_path / f"b.{suffix}")]
    for options in ({"offered": "offered", "arm": "pick", "context": CONTEXT}, {"context": CONTEXT, "arm": "pick"}):
        for more in ({}, {"items": items}):
            whole = read_log(written(kept, tmp_path / f"whole.{suffix}"), **options, **more)
            scan = scan_log(halves, batch_rows=batch_rows, **options, **more)
            assert (scan.feature_names, scan.n_features) == (whole.feature_names, whole.n_features)
            assert_equal_logs(scan.read(), whole)


@pytest.mark.parametrize("offered", [None, "offered"])
def test_a_scan_has_numbered_arms_in_the_order_of_the_log(tmp_path, offered):
    rows = ["age,shown,offered", *(f"{k / 7},{(9, 10, 100)[k % 3]},9|10|100" for k in range(30))]
    (tmp_path / "visits.csv").write_text("\n".join(rows))
    options = {"context": ["age"], "arm": "shown", "offered": offered}
    log, scan = read_log(tmp_path / "visits.csv", **options), scan_log(tmp_path / "visits.csv", **options)
    assert log.features.arms.tolist() == scan.all_arms.tolist() == [9, 10, 100]
    assert_equal_logs(scan.read(), log)


def test_a_scan_checks_times_and_gathers_levels(visits, tmp_path):
    path = written(visits[::-1], tmp_path / "log.csv")
    options = {"context": ["age", "device"], "arm": "shown", "order_by": "time"}
    scan = scan_log(path, batch_rows=40, **options)
    assert_equal_logs(scan.read(), read_log(path, **options))
    assert scan.categories == read_log(path, **options).categories
    with pytest.raises(InputError, match=r"column 'time', row 2 .* is 398, after 399: a scan cannot sort"):
        scan_log(written(visits, tmp_path / "down.csv"), batch_rows=40, **options).read()


def test_what_was_assumed_is_said(visits, shop, tmp_path):
    path = written(visits, tmp_path / "log.csv")
    said = open_log(path, {"context": ["age", "device"], "arm": "shown"}).assumed
    assert said == [
        "read as CSV, one row per round: picks from 'shown'",
        "4 context features: '1', 'age', 'device=phone', 'device=tablet'",
        "'1' is a column of ones, added because categories have a reference level",
        "4 arms: 'art', 'film', 'news', 'sport'",
        "category 'device': 3 levels, the reference 'desk'",
    ]
    assert open_scan(path, {"context": ["age", "device"], "arm": "shown"}).assumed == said
    items = written(shop[1], tmp_path / "items.csv")
    found = open_log(written(shop[0], tmp_path / "l.parquet"), {"items": items, "offered": "offered", "arm": "pick"})
    assert found.assumed[:2] == [
        "read as Parquet, one row per round: picks from 'pick', offers from 'offered'",
        "2 item features: 'price', 'size'",
    ]
    assert list(found.files) == [tmp_path / "l.parquet", items]


def test_a_row_a_round_without_options_is_told_how_to_read_it(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("age,hour,action,reward\n30,9,a,1\n40,10,b,0\n")
    with pytest.raises(
        InputError, match=r"if a row is a round: read_log\(\.\.\., context=\['age', 'hour'\], arm='action'\)"
    ):
        read_log(path)
    path.write_text("round,chosen,age\n1,a,30\n2,b,40\n")
    with pytest.raises(InputError, match="if a row is a round, name the columns of its context with `context`"):
        read_log(path)
    path.write_text("age,hour,action,reward\n30,9,a,1\n40,10,b,0\n")
    assert read_log(path, context=["age", "hour"], arm="action").n_rounds == 2


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"pick": "zz"}, {}, r"column 'pick', row 8 .* picks the arm 'zz', which is not known"),
        ({"offered": []}, {}, r"column 'offered', row 8 .* offers no arm"),
        ({"offered": ["i1", "i1", "i2"]}, {}, r"column 'offered', row 8 .* has the arm 'i1' twice"),
        ({"offered": ["i1", "zz"]}, {}, r"column 'offered', row 8 .* has the arm 'zz', which is not known"),
        (
            {"offered": ["i1", "i2"], "pick": "i3"},
            {},
            r"row 8 .* picks 'i3', which is not among the arms in column 'off",
        ),
        ({"offered": None}, {}, r"column 'offered', row 8 .* is missing"),
        ({"offered": ["i1", None]}, {}, r"column 'offered', row 8 .* has a missing id"),
        ({"pick": None}, {}, r"column 'pick', row 8 .* is missing"),
        ({"age": np.nan}, {}, r"column 'age', row 8 .* is missing"),
        ({"age": np.inf}, {}, r"column 'age', row 8 .* is inf"),
        ({}, {"offered": "offred"}, r"no column 'offred': .* did you mean 'offered'\? name it as `offered`"),
        ({}, {"context": ["agee"]}, r"no column 'agee': .* did you mean 'age'\? name it as `context`"),
        ({}, {"context": ["age", "age"]}, r"the context has 'age' twice"),
        ({}, {"context": ["pick"]}, r"column 'pick' cannot be context too"),
        ({}, {"context": "age"}, r"option 'context' is 'age': pass a list of columns"),
        ({}, {"arm": None}, r"no column 'arm': it has .*; name the picked arm as `arm`"),
        ({}, {"arm": "pick", "chosen": "age"}, r"`arm` and `chosen` both name the pick"),
        (
            {},
            {"arm": "age", "context": ["hour"]},
            r"column 'age' holds numbers that are not whole: ids are whole numbers or text",
        ),
        ({}, {"context": ["offered"], "offered": None}, r"column 'offered' holds list<.*>: it must hold one value"),
        ({}, {"items": None, "features": ["price"]}, r"`features` are of the arms, .*: use `context`"),
        ({"age": None}, {}, r"column 'age', row 8 .* is missing: fill it in, or leave the round out$"),
        ({}, {"items": "twice"}, r"the items: column 'item' has the id 'i0' twice, in rows 1 and 10"),
        (
            {},
            {"items": "gap"},
            r"the items: column 'price', row 3 .* is missing: fill it in, or name the other columns",
        ),
        ({}, {"items": "none"}, r"the items: there are none"),
        ({}, {"items": "bare"}, r"the items: the table has no feature besides 'item'"),
        ({}, {"items": "nowhere.csv"}, r"nowhere\.csv: there is no such file"),
        ({}, {"features": ["weight"]}, r"the items: the table has no column 'weight'"),
        ({"pick": "i0"}, {"round": "pick"}, r"column 'pick' .*"),
    ],
)
def test_mistakes_are_one_line_with_the_place(shop, change, options, said):
    log, items, _ = shop
    log = log.copy()
    for name, value in change.items():
        log.at[7, name] = value
    broken = {
        "twice": pd.concat([items, items[:1]]),
        "gap": items.assign(price=[1.0, 2.0, None, *items["price"][3:]]),
        "none": items[:0],
        "bare": items[["item"]],
    }
    known = {"items": items, "offered": "offered", "arm": "pick", "context": CONTEXT} | options
    given = known["items"]
    known["items"] = broken.get(given, given) if isinstance(given, str) else given
    with pytest.raises(InputError, match=said) as caught:
        read_log(log, **known)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("opened", [read_log, scan_log])
def test_a_word_among_numbers_makes_no_category_of_a_context(visits, tmp_path, opened):
    frame = visits.astype({"age": object})
    frame.loc[6, "age"] = "abc"
    frame.to_csv(tmp_path / "visits.csv", index=False)
    with pytest.raises(InputError, match=r"column 'age', row 7 .* is 'abc', not a number: correct it"):
        opened(tmp_path / "visits.csv", context=["age", "device"], arm="shown")
    named = opened(tmp_path / "visits.csv", context=["age"], arm="shown", categories=["age"])
    assert named.categories is not None


def test_a_long_table_is_not_taken_for_rounds(shop):
    with pytest.raises(InputError, match=r"column 'round' has \d+ \d times, .*: here a row is a round; for a table of"):
        read_log(shop[2], context=["f0"], arm="chosen")


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_later_log_is_read_like_a_policy(visits, tmp_path):
    options = {"context": ["age", "device"], "arm": "shown"}
    policy = SuffixImitation(burn_in=0).fit(read_log(visits, **options)).policy_
    policy.save(tmp_path / "policy.json")
    policy = LinearPolicy.load(tmp_path / "policy.json")
    later = visits[(visits["shown"] != "film") & (visits["device"] != "phone")][:50]
    for log in (read_log(later, like=policy, arm="shown"), read_log(later, like=policy, **options)):
        assert log.feature_names == ("1", "age", "device=phone", "device=tablet")
        assert log.features.arms.tolist() == sorted(ARMS)
        assert len(policy.choose(log)) == 50
    path = written(later, tmp_path / "later.csv")
    assert_equal_logs(scan_log(path, like=policy, arm="shown", batch_rows=40).read(), log)
    with pytest.raises(InputError, match=r"row 1 .* picks the arm 'opera', which is not known: fit again with it"):
        read_log(later.assign(shown="opera"), like=policy, arm="shown")
    with pytest.raises(InputError, match="`like` does not have 'hour' in its context: leave `context` out"):
        read_log(later, like=policy, arm="shown", context=["hour"])
    with pytest.raises(InputError, match=r"`like` has weights for each arm .*: leave `items` out"):
        read_log(later, like=policy, arm="shown", items=pd.DataFrame({"id": ARMS, "x": range(4)}))


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_items_of_a_later_log_are_encoded_like_before(shop):
    log, items, _ = shop
    items = items.assign(kind=["a", "b", "c"] * 3)
    options = {"offered": "offered", "arm": "pick", "context": CONTEXT}
    whole = read_log(log, items=items, **options)
    policy = SuffixImitation(burn_in=0).fit(whole).policy_
    again = read_log(log, items=items[["kind", "size", "price", "item"]], like=policy, offered="offered", arm="pick")
    np.testing.assert_allclose(policy.scores(again), policy.scores(whole), rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="`like` has features of the arms: pass the table of them as `items`"):
        read_log(log, like=policy, offered="offered", arm="pick")


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
@pytest.mark.parametrize("items", [False, True])
def test_a_scan_is_fitted_as_the_log_is(shop, tmp_path, monkeypatch, items):
    # So little that the sample is a small part of the log.
    monkeypatch.setattr("onlooker.formats.scan.SAMPLE_BYTES", 1 << 13)
    options = {"offered": "offered", "arm": "pick", "context": CONTEXT} | ({"items": shop[1]} if items else {})
    path = written(shop[0], tmp_path / "log.parquet")
    whole, parts = read_log(path, **options), scan_log(path, batch_rows=100, **options)
    for burn_in in (0, 100):
        mine, other = (SuffixImitation(burn_in=burn_in).fit(one) for one in (whole, parts))
        np.testing.assert_allclose(other.theta_, mine.theta_, rtol=0, atol=1e-6)
        np.testing.assert_allclose(other.covariance_, mine.covariance_, rtol=1e-4, atol=1e-8)
        assert other.policy_.feature_names == mine.policy_.feature_names == whole.weight_names
