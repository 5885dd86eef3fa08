"""Offers in a table without picks: what a policy would do."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from onlooker import BanditLog, InputError, LinearPolicy, SuffixImitation


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "round": np.repeat(np.arange(100), 4),
            "price": rng.normal(size=400),
            "colour": rng.choice(["red", "blue", "green"], size=400),
        }
    )
    liking = -2 * frame.price + (frame.colour == "red") + rng.gumbel(size=400)
    return frame.assign(chosen=(liking == liking.groupby(frame["round"]).transform("max")).astype(int))


@pytest.fixture(scope="module")
def policy(table):
    return SuffixImitation(burn_in=0).fit(BanditLog.from_frame(table)).policy_


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_is_what_a_log_gives(table, policy, kind):
    log, offers = BanditLog.from_frame(table), kind(table.drop(columns="chosen"))
    assert np.allclose(policy.scores(offers), policy.scores(log))
    assert np.allclose(policy.probabilities(offers), policy.probabilities(log))
    assert np.array_equal(policy.choose(offers), policy.choose(log))


def test_rows_in_any_order_keep_their_place(table, policy):
    shuffled = table.sample(frac=1.0, random_state=1)
    found = pd.Series(policy.probabilities(shuffled), index=shuffled.index).sort_index()
    assert np.allclose(found, policy.probabilities(table))


def test_what_if(table, policy):
    before = policy.probabilities(table)
    cheaper = table.assign(price=table.price.where(table.index % 4 != 0, table.price - 1.0))
    after = policy.probabilities(cheaper)
    assert (after[::4] > before[::4]).all()
    assert np.allclose(after.reshape(-1, 4).sum(axis=1), 1.0)


def test_without_rounds_all_rows_are_one(table, policy):
    one = table[:5].drop(columns=["round", "chosen"])
    assert policy.probabilities(one).sum() == pytest.approx(1.0)
    assert policy.choose(one).tolist() == [policy.pick(one)]


def test_contexts_have_all_arms():
    rng = np.random.default_rng(1)
    contexts = pd.DataFrame({"age": rng.normal(size=200), "device": rng.choice(["desk", "phone"], size=200)})
    picks = np.where(contexts.age + rng.normal(size=200) > 0, "a", "b")
    log = BanditLog.from_frame(contexts.assign(arm=picks), context=["age", "device"], arm="arm")
    policy = SuffixImitation(burn_in=0).fit(log).policy_
    assert np.allclose(policy.probabilities(contexts), policy.probabilities(log))
    assert np.array_equal(policy.choose(contexts), policy.choose(log))


def test_one_clear_line(table, policy):
    with pytest.raises(InputError, match="lacks 'price'"):
        policy.scores(table.drop(columns="price"))
    with pytest.raises(InputError, match="no names of features"):
        LinearPolicy([1.0]).scores(table)
    with pytest.raises(InputError, match="no rows"):
        policy.scores(table[:0])
    with pytest.raises(InputError, match="missing"):
        policy.scores(table.assign(price=np.nan))
    with pytest.raises(InputError, match="too large"):
        policy.scores(table.assign(price=1.7e308))
