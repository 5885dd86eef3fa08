"""`onlooker track`."""

import json

import numpy as np
import pytest

from onlooker import (
    TS,
    Environment,
    LinearPolicy,
    LinTS,
    TrackingObserver,
    UniformRandom,
    read_log,
    simulate,
    write_log,
)


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(3, (2, 6), seed=1), LinTS(), 2300, seed=1).log


@pytest.fixture(scope="module")
def path(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("track") / "log.parquet"
    write_log(log, path)
    return path


def test_says_the_answer_then_the_families_then_the_direction(run, path, log, tmp_path):
    out, chart = tmp_path / "policy.json", tmp_path / "path.png"
    ran = run("track", path, "--out", out, "--chart", chart)
    assert ran.code == 0, ran.err
    expected = TrackingObserver().fit(log)
    summary = expected.summary()
    places = [ran.out.index(text) for text in (repr(log), "read as ", *summary.words, "way to explore", "std. error")]
    assert places == sorted(places)
    table = ran.out[ran.out.index("way to explore") :].splitlines()
    assert [line.split("  ")[0] for line in table[1:5]] == [one.words.split(" (")[0] for one in summary.families]
    assert max(map(len, table[:5])) <= 80
    assert LinearPolicy.load(out) == expected.policy_
    assert chart.read_bytes().startswith(b"\x89PNG")
    assert str(chart) in ran.out


def test_json_and_a_family_of_ones_own(run, path, log):
    ran = run("track", path, "--exploration", "ts:5", "--ridge", "2", "--level", "0.9", "--json")
    document = json.loads(ran.out)
    summary = TrackingObserver(exploration=TS(5.0), ridge=2.0).fit(log).summary(0.9)
    assert document["coefficients"][0]["low"] == summary.coefficients[0].low
    assert document["families"][0]["strength"] == 5.0
    assert document["margin"] is None
    assert document["assumed"]


def test_a_state_goes_on_and_is_made_where_there_is_none(run, log, tmp_path):
    state, chart = tmp_path / "state.json", tmp_path / "path.svg"
    for number, part in enumerate((log[:300], log[300:2100], log[2100:])):
        write_log(part, tmp_path / "part.parquet")
        ran = run("track", tmp_path / "part.parquet", "--state", state, "--chart", chart, "--exploration", "auto")
        assert ran.code == 0, ran.err
        assert ("goes on after" in ran.out) == (number > 0)
    assert "goes on after 2100 rounds" in ran.out
    found, whole = TrackingObserver.load(state), TrackingObserver().fit(log)
    np.testing.assert_array_equal(found.theta_, whole.theta_)
    assert found.n_rounds_ == 2300
    assert chart.read_text().startswith("<svg")


def test_a_state_keeps_how_categories_were_encoded(run, tmp_path):
    rng = np.random.default_rng(0)
    parts = []
    for start in (0, 200):
        rows = ["visit,bought,colour,price"]
        for visit in range(start, start + 200):
            price, colours = rng.normal(size=4), rng.permutation(["red", "blue", "green", "grey"])
            # The second part lacks a colour.
            colours[colours == "grey"] = "red" if start else "grey"
            pick = (price - (colours == "blue")).argmin()
            rows += [f"{visit},{int(a == pick)},{colours[a]},{price[a]:.4f}" for a in range(4)]
        parts.append(tmp_path / f"part{start}.csv")
        parts[-1].write_text("\n".join(rows) + "\n")
    state = tmp_path / "state.json"
    for part in parts:
        ran = run("track", part, "--round", "visit", "--chosen", "bought", "--state", state)
        assert ran.code == 0, ran.err
    found = TrackingObserver.load(state)
    assert found.n_rounds_ == 400
    assert found.policy_.feature_names == read_log(parts[0], round="visit", chosen="bought").feature_names


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "2GB"]], ids=["whole", "in parts"])
def test_a_level_that_is_new_is_followed(run, tmp_path, limit):
    rng = np.random.default_rng(0)
    state, day = tmp_path / "state.json", tmp_path / "day.csv"
    for start, levels in ((0, ["red", "blue"]), (300, ["amber", "red"])):
        rows = ["round,chosen,colour,price"]
        for visit in range(start, start + 300):
            price, colours = rng.normal(size=4), rng.choice(levels, size=4)
            pick = (price - (colours == "red") - 2 * (colours == "amber")).argmin()
            rows += [f"{visit},{int(a == pick)},{colours[a]},{price[a]:.4f}" for a in range(4)]
        day.write_text("\n".join(rows) + "\n")
        ran = run("track", day, "--state", state, *limit)
        assert ran.code == 0, ran.err
        assert "does not know" not in ran.err
    found = TrackingObserver.load(state)
    weights = dict(zip(found.policy_.feature_names, found.theta_ / -found.theta_[-2], strict=True))
    assert found.policy_.categories == {"colour": ("blue", "red", "amber")}
    assert weights == pytest.approx({"colour=red": 1.0, "price": -1.0, "colour=amber": 2.0}, abs=0.2)


def test_no_direction_no_chart(run, tmp_path):
    write_log(simulate(Environment(3, 4), UniformRandom(), 300).log, tmp_path / "log.csv")
    ran = run("track", tmp_path / "log.csv", "--chart", tmp_path / "path.svg")
    assert ran.code == 0
    assert "No preference was found" in ran.out
    assert "is not drawn" in ran.err
    assert not (tmp_path / "path.svg").exists()


def test_bad_input(refused, run, path, tmp_path):
    state = tmp_path / "state.json"
    assert "no-such.parquet" in refused("track", tmp_path / "no-such.parquet", "--state", state)
    assert "is written as .png or .svg" in refused("track", path, "--state", state, "--chart", "path.pdf")
    assert "use auto" in refused("track", path, "--exploration", "bold:1", "--state", state)
    assert "'much' is not a number" in refused("track", path, "--exploration", "ucb:much", "--state", state)
    assert "nu is -1.0" in refused("track", path, "--exploration", "ts:-1", "--state", state)
    assert "'--ridge': 0.0 is not in the range" in refused("track", path, "--ridge", "0", "--state", state)
    assert "nowhere" in refused("track", path, "--out", tmp_path / "nowhere" / "policy.json", "--state", state)
    # What was refused has left no state behind.
    assert not state.exists()
    assert run("track", path, "--exploration", "ts:5", "--state", state).code == 0
    kept = state.read_bytes()
    assert "was made with TS(nu=5.0)" in refused("track", path, "--exploration", "ts:6", "--state", state)
    assert "was made with 1.0" in refused("track", path, "--ridge", "3", "--state", state)
    assert "nowhere" in refused("track", path, "--chart", tmp_path / "nowhere" / "path.svg", "--state", state)
    assert state.read_bytes() == kept
    state.write_text("{}")
    assert "tracking state" in refused("track", path, "--state", state)
