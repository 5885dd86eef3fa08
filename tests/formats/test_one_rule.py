"""Columns that are treated alike whatever the shape of the table, and words among numbers."""

import warnings

import pyarrow as pa
import pytest

from onlooker import InputError, read_log, scan_log
from onlooker.base.errors import ColumnsLeftOutWarning


def names_of(table, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_log(table, **options).feature_names
    return found, " ".join(str(one.message) for one in caught)


def test_a_constant_text_column_is_left_out_of_every_shape():
    long = pa.table({"round": [1, 1, 2, 2], "chosen": [0, 1, 1, 0], "price": [1.0, 2, 3, 4], "maker": ["x"] * 4})
    wide = pa.table(
        {"chosen": [1, 2, 1], "arm1_price": [1.0, 2, 3], "arm2_price": [3.0, 1, 2]}
        | {f"arm{k}_maker": ["x"] * 3 for k in (1, 2)}
    )
    offers = [{"id": "a", "price": 1.0, "maker": "x"}, {"id": "b", "price": 2.0, "maker": "x"}]
    listed = pa.table({"chosen": ["a", "b"], "candidates": [offers] * 2})
    for table in (long, wide, listed):
        names, said = names_of(table)
        assert names == ("price",)
        assert "'maker' (the same in every row)" in said
        with pytest.warns(ColumnsLeftOutWarning):
            assert scan_log(table).feature_names == ("price",)


@pytest.mark.parametrize("options", [{}, {"features": ["price", "speed"]}])
@pytest.mark.parametrize("read", [read_log, lambda path, **given: list(scan_log(path, **given))])
def test_a_stray_word_among_numbers_is_an_error(tmp_path, read, options):
    rows = [f"{t // 2},{t % 2},{t / 7:.3f},{'fast' if t == 11 else t}" for t in range(40)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["round,chosen,price,speed", *rows]) + "\n")
    with pytest.raises(InputError, match=r"'speed', row 12 .*is 'fast', not a number: correct it or name it as a cat"):
        read(path, **options)
    assert read_log(path, categories=["speed"]).n_features > 2
