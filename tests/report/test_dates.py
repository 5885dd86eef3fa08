"""Dates in reports and diagnoses, where the log knows the times of its rounds."""

import numpy as np
import pytest

from onlooker import BanditLog, diagnose, report_page
from onlooker.diagnosis.result import date_of, dates_of, span_of


@pytest.fixture(scope="module")
def changed():
    """A learner that turns round after 600 of 1,000 rounds, ten rounds a day."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4, 2))
    sign = np.where(np.arange(1000) < 600, 1.0, -1.0)[:, None]
    picks = (sign * (X @ [3.0, 1.0]) + rng.gumbel(size=(1000, 4))).argmax(axis=1)
    times = np.datetime64("2024-01-01T00:00") + np.arange(1000) * np.timedelta64(144, "m")
    return BanditLog(X.reshape(-1, 2), np.arange(1001) * 4, picks, feature_names=["price", "speed"], times=times)


def test_the_change_has_its_date(changed):
    found = diagnose(changed)
    assert found.verdict == "changed"
    said = dates_of(found, changed)
    assert said.startswith("In dates: the log is from 2024-01-01 to 2024-04-09; the change was at about 2024-0")
    assert date_of(changed, found.values.changed_at) in said
    page = report_page(changed)
    assert said in page.lead
    assert date_of(changed, found.values.changed_at) in page.cards[0].detail
    labels = [chart.x_label for section in page.sections for chart in section.charts]
    assert f"round, {span_of(changed)}" in labels


def test_nothing_is_said_without_dates(changed):
    plain = BanditLog(changed.features, changed.offsets, changed.chosen)
    counted = BanditLog(changed.features, changed.offsets, changed.chosen, times=np.arange(1000))
    for log in (plain, counted):
        assert dates_of(diagnose(log), log) == ""
        assert span_of(log) is None
