"""`onlooker track`."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from onlooker import (
    TS,
    BanditLog,
    Environment,
    LinearPolicy,
    LinTS,
    LinUCB,
    TrackingObserver,
    UniformRandom,
    diagnose,
    direction_error,
    read_log,
    simulate,
    write_log,
)
from onlooker.base.files import locked


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(3, (10, 20), seed=1), LinTS(), 2300, seed=1).log


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
    places = [
        ran.out.index(text) for text in (repr(log), "read as ", *summary.words, "kind of exploration", "std. error")
    ]
    assert places == sorted(places)
    table = ran.out[ran.out.index("kind of exploration") :].splitlines()
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
    found = diagnose(log, level=0.9)
    assert document["diagnosis"]["values"]["state"] == found.values.state
    assert document["diagnosis"]["exploration"]["share"] == pytest.approx(found.exploration.share)


def test_shows_both_answers_of_a_diagnosis(run, path, log):
    ran = run("track", path, "--exploration", "ts:5")
    for words in ("What it values is stable", "How it picks: "):
        assert words in diagnose(log).sentence
        assert words in ran.out


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


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "16GB"]], ids=["whole", "in parts"])
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


def csv_of(log, ids, path, later=0):
    """A long table with ids, times and a category."""
    rows = ["visit,bought,at,price,size,colour"]
    for t, name in enumerate(ids):
        moment = np.datetime64("2024-05-01T00:00:00") + t + later
        for a, (price, size, colour) in enumerate(log.arms(t)):
            shade = "red" if colour > 0 else "blue"
            rows.append(f"{name},{int(a == log.chosen[t])},{moment},{price:.6f},{size:.6f},{shade}")
    path.write_text("\n".join(rows) + "\n")
    return path


COLUMNS = ("--round", "visit", "--chosen", "bought", "--order-by", "at", "--feature", "price", "--feature", "colour")


@pytest.mark.parametrize("limited", [(), ("--memory-limit", "16GB")], ids=["read", "scanned"])
def test_column_options_can_be_given_every_time(run, refused, log, tmp_path, limited):
    state, growing = tmp_path / "state.json", tmp_path / "log.csv"
    for n, skipped in ((300, 0), (500, 300), (500, 500), (640, 500)):
        csv_of(log[:n], range(n), growing)
        ran = run("track", growing, "--state", state, "--json", *COLUMNS, "--category", "colour", *limited)
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        assert (found["n_rounds"], found["rounds_skipped"]) == (n, skipped)
        assert found["rounds_followed"] == n - found["rounds_before"]
    assert TrackingObserver.load(state).policy_.feature_names == ("price", "colour=red")
    kept = state.read_bytes()
    assert "has the feature 'colour' too" in refused("track", growing, "--state", state, *COLUMNS[:-2], *limited)
    assert "'cost'" in refused("track", growing, "--state", state, "--round", "cost", *limited)
    assert state.read_bytes() == kept
    ran = run("track", growing, "--state", state, *COLUMNS, "--feature", "size", *limited)
    assert ran.code == 0, ran.err
    assert f"ignored, as {state} does not have it: 'size'" in ran.out
    assert state.read_bytes() == kept


def test_the_same_rounds_count_once(run, refused, log, tmp_path):
    state, path = tmp_path / "state.json", tmp_path / "log.parquet"
    write_log(log[:2100], path)
    assert run("track", path, "--state", state).code == 0
    kept = state.read_bytes()
    ran = run("track", path, "--state", state)
    assert ran.code == 0, ran.err
    assert "nothing is new: skips 2100 rounds that it has followed before, the state stays as it is" in ran.out
    assert state.read_bytes() == kept
    write_log(log, path)
    ran = run("track", path, "--state", state)
    assert "skips 2100 rounds that it has followed before, follows 200 new" in ran.out
    np.testing.assert_array_equal(TrackingObserver.load(state).theta_, TrackingObserver().fit(log).theta_)
    kept = state.read_bytes()
    write_log(log[500:700], path)
    assert "pass --repeated follow to follow them as new rounds" in refused("track", path, "--state", state)
    assert state.read_bytes() == kept
    ran = run("track", path, "--state", state, "--repeated", "follow", "--json")
    assert json.loads(ran.out)["rounds_followed"] == 200


def test_a_day_out_of_order_is_refused(run, refused, log, tmp_path):
    state = tmp_path / "state.json"
    days = [csv_of(log[t : t + 200], range(t, t + 200), tmp_path / f"{t}.csv", later=t) for t in (0, 200, 400)]
    columns = ("--round", "visit", "--chosen", "bought", "--feature", "price", "--feature", "size")
    for order in ((), ("--order-by", "at")):
        state.unlink(missing_ok=True)
        for day in (days[0], days[2]):
            assert run("track", day, "--state", state, *columns, *order).code == 0
        kept = state.read_bytes()
        said = refused("track", days[1], "--state", state, *columns, *order)
        assert "200 rounds of time below 2024-05-01T00:09:59" in said if order else "200 rounds of id below 599" in said
        assert state.read_bytes() == kept


def test_a_bad_day_leaves_the_state_as_it_is(run, refused, log, tmp_path):
    state, path = tmp_path / "state.json", tmp_path / "day.parquet"
    write_log(log[:2100], path)
    assert run("track", path, "--state", state).code == 0
    kept = state.read_bytes()
    for value in (1e100, 1.7e18, 1e160):
        features = log[2100:].features.astype(np.float64)
        features[-1, 0] = value
        write_log(BanditLog(features, log[2100:].offsets, log[2100:].chosen), path)
        for limited in ((), ("--memory-limit", "16GB")):
            assert "rescale it" in refused("track", path, "--state", state, *limited)
            assert state.read_bytes() == kept
    write_log(log[2100:], path)
    assert run("track", path, "--state", state).code == 0
    np.testing.assert_array_equal(TrackingObserver.load(state).theta_, TrackingObserver().fit(log).theta_)


@pytest.mark.skipif(os.name != "posix", reason="locks are the system's")
def test_one_process_at_a_time(run, refused, log, path, tmp_path):
    state, link = tmp_path / "state.json", tmp_path / "link.json"
    link.symlink_to(state)
    with locked(tmp_path / ".state.json.lock", state, "another state"):
        for name in (state, link):
            said = refused("track", path, "--state", name)
            assert f"{name}: process {os.getpid()} is at work in it: wait until it ends, or name another state" in said
    assert not state.exists()
    # What a killed process leaves behind is no lock.
    (tmp_path / ".state.json.lock").write_text("7")
    assert run("track", path, "--state", link).code == 0
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.json", "state.json"]
    assert TrackingObserver.load(state).n_rounds_ == log.n_rounds


def test_a_state_of_0_1_says_that_its_rounds_are_not_known(run, tmp_path):
    state = tmp_path / "state.json"
    state.write_bytes((Path(__file__).parent.parent / "data" / "states_0_1" / "ts_decided.json").read_bytes())
    write_log(simulate(Environment(3, 4, seed=9), LinTS(), 50, seed=9).log, tmp_path / "day.parquet")
    ran = run("track", tmp_path / "day.parquet", "--state", state)
    assert ran.code == 0, ran.err
    assert "the state's first 2100 rounds were followed by release 0.1, which kept no record of them" in ran.out
    assert json.loads(state.read_text())["schema"] == "onlooker.tracking/2"
    ran = run("track", tmp_path / "day.parquet", "--state", state, "--json")
    assert (json.loads(ran.out)["rounds_skipped"], json.loads(ran.out)["rounds_unknown"]) == (50, 2100)


def test_a_changed_state_is_refused(refused, run, path, tmp_path):
    state = tmp_path / "state.json"
    assert run("track", path, "--exploration", "ts:5", "--state", state).code == 0
    text = state.read_text()
    state.write_text(text.replace('"n_rounds": 2300', '"n_rounds": 5'))
    assert "the content was changed" in refused("track", path, "--state", state)
    state.write_text(text.replace("{", '{"automatic": true, ', 1))
    assert "'automatic' stands there twice" in refused("track", path, "--state", state)


def test_formats_without_an_encoding_of_another_go_on_too(run, tmp_path):
    rng = np.random.default_rng(5)
    state = tmp_path / "state.json"
    for day in range(2):
        np.savez(
            tmp_path / f"{day}.npz",
            action=rng.integers(0, 3, 60),
            action_context=np.eye(3)[:, :2],
            context=rng.normal(size=(60, 2)),
            feature_names=np.array(["a", "b"]),
        )
        ran = run("track", tmp_path / f"{day}.npz", "--state", state, "--cross")
        assert ran.code == 0, ran.err
    assert TrackingObserver.load(state).n_rounds_ == 120


@pytest.mark.parametrize("kind", ["vw", "dsjson"])
def test_a_feature_that_a_later_file_names_first_is_followed(run, tmp_path, kind):
    """Rows of such files name their features: one that was not named before was 0."""
    log = simulate(Environment(3, 4, seed=2), LinUCB(), 700, seed=2).log
    features = log.features.astype(np.float64)
    features[: log.offsets[400], 2] = 0.0
    whole = BanditLog(features, log.offsets, log.chosen, feature_names=["f^x", "f^y", "f^z"])
    early = whole[:300].with_features(whole[:300].features[:, :2], ["f^x", "f^y"])
    state, other = tmp_path / "state.json", tmp_path / "other.json"
    write_log(early, tmp_path / f"first.{kind}")
    write_log(whole[300:], tmp_path / f"second.{kind}")
    for name in ("first", "second"):
        assert run("track", tmp_path / f"{name}.{kind}", "--state", state).code == 0
    followed = TrackingObserver.load(state)
    assert (followed.policy_.feature_names, followed.n_rounds_) == (("f^x", "f^y", "f^z"), 700)
    write_log(whole, tmp_path / f"whole.{kind}")
    assert run("track", tmp_path / f"whole.{kind}", "--state", other).code == 0
    # Weights of a learner that is not named are in logits, whose length picks hardly identify.
    assert direction_error(followed.theta_, TrackingObserver.load(other).theta_) < 0.02


def test_a_column_that_a_later_table_brings_is_reported(run, tmp_path):
    log = simulate(Environment(2, 3), LinUCB(), 400).log
    named = BanditLog(log.features, log.offsets, log.chosen, feature_names=["a", "b"], round_ids=np.arange(400))
    more = named[200:].with_features(np.hstack([named[200:].features, named[200:].features[:, :1]]), ["a", "b", "z"])
    write_log(named[:200], tmp_path / "first.csv")
    write_log(more, tmp_path / "second.csv")
    assert run("track", tmp_path / "first.csv", "--state", tmp_path / "s.json").code == 0
    ran = run("track", tmp_path / "second.csv", "--state", tmp_path / "s.json")
    assert ran.code == 0
    assert "ignored, as the rounds before did not have them: 'z'" in ran.out


def test_ids_in_another_spelling_are_the_same_rounds(run, tmp_path):
    log = simulate(Environment(2, 3), LinUCB(), 300).log
    for name, ids in {
        "a": np.arange(300),
        "b": [f"{t}.0" for t in range(300)],
        "c": [f"{t:05d}" for t in range(300)],
    }.items():
        write_log(BanditLog(log.features, log.offsets, log.chosen, round_ids=np.array(ids)), tmp_path / f"{name}.csv")
    for name in "abc":
        assert run("track", tmp_path / f"{name}.csv", "--state", tmp_path / "s.json").code == 0
    assert TrackingObserver.load(tmp_path / "s.json").n_rounds_ == 300


def test_ids_of_another_kind_are_refused(run, refused, tmp_path):
    log = simulate(Environment(2, 3), LinUCB(), 300).log
    for name, ids in {"a": np.arange(300), "b": [f"visit {t}" for t in range(300)]}.items():
        write_log(BanditLog(log.features, log.offsets, log.chosen, round_ids=np.array(ids)), tmp_path / f"{name}.csv")
    assert run("track", tmp_path / "a.csv", "--state", tmp_path / "s.json").code == 0
    line = refused("track", tmp_path / "b.csv", "--state", tmp_path / "s.json")
    assert "of another kind (text) than those followed before (number)" in line
