"""Messy logs on the command line: what is said about them, in the words of the command line."""

import pytest


@pytest.fixture
def csv(tmp_path):
    def write(*lines, name="log.csv"):
        path = tmp_path / name
        path.write_text("\n".join((*lines, "")))
        return path

    return write


def test_outcomes_are_said_to_be_read_past(run, csv, tmp_path):
    path = csv("round,chosen,price,Reward,cost", "1,1,2,0,3", "1,0,3,0,4")
    out = tmp_path / "out.parquet"
    assert "read past: 'Reward', 'cost'" in run("convert", path, out).out
    assert "read past: 'Reward'; 2 features: 'price', 'cost=4'" in run("convert", path, out, "--category", "cost").out
    assert "read past" not in run("convert", path, out, "--feature", "price").out
