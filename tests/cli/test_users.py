"""`--users`: what describes a round's user stands in a table of its own."""

import pytest

LOG = ["--offered", "offered", "--arm", "bought", "--context", "age", "--burn-in", "naive"]


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{t % 7},a|b,{'ab'[t % 3 == t % 7 % 2]}" for t in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["user,offered,bought", *rows]) + "\n")
    (tmp_path / "users.csv").write_text("user,age\n" + "".join(f"u{k},{k / 2}\n" for k in range(7)))
    return tmp_path


def test_joined(run):
    found = run("fit", "log.csv", "--users", "users.csv", *LOG)
    assert found.code == 0, found.err
    assert "users from 'user'" in found.out
    assert found.out.count("a ") >= 1
    limited = run("fit", "log.csv", "--users", "users.csv", *LOG, "--memory-limit", "16GB")
    assert limited.code == 0, limited.err


def test_one_line_in_the_words_of_the_command_line(run):
    wrong = run("fit", "log.csv", "--users", "users.csv", "--user", "nobody", *LOG)
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "--user" in wrong.err
    alone = run("fit", "log.csv", "--user", "user", *LOG)
    assert (alone.code, alone.err.count("\n")) == (2, 1)
    assert "--users" in alone.err


def test_an_address_with_a_secret_is_not_shown(run):
    found = run("fit", "log.csv", "--users", "postgres://me:s3cr3t@127.0.0.1:1/db", *LOG)
    assert found.code == 2
    assert "s3cr3t" not in found.out + found.err
