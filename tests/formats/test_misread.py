"""Tables that could be read without an error and be misunderstood: they are refused, or a warning says so."""

import warnings
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, SuffixImitation, read_log, read_logs, scan_log
from onlooker.base.errors import InputError, OnlyOnPicksWarning, RoundsOutOfOrderWarning
from onlooker.logs.frames import _miscounted

N = 60


def offers(seed=0):
    """Rounds of two arms with prices up to 5,000, of which the cheaper one is picked."""
    rng = np.random.default_rng(seed)
    prices = rng.integers(50, 5000, size=(N, 2))
    return [(t, int(k == prices[t].argmin()), int(prices[t, k])) for t in range(N) for k in range(2)]


def write(path, rows, delimiter=","):
    path.write_text("\n".join(delimiter.join(map(str, row)) for row in rows) + "\n")
    return path


def both(path, **columns):
    """Reading whole and in parts."""
    yield lambda: read_log(path, **columns)
    yield lambda: scan_log(path, **columns).read()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_thousands_apart_are_not_read_as_fractions(tmp_path, delimiter):
    rows = [(t, chosen, f"{price:,}".replace(",", ".")) for t, chosen, price in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price"), *rows], delimiter)
    found, beside = (next(row[2] for row in rows if ("." in row[2]) is marked) for marked in (True, False))
    assert len(beside) < 4
    for read in both(path):
        with pytest.raises(InputError) as caught:
            read()
        assert f"is '{found}' beside '" in str(caught.value)
        assert f"write {found.replace('.', '')}, or pass decimal='.' if it is a fraction" in str(caught.value)
    for read in both(path, decimal="."):
        assert read().features[:, 0].tolist() == [float(row[2]) for row in rows]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_thousands_apart_by_commas_are_not_read_as_fractions(tmp_path, delimiter):
    rows = [(t, chosen, f"{price:,}") for t, chosen, price in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price"), *rows], delimiter)
    for read in both(path):
        with pytest.raises(InputError, match=r"column 'price', row \d+ .* is '\d,\d{3}': pass decimal=',' if that is"):
            read()


@pytest.mark.parametrize(
    "spell",
    [
        "{:.3f}".format,  # three digits everywhere
        "{:.2f}".format,
        str,  # no mark at all
        lambda price: f"0.{price:03d}" if price < 1000 else str(price),
        lambda price: f"{price / 1000:g}",  # as many digits as there are
    ],
)
def test_fractions_are_read_as_such(tmp_path, spell):
    rows = [(t, chosen, spell(price)) for t, chosen, price in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price"), *rows])
    for read in both(path):
        np.testing.assert_array_equal(read().features[:, 0], [float(row[2]) for row in rows])


def test_points_in_a_table_with_decimal_commas(tmp_path):
    rows = [(t, c, f"{p:,}".replace(",", "."), f"{p % 7},5") for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price", "rating"), *rows], ";")
    for read in both(path):
        with pytest.raises(InputError, match=r"column '(price|rating)', row \d+ .*pass decimal="):
            read()
    for read in both(path, decimal=","):
        with pytest.raises(InputError, match=r"column 'price', row \d+ .*write numbers with decimal commas in all"):
            read()


GROUPED = {
    "points and a comma": lambda p: f"{p:,.2f}".translate(str.maketrans(",.", ".,")),
    "commas and a point": lambda p: f'"{p:,.2f}"',
    "spaces": lambda p: f'"{p:,.2f}"'.replace(",", " "),
    "narrow spaces": lambda p: f"{p:,.2f}".replace(",", "\u202f"),
    "apostrophes": lambda p: f"{p:,.2f}".replace(",", "'"),
}


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("name", GROUPED)
def test_thousands_and_a_fraction_are_no_text(tmp_path, name, few):
    rows = [(t, c, GROUPED[name](1000 * (p // 1000) if few else p)) for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price"), *rows], ";" if name.startswith("points") else ",")
    for read in both(path):
        with pytest.raises(
            InputError, match=r"column 'price' holds .* and the like, which is text: write plain numbers"
        ):
            read()
    assert len(read_log(path, categories=["price"]).categories["price"]) > 2


def test_sizes_and_codes_stay_categories(tmp_path):
    for number, levels in enumerate((["S", "M", "1.000"], ["1-2", "3-4", "5"], ["10.1.1.1", "10.1.1.2", "10.1.1.3"])):
        rows = [(t, c, levels[(t + c) % 3]) for t, c, _ in offers()]
        path = write(tmp_path / f"{number}.csv", [("round", "chosen", "kind"), *rows])
        assert sorted(read_log(path).categories["kind"]) == sorted(levels)


def test_a_quote_that_is_never_closed(tmp_path):
    rows = [[t, c, p, "red" if p % 2 else "blue"] for t, c, p in offers()]
    rows[40][3] = f'"{rows[40][3]}'
    path = write(tmp_path / "log.csv", [("round", "chosen", "price", "colour"), *rows])
    for read in both(path):
        with pytest.raises(
            InputError, match=r"'colour', row 41 .* holds whole lines of the table: a quote before them"
        ):
            read()


def test_line_breaks_within_quotes(tmp_path):
    rows = [(t, c, '"red,\nlight"' if p % 2 else "blue", p) for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "colour", "price"), *rows])
    for read in both(path):
        assert set(read().categories["colour"]) == {"red,\nlight", "blue"}


def test_numbered_rounds_out_of_order_are_told(tmp_path):
    header, rows = ("round", "chosen", "price"), offers()
    turned = [row for t in reversed(range(N)) for row in rows[2 * t : 2 * t + 2]]
    as_text = sorted(rows, key=lambda row: str(row[0]))
    for name, these in (("turned", turned), ("as_text", as_text)):
        path = write(tmp_path / f"{name}.csv", [header, *these])
        pq.write_table(pa.table(dict(zip(header, zip(*these, strict=True), strict=True))), tmp_path / f"{name}.parquet")
        for place in (path, path.with_suffix(".parquet")):
            for read in both(place):
                with pytest.warns(RoundsOutOfOrderWarning, match="'round' numbers the rounds and is not in order"):
                    log = read()
                assert log.round_ids[0] == these[0][0]
            sorted_log = read_log(place, order_by="round")
            assert sorted_log.round_ids.tolist() == list(range(N))


def test_other_ids_may_come_as_they_like(tmp_path):
    header, rows = ("round", "chosen", "price"), offers()
    for spread in (lambda t: (t * 7919) % 10007, lambda t: f"r{t * 7 % N}", lambda t: t * 10):
        path = write(tmp_path / "log.csv", [header, *((spread(t), c, p) for t, c, p in rows)])
        for read in both(path):
            read()


def test_each_learner_counts_for_itself(tmp_path):
    rows = [(shop, t, c, p) for shop in "ab" for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("shop", "round", "chosen", "price"), *rows])
    assert len(read_logs(path, by="shop")) == 2
    turned = [*rows[: len(rows) // 2], *reversed(rows[len(rows) // 2 :])]
    write(path, [("shop", "round", "chosen", "price"), *turned])
    with pytest.warns(RoundsOutOfOrderWarning):
        read_logs(path, by="shop")


def test_what_came_of_the_picks_is_told(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(t, c, p, int(c and rng.random() < 0.6), int(rng.random() < 0.1)) for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price", "bought", "sale"), *rows])
    for read in both(path):
        with pytest.warns(
            OnlyOnPicksWarning, match=r"in picked rows only: 'bought'; .* name the others with `features`"
        ):
            read()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = read_log(path, features=["price", "sale"])
    assert log.feature_names == ("price", "sale")
    # Once, however often a log that is not in memory is scanned.
    scan = scan_log(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SuffixImitation(burn_in=0).fit(scan)
        scan.read()
    assert [one.category for one in caught].count(OnlyOnPicksWarning) == 1


def test_a_rare_feature_may_fall_on_picks_by_chance():
    table = {
        "round": [1, 1, 2, 2, 3, 3],
        "chosen": [0, 1, 1, 0, 1, 0],
        "new": [0, 1, 1, 0, 0, 0],
        "x": [1, 2, 3, 4, 5, 6],
    }
    assert BanditLog.from_frame(pa.table(table)).n_features == 2


def test_picks_as_text_of_digits(tmp_path):
    pq.write_table(pa.table({"round": [1, 1], "chosen": ["0", "1"], "x": [1.0, 2.0]}), tmp_path / "log.parquet")
    for read in both(tmp_path / "log.parquet"):
        with pytest.raises(
            InputError, match=r"column 'chosen', row 1 .* is the text '0': turn the column into numbers"
        ):
            read()


def test_decimal_commas_after_the_first_block(tmp_path):
    rows = [(t // 2, t % 2, t % 977) for t in range(200_000)]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price"), *rows, (100_000, 1, "1,5"), (100_000, 0, 2)], ";")
    for read in both(path):
        with pytest.raises(InputError, match=r"row 200001 .* is '1,5', not a number: pass decimal=','"):
            read()


def test_descriptions_of_several_lines(tmp_path):
    rows = [(t, c, p, f'"Flat {p % 2}\nnew, big, warm"') for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "price", "text"), *rows])
    for read in both(path, features=["price"]):
        assert read().n_rounds == N
    for read in both(path, features=["price", "text"]):
        assert read().n_rounds == N


def test_only_what_is_used_is_looked_at(tmp_path):
    rows = [(t, c, p % 7, f"{p:,}".replace(",", "."), f"{p % 90},5") for t, c, p in offers()]
    path = write(tmp_path / "log.csv", [("round", "chosen", "x", "reward", "size"), *rows], ";")
    for read in both(path, features=["x"]):
        assert read().feature_names == ("x",)
    for read in both(path, categories=["size"], features=["x", "size"]):
        assert read().n_rounds == N
    path = write(tmp_path / "log.csv", [("round", "chosen", "x", "reward"), *(row[:4] for row in rows)], ";")
    for read in both(path):
        assert read().feature_names == ("x",)


def test_levels_that_are_fractions_stay_categories():
    rows = offers()
    for levels in (["0.125", "0.25", "0.5"], ["1.0", "1.1", "1.100"]):
        table = {"round": [row[0] for row in rows], "chosen": [row[1] for row in rows]}
        table["kind"] = [levels[(row[0] + row[1]) % 3] for row in rows]
        assert sorted(BanditLog.from_frame(pa.table(table)).categories["kind"]) == sorted(levels)


def test_many_learners_are_told_apart_quickly():
    ids, by = np.arange(200_000) % 20, np.arange(200_000) // 20
    parts = SimpleNamespace(round_ids=ids, by=by)
    assert not _miscounted(parts)
    ids[-20:] = ids[-20:][::-1].copy()
    assert _miscounted(parts)
    assert not _miscounted(SimpleNamespace(round_ids=ids[-25:-15], by=by[-25:-15]))


def test_a_quote_that_swallows_more_than_a_block(tmp_path):
    rows = [[t // 2, t % 2, t % 977, "red"] for t in range(200_000)]
    rows[10][3] = '"red'
    path = write(tmp_path / "log.csv", [("round", "chosen", "price", "colour"), *rows])
    for read in both(path):
        with pytest.raises(InputError, match="a quote is not closed"):
            read()


def test_outcomes_are_told_after_short_parts_too(tmp_path):
    rng = np.random.default_rng(1)
    rows = [(t, c, p, int(c and rng.random() < 0.6)) for t, c, p in offers()]
    for number in range(6):
        part = rows[20 * number : 20 * number + 20]
        pq.write_table(
            pa.table(dict(zip(("round", "chosen", "price", "bought"), zip(*part, strict=True), strict=True))),
            tmp_path / f"{number}.parquet",
        )
    scan = scan_log(f"{tmp_path}/*.parquet")
    with pytest.warns(OnlyOnPicksWarning, match="'bought'"):
        list(scan)


@pytest.mark.parametrize("odd", ["", "oops", "n/a"])
def test_fractions_as_text_are_not_left_out_as_levels(tmp_path, odd):
    prices = [str(k / 8 - 1) for k in range(2 * N)]
    prices[7] = odd or prices[7]
    columns = {"round": np.repeat(np.arange(N), 2), "chosen": np.tile([0, 1], N), "price": prices, "size": range(2 * N)}
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    for read in both(tmp_path / "log.parquet"):
        with pytest.raises(InputError, match=r"column 'price' holds '.*' and the like, which is text: write plain num"):
            read()
    for read in both(tmp_path / "log.parquet", categories=["price"]):
        assert len(read().feature_names) == 2 * N
