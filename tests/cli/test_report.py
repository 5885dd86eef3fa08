"""`onlooker report`."""

import hashlib
import json
import re
import shlex
from html import unescape

import numpy as np
import pytest

from hostile import BY, ENDING, IMAGE, SCRIPT, write_hostile
from onlooker import Environment, LinearPolicy, LinUCB, diagnose, read_log, read_logs, simulate, write_log


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "log.parquet"
    write_log(simulate(Environment(3, 5), LinUCB(), 600).log, path)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path, _ = write_hostile(tmp_path_factory.mktemp("hostile"))
    features = [word for name in (SCRIPT, IMAGE, ENDING) for word in ("--feature", name)]
    return path, ["--round", "visit", "--chosen", "bought", "--arm", "arm", *features]


def code(html):
    return unescape(re.search(r"<code>(.*?)</code>", html, re.DOTALL)[1])


def test_says_the_verdict_and_writes_the_page(run, path, tmp_path):
    out = tmp_path / "report.html"
    ran = run("report", path, "--out", out)
    assert ran.code == 0, ran.err
    sentence = diagnose(read_log(path)).sentence
    assert ran.out.splitlines()[0] == sentence
    assert f"report: {out}" in ran.out
    html = out.read_text()
    assert sentence in html
    assert hashlib.sha256(path.read_bytes()).hexdigest() in html
    assert unescape(html).count(shlex.join(["onlooker", "report", str(path), "--out", str(out)])) == 1


def test_json(run, path, tmp_path):
    out = tmp_path / "report.html"
    document = json.loads(run("report", path, "--out", out, "--json").out)
    assert document["diagnosis"]["verdict"] == diagnose(read_log(path)).verdict
    assert document["inputs"] == [
        {
            "file": "log.parquet",
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "size": path.stat().st_size,
        }
    ]
    assert document["fit"]["burn_in"] == document["burn_in_curve"]["start"]
    assert len(document["fit"]["coefficients"]) == 3
    assert document["tracking"]["families"]
    assert out.exists()


def test_the_command_on_the_page_saves_the_policy(run, hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, columns = hostile
    ran = run("report", path, *columns)
    assert ran.code == 0, ran.err
    command, rest = code((tmp_path / "report.html").read_text()).split("\n", 1)
    dollar, onlooker, *words = shlex.split(command)
    assert (dollar, onlooker) == ("$", "onlooker")
    assert run(*words).code == 0
    policy = LinearPolicy.load("policy.json")
    names = {"offers": np.eye(len(policy.theta))}
    exec(rest, names)  # noqa: S102 - what a reader would do
    assert names["position"] == policy.theta.argmax()


def test_each_learner_apart_and_lines_that_save_the_policy_of_one(run, hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, columns = hostile
    ran = run("report", path, *columns, "--by", BY, "--json")
    assert ran.code == 0, ran.err
    html = (tmp_path / "report.html").read_text()
    logs = read_logs(path, BY, round="visit", chosen="bought", arm="arm", features=[SCRIPT, IMAGE, ENDING])
    learners = json.loads(ran.out)["learners"]
    assert {name: one["diagnosis"]["verdict"] for name, one in learners.items()} == {
        name: diagnose(log).verdict for name, log in logs.items()
    }
    assert html.index("The verdicts") < html.index("What the learner values")
    assert not re.search(r"<(script|img|iframe|b)\b", html)
    exec(code(html).partition("\n\nfrom onlooker import LinearPolicy\n")[0], {})  # noqa: S102 - what a reader would do
    assert LinearPolicy.load("policy.json").feature_names == next(iter(logs.values())).feature_names


def test_what_was_said_while_reading_is_on_the_page(run, tmp_path):
    log = tmp_path / "log.csv"
    rng = np.random.default_rng(0)
    rows = [f"{t},{int(a == 0)},{rng.normal():.3f},odd" for t in range(40) for a in range(3)]
    log.write_text("round,chosen,price,shade\n" + "\n".join(rows) + "\n")
    ran = run("report", log, "--out", tmp_path / "report.html")
    assert ran.code == 0, ran.err
    assert "shade" in ran.out
    assert "shade" in (tmp_path / "report.html").read_text()


def test_a_burn_in_and_a_penalty_of_ones_own(run, path, tmp_path):
    out, policy = tmp_path / "r.html", tmp_path / "policy.json"
    ran = run("report", path, "--out", out, "--burn-in", "100", "--l2", "0.01", "--json")
    found = json.loads(ran.out)["fit"]
    assert found["burn_in"] == 100
    assert run("fit", path, "--burn-in", "100", "--l2", "0.01", "--out", policy, "--json").code == 0
    estimates = [one["estimate"] for one in found["coefficients"]]
    np.testing.assert_allclose(estimates, LinearPolicy.load(policy).theta, rtol=1e-12)
    text = unescape(out.read_text(encoding="utf-8"))
    assert "discard 100 rounds, as requested" in text
    assert "--burn-in 100 --l2 0.01" in text


def test_bad_input_writes_nothing(refused, path, tmp_path):
    out = tmp_path / "report.html"
    assert "no-such.parquet" in refused("report", tmp_path / "no-such.parquet", "--out", out)
    assert "folder" in refused("report", path, "--out", tmp_path)
    assert "--round" not in refused("report", path, "--out", out, "--order-by", "time")
    assert list(tmp_path.iterdir()) == []
