"""Figures show the table's numbers, and the page shows figures and verdicts."""

import csv
import itertools
import math

import numpy as np
import pytest
from statsmodels.stats.weightstats import DescrStatsW

import paper_tables
from onlooker.experiments.claims import claims
from onlooker.experiments.paper_figures import paper_figures
from onlooker.experiments.reproduce import paper_page
from onlooker.report.page import render
from onlooker.report.plots.style import DASHES, LIGHT, MARKERS

FEW = (("LinUCB", 50, 200), ("LinTS", 50, 200))


@pytest.fixture(scope="module")
def tables():
    return paper_tables.results(settings=FEW, seeds=6), paper_tables.diagnostics(seeds=6)


@pytest.fixture(scope="module")
def figures(tables):
    return {figure.name: figure for figure in paper_figures(*tables)}


def column(rows, metric, **where):
    return [row[metric] for row in rows if all(row[key] == value for key, value in where.items())]


def test_a_whole_table_gives_the_papers_thirteen_figures_main_setting_first():
    sweep = [row for row in paper_tables.results(seeds=2) if row["method"] in {"sweep", "learner"}]
    names = [figure.name for figure in paper_figures(sweep, paper_tables.diagnostics(seeds=2))]
    sizes = [f"d{d}-K{K}" for d, K in itertools.product((50, 20), (200, 100, 50))]
    assert names == [*(f"figure1-{size}" for size in sizes), *(f"figure2-{size}" for size in sizes), "appendixA"]


def test_panels_stand_in_the_papers_order(figures):
    order = [
        "LinTS: predictive regret",
        "LinTS: direction error",
        "LinUCB: predictive regret",
        "LinUCB: direction error",
    ]
    assert [chart.title for chart in figures["figure1-d50-K200"].charts] == order
    assert [chart.title for chart in figures["figure2-d50-K200"].charts] == order
    assert [len(chart.series) for chart in figures["figure2-d50-K200"].charts] == [6] * 4


def test_figure_1_has_the_mean_and_interval_of_every_alpha_and_the_learners_level(tables, figures):
    chart = figures["figure1-d50-K200"].charts[1]
    curve = chart.series[0]
    for i, alpha in enumerate(curve.x):
        sample = column(tables[0], "direction_error", learner="LinTS", N=10000, method="sweep", alpha=alpha)
        assert len(sample) == 6
        assert curve.y[i] == pytest.approx(np.mean(sample))
        assert (curve.low[i], curve.high[i]) == pytest.approx(DescrStatsW(sample).tconfint_mean())
    learner = column(tables[0], "direction_error", learner="LinTS", N=10000, method="learner")
    assert chart.levels[0].y == pytest.approx(np.mean(learner))
    assert (chart.levels[0].low, chart.levels[0].high) == pytest.approx(DescrStatsW(learner).tconfint_mean())


def test_figure_2_tells_the_oracle_of_each_seed_from_the_best_single_alpha(tables, figures):
    chart = figures["figure2-d50-K200"].charts[2]
    shown = {series.label: series for series in chart.series}
    rows = [row for row in tables[0] if row["learner"] == "LinUCB" and row["N"] == 2000 and row["method"] == "sweep"]
    values = np.array([column(rows, "predictive_regret", seed=seed) for seed in range(6)])
    at = list(chart.series[0].x).index(2000)
    assert shown["oracle (per seed)"].y[at] == pytest.approx(values.min(axis=1).mean())
    assert shown["best single alpha"].y[at] == pytest.approx(values.mean(axis=0).min())
    assert chart.log_x
    assert chart.log_y


def test_appendix_a_has_a_point_for_every_stretch(tables, figures):
    bins, windows = figures["appendixA"].charts
    for chart, kind in ((bins, "bin"), (windows, "window")):
        sample = column(tables[1], "accuracy", kind=kind, index=4)
        assert (chart.series[0].x[4], chart.series[0].y[4]) == (4500, pytest.approx(np.mean(sample)))


def test_a_method_that_one_learner_lacks_is_a_gap_and_the_legend_stays_shared(tables, tmp_path):
    rows = [row for row in tables[0] if row["method"] != "auto" or row["learner"] == "LinUCB"]
    figure = next(figure for figure in paper_figures(rows, []) if figure.name == "figure2-d50-K200")
    assert np.isnan(figure.charts[0].series[-1].y).all()
    figure.save(tmp_path)


def test_tracking_is_a_seventh_method_where_the_table_has_it(tables):
    more = [row | {"method": "tracking"} for row in tables[0] if row["method"] == "rule"]
    figure = next(one for one in paper_figures([*tables[0], *more], []) if one.name == "figure2-d50-K200")
    for chart in figure.charts:
        series = {one.label: one for one in chart.series}
        assert len(chart.series) == 7
        assert list(series)[-1] == "tracking"
        np.testing.assert_array_equal(series["tracking"].y, series["rule (T = N^0.9)"].y)
    assert min(len(LIGHT), len(DASHES), len(MARKERS)) >= 7


def test_a_band_that_reaches_zero_is_left_out_on_a_logarithmic_axis(tables):
    few = [row for row in tables[0] if row["seed"] < 2]
    figure = paper_figures(few, [])[0]
    curve = figure.charts[0].series[0]
    assert figure.charts[0].log_y
    assert np.isnan(curve.low).any()
    assert (np.isnan(curve.low) == np.isnan(curve.high)).all()
    zero = [row | {"predictive_regret": 0.0} for row in tables[0]]
    assert not paper_figures(zero, [])[0].charts[0].log_y


def test_one_seed_is_drawn_without_bands(tables, tmp_path):
    one = [[row for row in table if row["seed"] == 0] for table in tables]
    for figure in paper_figures(*one):
        figure.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 9


def test_saved_files_hold_the_numbers_and_are_the_same_every_time(figures, tmp_path):
    figure = figures["figure1-d50-K200"]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths = figure.save(tmp_path / folder)
    assert [path.name for path in paths] == [f"figure1-d50-K200.{suffix}" for suffix in ("png", "svg", "csv")]
    for path in paths:
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()
    with open(paths[2], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 22
    assert [float(row["y"]) for row in rows[:21]] == figure.charts[0].series[0].y.tolist()
    assert (rows[21]["kind"], rows[21]["x"]) == ("level", "")


def test_captions_say_how_many_seeds_and_where_the_curve_is_lowest(figures):
    caption = figures["figure1-d50-K200"].caption
    assert "6 seeds" in caption
    assert math.isclose(float(caption.split("lowest at alpha = ")[1].split()[0]), 0.9, abs_tol=0.05)


def test_the_page_has_verdicts_then_figures_then_how_it_was_made(tables, figures):
    found = claims(*tables)
    page = paper_page(found, tuple(figures.values()), {"command": "onlooker reproduce", "seeds": [0, 1]})
    titles = [section.title for section in page.sections]
    assert titles == [
        "Does it hold?",
        *(figure.title for figure in figures.values()),
        "The claims panel by panel",
        "How this was made",
    ]
    whole = [claim for claim in found if claim.part_of is None]
    assert len(page.sections[0].table.rows) == len(whole)
    assert page.sections[-1].table.rows == (("command", "onlooker reproduce"), ("seeds", "[0, 1]"))
    html = render(page)
    assert html == render(page)
    assert html.count("<svg") == sum(len(figure.charts) for figure in figures.values())
    for verdict in {claim.verdict for claim in whole}:
        assert html.count(f" {verdict}</td>") == sum(claim.verdict == verdict for claim in found)


def test_a_page_without_results_says_so():
    page = paper_page((), (), {})
    assert "No claim" in page.lead
    assert "How this was made" in render(page)
