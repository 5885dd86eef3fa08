"""Names in logs are kept as they are, whatever a spreadsheet would make of them: a log is read back."""

import numpy as np
import pytest

from onlooker import BanditLog, read_log, write_log
from payloads import FORMULAS, PAYLOADS


@pytest.fixture(scope="module")
def texts():
    """What UTF-8 can hold of them."""
    return tuple(dict.fromkeys(text.encode("utf-8", "replace").decode() for text in PAYLOADS))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "parquet"])
def test_names_of_features_rounds_and_arms_read_back(tmp_path, texts, suffix):
    assert set(FORMULAS) <= set(texts)
    count = len(texts)
    arms = np.array([texts[row % count] for row in range(2 * count)], dtype=object)
    log = BanditLog(
        np.random.default_rng(0).normal(size=(2 * count, count)),
        2 * np.arange(count + 1),
        np.arange(count) % 2,
        feature_names=texts,
        round_ids=np.array(texts, dtype=object),
        arm_ids=arms,
    )
    path = tmp_path / f"log.{suffix}"
    write_log(log, path)
    again = read_log(path, **({} if suffix == "parquet" else {"arm": "arm"}))
    assert again.feature_names == texts
    assert again.round_ids.tolist() == list(texts)
    assert again.arm_ids.tolist() == arms.tolist()
    np.testing.assert_array_equal(again.features, log.features)
    np.testing.assert_array_equal(again.chosen, log.chosen)
