import csv
import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.base.errors import InputError
from onlooker.experiments.tables import read_csv, write_csv
from payloads import PAYLOADS

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def spells_a_number(text):
    """Such a text cannot be distinguished from the number."""
    for kind in (int, float):
        with suppress(ValueError):
            if repr(kind(text)) == text:
                return True
    return False


def test_bytes(tmp_path):
    rows = [
        {"method": "sweep", "alpha": 0.1 + 0.2, "N": 500},
        {"N": np.int64(7), "method": None, "alpha": np.float64(1e-300)},
        {"alpha": float("nan"), "method": 'a "b", c\nd'},
        {"alpha": -math.inf, "method": "-", "N": -3},
    ]
    write_csv(tmp_path / "t.csv", rows, ["method", "alpha", "N"])
    assert (tmp_path / "t.csv").read_bytes() == (
        b'method,alpha,N\nsweep,0.30000000000000004,500\n,1e-300,7\n"a ""b"", c\nd",nan,\n\'-,-inf,-3\n'
    )
    write_csv(tmp_path / "t.csv", [], ["a", "=b"])
    assert (tmp_path / "t.csv").read_bytes() == b"a,'=b\n"
    assert read_csv(tmp_path / "t.csv") == []


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("'=x", "''=x"),
        ("'x", "'x"),
        ("-1.5", "-1.5"),
        ("-2", "-2"),
        ("+2", "'+2"),
        ("a-b", "a-b"),
        ("é", "é"),
    ],
)
def test_formulas_are_disarmed(tmp_path, text, cell):
    write_csv(tmp_path / "t.csv", [{"x": text}], ["x"])
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == f"x\n{cell}\n"
    assert str(read_csv(tmp_path / "t.csv")[0]["x"]) == text


@given(value=st.none() | st.integers() | st.floats() | texts.filter(lambda text: not spells_a_number(text)))
def test_values_read_back(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "values.csv"
    write_csv(path, [{"a": value}, {"a": 1}], ["a"])
    write_csv(path, [{"a": value, "b": value}, {"b": 1}], ["a", "b"])
    (first, second) = read_csv(path)
    assert repr(first["a"]) == repr(first["b"]) == repr(value)
    assert second == {"a": None, "b": 1}


@pytest.mark.parametrize("text", ["007", "1_000", "0.10", "1e5", "+1", "\u0661", " 1", "NaN", "Infinity", "True"])
def test_text_that_only_resembles_a_number_stays_text(tmp_path, text):
    write_csv(tmp_path / "t.csv", [{"x": text}], ["x"])
    assert read_csv(tmp_path / "t.csv") == [{"x": text}]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"alhpa": 1}, "row 1 has 'alhpa', which is not a column"),
        ({"alpha": True}, "row 1, 'alpha' is a bool"),
        ({"alpha": [1]}, "row 1, 'alpha' is a list: write text, a number or None"),
        ({"alpha": 1j}, "row 1, 'alpha' is a complex"),
    ],
)
def test_rows_that_cannot_be_written(tmp_path, row, message):
    with pytest.raises(InputError, match=message):
        write_csv(tmp_path / "t.csv", [{"alpha": 1}, row], ["alpha"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1,2\n1\n", "the row that ends on line 3 has 1 cells, the header 2"),
        (b'a\n"x', "is not a table in UTF-8"),
        (b"a\n\xff\n", "is not a table in UTF-8"),
    ],
)
def test_files_that_are_no_table(tmp_path, content, message):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_csv(tmp_path / "t.csv")


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"t\.csv: cannot be read \(No such file"):
        read_csv(tmp_path / "t.csv")


@pytest.mark.parametrize("place", ["cells", "heads"])
def test_no_attack_is_a_formula_and_all_read_back(tmp_path, place):
    texts = [
        text for text in PAYLOADS if not spells_a_number(text) and text.encode("utf-8", "replace").decode() == text
    ]
    path = tmp_path / "t.csv"
    if place == "cells":
        write_csv(path, [{"name": text, "value": -1.5} for text in texts], ["name", "value"])
        assert [row["name"] for row in read_csv(path)] == texts
    else:
        write_csv(path, [dict.fromkeys(texts, -1)], texts)
        assert list(read_csv(path)[0]) == texts
    with open(path, encoding="utf-8", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    # Of the first character alone, as the spreadsheets' makers and OWASP tell it.
    risky = {cell for cell in cells if cell.lstrip(" \u00a0\u3000")[:1] in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")}
    assert {cell for cell in risky if cell} <= {"-1.5", "-1"}


def test_half_a_character_is_replaced(tmp_path):
    write_csv(tmp_path / "t.csv", [{"a": "x\ud800"}], ["a"])
    assert read_csv(tmp_path / "t.csv") == [{"a": "x?"}]
