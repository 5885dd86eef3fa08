"""Charts of a diagnosis."""

import numpy as np

from onlooker.diagnosis import diagnose
from onlooker.logs.log import BanditLog
from onlooker.report.plots import diagnosis_charts, to_svg
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import ExploreThenCommit, UniformRandom
from onlooker.simulation.play import simulate


def test_charts_show_what_the_diagnosis_holds():
    found = diagnose(simulate(Environment(5, 10), ExploreThenCommit(500), 2000).log)
    own, late, fit = diagnosis_charts(found)
    assert own.series[0].y.tolist() == [b.own.value for b in found.bins]
    assert own.series[1].y.tolist() == [b.chance for b in found.bins]
    assert late.series[0].low.tolist() == [b.late.low for b in found.bins]
    assert fit.series[0].y.tolist() == [block.share.value for block in found.stability]
    assert fit.series[1].y.tolist() == [block.fitted for block in found.stability]
    assert fit.levels[0].y == 0.9
    for chart in (own, late, fit):
        assert [(mark.label, mark.x) for mark in chart.marks] == [("stable", found.settled.round)]
    assert "stable" in to_svg((own, late, fit))


def test_what_was_not_measured_is_left_out():
    guessing = diagnose(simulate(Environment(5, 10), UniformRandom(), 1000).log)
    assert len(diagnosis_charts(guessing)) == 2
    few = diagnose(BanditLog.from_dense(np.zeros((3, 2, 1)), [0, 1, 0]))
    assert diagnosis_charts(few) == ()
