"""The section of a page about a tracked learner."""

import pytest

from onlooker import TS, Environment, ExploreThenCommit, LinTS, TrackingObserver, UniformRandom, simulate
from onlooker.report.log_page import families_table, tracking_section
from onlooker.report.page import Page, render


def test_the_section_says_and_shows_what_was_found():
    observer = TrackingObserver().fit(simulate(Environment(5, 20, seed=2), LinTS(), 1500, seed=2).log)
    section, summary = tracking_section(observer), observer.summary()
    for words in summary.words:
        assert words in section.text
    assert len(section.charts) == 1
    assert section.table.highlight == 0
    assert [row[0] for row in section.table.rows] == [one.words for one in summary.families]
    behind = [row[-1] for row in section.table.rows]
    assert behind[0] == 0
    assert behind == sorted(behind)
    html = render(Page(title="A page", sections=(section,)))
    assert html.count("<svg") == 1
    assert "Thompson sampling" in html


def test_what_is_not_proved_is_not_stated():
    log = simulate(Environment(10, 20, seed=0), ExploreThenCommit(500), 2500, seed=0).log
    with pytest.warns():
        section = tracking_section(TrackingObserver().fit(log))
    assert "None of the known learners explains the picks better than a model-free one" in section.text
    assert section.table is None
    assert "Thompson" not in render(Page(title="A page", sections=(section,)))


def test_a_family_that_was_told_has_no_range():
    log = simulate(Environment(5, 10, seed=2), LinTS(), 500, seed=2).log
    (row,) = families_table(TrackingObserver(exploration=TS(5.0)).fit(log).summary()).rows
    assert row[1:4] == ("nu", 5.0, None)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_no_preference_has_no_chart():
    section = tracking_section(TrackingObserver().fit(simulate(Environment(3, 4), UniformRandom(), 300).log))
    assert section.charts == ()
    assert section.text.startswith("No preference was found")
