"""Yahoo's front page log."""

import gzip

import numpy as np
import pytest

from onlooker import InputError, read_log
from onlooker.base.errors import SkippedLinesWarning


def visit(user, articles, shown, *, time=1241160900, click=0):
    """A line of the log; `user` and each article are six numbers, of which the first is written last."""

    def described(name, numbers):
        return " ".join([f"|{name}", *(f"{k + 1}:{numbers[k]:.6f}" for k in (1, 2, 3, 4, 5, 0))])

    parts = [described("user", user), *(described(name, numbers) for name, numbers in articles.items())]
    return " ".join([str(time), shown, str(click), *parts])


@pytest.fixture
def drawn():
    """Some visits, as numbers and as lines."""
    rng = np.random.default_rng(0)
    visits = []
    for t in range(40):
        names = [str(109500 + k) for k in rng.choice(30, rng.integers(1, 6), replace=False)]
        articles = {name: [1.0, *rng.random(5).round(6)] for name in names}
        visits.append(([1.0, *rng.random(5).round(6)], articles, names[rng.integers(len(names))], 1241160900 + t))
    lines = [visit(user, articles, shown, time=time, click=time % 2) for user, articles, shown, time in visits]
    return visits, lines


@pytest.mark.parametrize("name", ["day.txt", "day.dat", "ydata-fp-td-clicks-v1_0.20090501.gz", "day.txt.gz"])
def test_read_back(tmp_path, drawn, name):
    visits, lines = drawn
    text = "\n".join(lines).encode() + b"\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    log = read_log(tmp_path / name)
    rows = [numbers for _, articles, _, _ in visits for numbers in articles.values()]
    assert log.features.tolist() == rows
    assert log.n_arms.tolist() == [len(articles) for _, articles, _, _ in visits]
    assert log.chosen.tolist() == [list(articles).index(shown) for _, articles, shown, _ in visits]
    assert log.arm_ids.tolist() == [name for _, articles, _, _ in visits for name in articles]
    assert log.feature_names == ("1", "2", "3", "4", "5", "6")


def test_crossed_with_the_user(tmp_path, drawn):
    visits, lines = drawn
    (tmp_path / "day.txt").write_text("\n".join(lines))
    log = read_log(tmp_path / "day.txt", cross=True)
    rows = [np.outer(user, numbers).ravel() for user, articles, _, _ in visits for numbers in articles.values()]
    assert np.array_equal(log.features, rows)
    assert len(log.feature_names) == 36
    assert log.feature_names[8] == "user^2 x 3"
    some = read_log(tmp_path / "day.txt", cross=True, features=["user^2 x 3", "user^1 x 1"])
    assert np.array_equal(some.features, np.array(rows)[:, [8, 0]])


def test_malformed_lines_are_counted(tmp_path, drawn):
    _, lines = drawn
    cut, absent = lines[3].rsplit(" ", 2)[0], lines[5].split(" ")
    absent[1] = "999"
    (tmp_path / "day.txt").write_text("\n".join([*lines[:10], cut, " ".join(absent), *lines[10:]]))
    with pytest.warns(SkippedLinesWarning, match="2 of 42 lines are malformed"):
        log = read_log(tmp_path / "day.txt")
    assert log.n_rounds == 40


def test_options(tmp_path, drawn):
    (tmp_path / "day.txt").write_text(drawn[1][0])
    with pytest.raises(InputError, match="option 'cross' is 1"):
        read_log(tmp_path / "day.txt", cross=1)
    with pytest.raises(InputError, match="has no column '7'"):
        read_log(tmp_path / "day.txt", features=["7"])
