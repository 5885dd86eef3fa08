"""Tables as values."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.report.page import MISSING, Column, Table
from onlooker.report.plots import Chart, Level, Mark, Series


def test_cells_are_written_by_their_columns():
    table = Table(
        (Column("name"), Column("n"), Column("share", ".1%"), Column("any"), Column("ok")),
        (("a", 12345, 0.1234, 0.000123456, True), ("b", np.int64(7), np.float32(0.5), float("nan"), None)),
    )
    assert table.text() == (
        ("a", "12,345", "12.3%", "0.0001235", "yes"),
        ("b", "7", "50.0%", MISSING, MISSING),
    )


def test_numbers_are_aligned_right_and_names_left():
    table = Table.of(["name", "n", "mixed"], [("a", 1, "x"), ("b", None, 2.0)])
    assert [column.align for column in table.columns] == ["left", "right", "left"]


def test_the_table_behind_a_chart_is_its_rows():
    chart = Chart(
        title="t",
        x_label="x",
        y_label="y",
        series=(Series("a", [1.0, 2.0], [0.25, float("nan")]),),
        levels=(Level("l", 3.0),),
        marks=(Mark("m", 2.0),),
    )
    table = Table.behind(chart)
    assert tuple(column.title for column in table.columns) == chart.rows()[0]
    assert table.rows == chart.rows()[1]
    assert table.text() == (("1", "0.25", "3", MISSING), ("2", MISSING, "3", "m"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Table((), ()), "at least one column"),
        (lambda: Table((Column("a"),), ((1,), (1, 2))), "row 1 has 2 cells for 1 columns"),
        (lambda: Table((Column("a"),), ((1,),), highlight=1), "row 1 cannot be highlighted"),
        (lambda: Table((Column("a", "d"),), ((0.5,),)), "column 'a': 0.5 cannot be written as 'd'"),
        (lambda: Column("a", align="middle"), "align 'middle' is not known"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
