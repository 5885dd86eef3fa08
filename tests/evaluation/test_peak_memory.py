"""Peak memory of a piece of work."""

import sys

import numpy as np
import pytest

from onlooker.evaluation import peak_memory as module
from onlooker.evaluation.peak_memory import peak_memory


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_what_was_freed_within_counts_and_what_was_held_before_does_not():
    before = np.ones(10_000_000)
    with peak_memory() as first:
        np.ones(5_000_000).sum()
    with peak_memory() as second:
        np.ones(100).sum()
    assert before.all()
    assert 35 < first.mb < 60
    assert second.mb < 10


def test_where_the_system_cannot_tell_nothing_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_RESET", str(tmp_path / "missing" / "clear_refs"))
    with peak_memory() as peak:
        np.ones(1000).sum()
    assert peak.mb is None
