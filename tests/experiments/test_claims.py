"""Verdicts follow the data: tables whose answer is known, and tables where a claim must fail or stay open."""

import csv
import io
import json
import math
from functools import cache

import numpy as np
import pytest

import paper_tables
from onlooker.experiments.claim import dips_inside
from onlooker.experiments.claims import claims, claims_json, claims_markdown

FEW = (("LinUCB", 20, 50), ("LinTS", 50, 200))


@cache
def judged(**changes):
    table = paper_tables.results(settings=FEW, **changes)
    return {claim.key: claim for claim in claims(table, [])}


def verdicts(found, start):
    return {claim.verdict for key, claim in found.items() if key.startswith(start)}


@cache
def diagnosed(**changes):
    return {claim.key: claim for claim in claims([], paper_tables.diagnostics(**changes))}


def test_a_table_as_the_paper_describes_it_holds_in_twelve_of_twelve_panels():
    found = {claim.key: claim for claim in claims(paper_tables.results(), paper_tables.diagnostics())}
    assert found["1-u-shape"].ours == "12 of 12 panels"
    whole = {key: claim.verdict for key, claim in found.items() if claim.part_of is None}
    assert len(whole) == 26
    assert {key for key, verdict in whole.items() if verdict != "holds"} == {
        f"3-{observer}-beats-{learner}"
        for observer in ("oracle", "best-single-alpha")
        for learner in ("LinTS", "LinUCB")
    }
    assert len([key for key in found if key.startswith("1-u-shape/")]) == 24
    assert all(claim.part_of in found for claim in found.values() if claim.part_of is not None)


def test_a_curve_that_only_rises_is_no_u():
    found = judged(bias=0.0)
    assert verdicts(found, "1-u-shape") == {"does not hold"}
    assert found["1-u-shape"].ours == "0 of 2 panels"
    assert "everywhere" in found["1-u-shape"].detail


def test_a_curve_that_only_falls_is_no_u():
    table = paper_tables.results(settings=FEW[:1])
    for row in table:
        if row["method"] == "sweep":
            row["direction_error"] = 2 - row["alpha"] + 1e-3 * row["seed"]
    found = {claim.key: claim for claim in claims(table, [])}
    assert found["1-u-shape/LinUCB-d20-K50/error"].verdict == "does not hold"
    assert "at an end, alpha = 0.99" in found["1-u-shape/LinUCB-d20-K50/error"].detail
    assert found["1-u-shape/LinUCB-d20-K50/regret"].verdict == "holds"
    assert found["1-u-shape"].verdict == "does not hold"
    assert "LinUCB-d20-K50 (error)" in found["1-u-shape"].detail


def test_a_flat_curve_that_rises_at_its_end_is_seldom_called_a_u_although_the_best_alpha_is_chosen_on_it():
    random = np.random.default_rng(0)
    alphas = np.linspace(0, 0.99, 21)
    rise = np.where(alphas == 0.99, 3.0, 1.0)
    curves = (rise * random.lognormal(0, 0.3, size=(12, 21)) for _ in range(200))
    assert sum(dips_inside(values, alphas).verdict == "holds" for values in curves) <= 18


def test_naive_that_is_as_good_as_the_learner_leaves_it_open_and_a_better_one_refutes():
    level = paper_tables.shape(0.0, 1.5) / paper_tables.shape(np.linspace(0, 0.99, 1000), 1.5).min()
    assert verdicts(judged(), "2-naive") == {"holds"}
    assert judged(best=1 / level)["2-naive-LinTS"].verdict != "holds"
    assert verdicts(judged(best=0.9 / level), "2-naive") == {"does not hold"}


@pytest.mark.parametrize(
    ("best", "beats", "close"),
    [(0.9, "holds", "holds"), (1.4, "does not hold", "does not hold"), (0.5, "holds", "does not hold")],
)
def test_beating_and_being_close_are_judged_apart(best, beats, close):
    found = judged(best=best)
    assert found["3-best-single-alpha-beats-LinUCB"].verdict == beats
    assert found["3-best-single-alpha-close-LinUCB/d20-K50/error"].verdict == close


def test_a_ratio_near_one_with_much_noise_is_inconclusive():
    assert judged(best=1.2, noise=0.4)["3-best-single-alpha-close-LinTS"].verdict == "inconclusive"


def test_the_oracle_of_each_seed_is_never_above_the_best_single_alpha():
    found = judged()
    for key, claim in found.items():
        if key.startswith("3-oracle") and "/" in key:
            assert claim.ours < found[key.replace("oracle", "best-single-alpha")].ours


def test_a_rule_that_varies_no_more_than_naive_is_not_said_to():
    assert verdicts(judged(), "4-rule") == {"holds"}
    assert judged(rule_noise=0.0)["4-rule-spread-LinTS"].verdict == "inconclusive"
    assert judged(rule_noise=0.0)["4-rule-beats-naive-LinTS"].verdict == "holds"


def test_a_rule_that_falls_behind_does_not_come_closer_to_the_oracle_nor_beat_naive():
    table = paper_tables.results(settings=FEW[1:])
    for row in table:
        if row["method"] == "rule" and row["N"] == 10000:
            row["direction_error"] *= 2
    found = {claim.key: claim for claim in claims(table, [])}
    for part in ("nears-oracle", "beats-naive"):
        assert found[f"4-rule-{part}-LinTS/d50-K200/error"].verdict == "does not hold"
        assert found[f"4-rule-{part}-LinTS/d50-K200/regret"].verdict == "holds"


def test_the_rate_is_that_of_the_table():
    for rate, verdict in ((-0.5, "holds"), (-0.1, "does not hold")):
        found = judged(rate=rate)
        part = found["5-rate-best-single-alpha-LinTS/d50-K200"]
        assert part.low < 2 * rate < part.high
        assert part.verdict == found["5-rate-best-single-alpha-LinTS"].verdict == verdict


def test_too_few_seeds_decide_nothing_and_say_so():
    found = judged(seeds=4)
    assert verdicts(found, "") == {"inconclusive"}
    assert "4 seeds: at least 5 are needed" in found["1-u-shape"].detail
    assert verdicts(diagnosed(seeds=3), "") == {"inconclusive"}


def test_only_what_is_in_the_table_is_judged():
    table = [row for row in paper_tables.results(settings=FEW) if row["method"] == "sweep" and row["N"] == 10000]
    assert {claim.key.split("/")[0] for claim in claims(table, [])} == {"1-u-shape"}
    assert claims([], []) == ()


def test_a_value_of_zero_or_none_leaves_a_panel_open():
    table = paper_tables.results(settings=FEW[:1])
    for row in table:
        if row["method"] == "learner":
            row["predictive_regret"] = 0.0
        if row["method"] == "sweep" and row["alpha"] == 0.99:
            row["direction_error"] = math.nan
    found = {claim.key: claim for claim in claims(table, [])}
    assert found["2-naive-LinUCB/d20-K50/regret"].detail == "zero has no logarithm"
    assert found["2-naive-LinUCB/d20-K50/error"].verdict == "holds"
    assert "0.985" in found["1-u-shape/LinUCB-d20-K50/error"].text


def test_the_diagnostics_hold_where_intervals_overlap_and_only_there():
    found = diagnosed()
    assert [claim.verdict for claim in found.values()] == ["holds"] * 3
    assert found["6-late-bins"].low < 0.1041 < found["6-late-bins"].high
    assert diagnosed(gap=0.06)["6-late-bins"].verdict == "does not hold"
    assert "below the paper's and outside its interval" in diagnosed(gap=0.06)["6-late-bins"].detail
    assert diagnosed(window_gap=0.3)["6-late-windows"].verdict == "does not hold"
    assert diagnosed(gap=-0.1)["6-spearman"].verdict == "does not hold"
    assert diagnosed(gap=1e-6)["6-spearman"].verdict == "inconclusive"


def test_either_reading_of_the_windows_is_judged_on_its_own_rows():
    rows = paper_tables.diagnostics()
    other = [row | {"kind": "overlapping", "accuracy": row["accuracy"] / 2} for row in rows if row["kind"] == "window"]
    found = {claim.key: claim for claim in claims([], rows + other)}
    assert found["6-late-windows"].verdict == "holds"
    assert found["6-late-windows-overlapping"].verdict == "does not hold"
    assert all("does not define its windows" in found[key].detail for key in found if "windows" in key)


def test_other_settings_are_not_held_to_the_papers_numbers():
    found = diagnosed(setting=("LinUCB", 20, 50), N=2000)
    assert verdicts(found, "") == {"inconclusive"}
    assert all("not for this setting" in claim.detail for claim in found.values())


def test_rows_read_back_from_csv_give_the_same_bytes():
    results, diagnostics = paper_tables.results(settings=FEW), paper_tables.diagnostics()
    read = []
    for table in (results, diagnostics):
        text = io.StringIO()
        writer = csv.DictWriter(text, table[0])
        writer.writeheader()
        writer.writerows(table)
        text.seek(0)
        read.append(list(csv.DictReader(text)))
    first, second = claims(results, diagnostics), claims(*read)
    assert claims_json(first) == claims_json(second)
    assert claims_markdown(first) == claims_markdown(second)


def test_json_has_every_field_and_markdown_every_claim():
    found = claims(paper_tables.results(settings=FEW), paper_tables.diagnostics())
    loaded = json.loads(claims_json(found))
    assert [row["key"] for row in loaded] == [claim.key for claim in found]
    assert set(loaded[0]) == {"key", "text", "paper", "ours", "low", "high", "verdict", "detail"}
    written = claims_markdown(found)
    assert all(claim.text in written for claim in found)
    assert written.index("## Panel by panel") > written.index(found[0].text)
    tables = [line for line in written.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {7}
