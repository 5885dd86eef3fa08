"""A table of users beside a log: joined by id, the same as a log that was merged beforehand."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, read_log, read_logs, scan_log

ROUNDS, USERS = 400, 40
LOG = {"offered": "offered", "arm": "bought"}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """`orders.csv` with users by id, `merged.csv` with what describes them, `items.csv` and `users.csv`."""
    rng = np.random.default_rng(0)
    prices, weights = rng.normal(size=(2, 30)).round(2)
    ages, segments = rng.normal(size=USERS).round(3), rng.integers(3, size=USERS)

    def write(name: str, rows: list[list[object]]) -> None:
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)

    orders: list[list[object]] = [["user", "shop", "offered", "bought"]]
    merged: list[list[object]] = [["age", "segment", "offered", "bought"]]
    for order in range(ROUNDS):
        user, offered = int(rng.integers(USERS)), rng.choice(30, size=5, replace=False)
        liking = -prices[offered] + ages[user] * weights[offered] + rng.gumbel(size=5)
        ids = [f"i{k}" for k in offered]
        rest = ["|".join(ids), ids[liking.argmax()]]
        orders.append([f"{user:03}", "ab"[order % 2], *rest])
        merged.append([ages[user], "xyz"[segments[user]], *rest])
    write("orders.csv", orders)
    write("merged.csv", merged)
    write("items.csv", [["item", "price", "weight"], *([f"i{k}", prices[k], weights[k]] for k in range(30))])
    write("users.csv", [["user", "age", "segment"], *([f"{k:03}", ages[k], "xyz"[segments[k]]] for k in range(USERS))])
    return tmp_path


def test_is_the_same_as_a_log_that_was_merged(tables: Path) -> None:
    items, users = tables / "items.csv", tables / "users.csv"
    merged = read_log(tables / "merged.csv", items=items, context=["age", "segment"], **LOG)
    joined = read_log(tables / "orders.csv", items=items, users=users, context=["age", "segment"], **LOG)
    scanned = scan_log(tables / "orders.csv", items=items, users=users, user="user", batch_rows=500, **LOG)
    thetas = [SuffixImitation(burn_in=0).fit(log).theta_ for log in (merged, joined, scanned)]
    assert joined.categories == merged.categories == {"segment": ("x", "y", "z")}
    assert np.array_equal(thetas[0], thetas[1])
    assert np.array_equal(thetas[0], thetas[2])


def test_without_items_every_arm_has_weights(tables: Path) -> None:
    log = read_log(tables / "orders.csv", users=tables / "users.csv", context=["1", "age"], **LOG)
    again = read_log(tables / "merged.csv", context=["1", "age"], **LOG)
    assert np.array_equal(log.features.toarray(), again.features.toarray())


def test_without_a_context_all_that_is_known_of_users_is_one(tables: Path) -> None:
    log = read_log(tables / "orders.csv", items=tables / "items.csv", users=tables / "users.csv", **LOG)
    assert log.feature_names == ("age", "segment=y", "segment=z")


def test_tables_in_memory_and_other_types_of_ids(tables: Path) -> None:
    log = pa.table({"who": [7, 8, 7], "arm": ["a", "b", "a"]})
    users = pa.table({"id": ["8", "7"], "age": [1.0, 2.0]})
    found = read_log(log, users=users, user="who", context=["age"], arm="arm")
    assert found.features.contexts.ravel().tolist() == [2.0, 1.0, 2.0]
    pq.write_table(users, tables / "users.parquet")
    again = read_log(log, users=tables / "users.parquet", user="who", context=["age"], arm="arm")
    assert np.array_equal(again.features.toarray(), found.features.toarray())
    for given, known in ((log, users), (log.to_pandas(), users.to_pandas()), (log, users.to_pandas())):
        framed = BanditLog.from_frame(given, users=known, user="who", context=["age"], arm="arm")
        assert np.array_equal(framed.features.toarray(), found.features.toarray())


def test_frames_are_the_same_as_files(tables: Path) -> None:
    orders, items, users = (pa_csv.read_csv(tables / f"{name}.csv") for name in ("orders", "items", "users"))
    framed = BanditLog.from_frame(orders, items=items, users=users, **LOG)
    read = read_log(tables / "orders.csv", items=tables / "items.csv", users=tables / "users.csv", **LOG)
    assert (framed.feature_names, framed.categories) == (read.feature_names, read.categories)
    assert np.array_equal(framed.features.toarray(), read.features.toarray())
    assert np.array_equal(framed.chosen, read.chosen)
    by_shop = BanditLog.from_frame(orders, users=users, by="shop", context=["age"], **LOG)
    assert [log.n_rounds for log in by_shop.values()] == [200, 200]
    with pytest.raises(InputError, match="pass the table of them as `users`"):
        BanditLog.from_frame(orders, user="user", context=["shop"], **LOG)
    with pytest.raises(InputError, match="who is not known: add them"):
        BanditLog.from_frame(orders, users=users.slice(0, 5), context=["age"], **LOG)


def test_many_learners(tables: Path) -> None:
    logs = read_logs(tables / "orders.csv", by="shop", users=tables / "users.csv", context=["age"], **LOG)
    assert [log.n_rounds for log in logs.values()] == [200, 200]


BAD = {
    "who is not known: add them": {"users": "few.csv"},
    "'user' has the id '000' twice": {"users": "twice.csv"},
    "no column 'nobody'": {"users": "users.csv", "user": "nobody"},
    "pass the table of them as `users`": {"user": "user"},
    "no column 'height'": {"users": "users.csv", "context": ["height"]},
    "is in the log and in the users": {"users": "shops.csv", "context": ["shop"]},
    "there is no such file": {"users": "absent.csv"},
    "cannot be context too": {"users": "users.csv", "context": ["user"]},
}


@pytest.mark.parametrize("said", BAD)
def test_one_clear_line(tables: Path, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tables)
    lines = Path("users.csv").read_text().splitlines()
    Path("few.csv").write_text("\n".join(lines[:20]) + "\n")
    Path("twice.csv").write_text("\n".join([*lines, lines[1]]) + "\n")
    Path("shops.csv").write_text("\n".join(["user,shop,segment", *lines[1:]]) + "\n")
    options = {"context": ["age"], **LOG, **BAD[said]}
    for read in (read_log, scan_log):
        with pytest.raises(InputError, match=said) as caught:
            list(read("orders.csv", **options))  # a scan looks users up as it goes
        assert "\n" not in str(caught.value)


def test_a_log_without_ids_of_users() -> None:
    log, users = pa.table({"arm": ["x", "y"]}), pa.table({"who": ["a"], "age": [1.0]})
    with pytest.raises(InputError, match="no column has the ids of users"):
        read_log(log, users=users, context=["age"], arm="arm")


def test_unknown_users_are_named_with_their_row() -> None:
    log = pa.table({"user": ["a", "b"], "arm": ["x", "y"]})
    with pytest.raises(InputError, match=r"row 2 .*has the user 'b', who is not known"):
        read_log(log, users=pa.table({"user": ["a"], "age": [1.0]}), context=["age"], arm="arm")
