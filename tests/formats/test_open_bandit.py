"""The Open Bandit Dataset: its folder, and what is known about its two logs of women's fashion."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from onlooker import InputError, SuffixImitation, read_log
from onlooker.base.errors import ColumnsLeftOutWarning, NoPreferenceWarning, UnseenCategoryWarning
from onlooker.imitation.fit_warnings import likelihood_ratio


@pytest.fixture(scope="module")
def logs():
    folder = Path(__file__).parent.parent / "data" / "obd"
    with pytest.warns(ColumnsLeftOutWarning, match="only subdivides another category.*'item_feature_2'"):
        return {policy: read_log(folder / policy / "women") for policy in ("random", "bts")}


def maximum_likelihood(log, **settings):
    return SuffixImitation(burn_in="naive", l2=0.0, **settings).fit(log)


def test_every_item_is_on_offer(logs):
    for log in logs.values():
        assert (log.n_rounds, log.n_features) == (10_000, 17)
        assert set(log.n_arms.tolist()) == {46}
        assert log.arm_ids[:46].tolist() == list(range(46))
        assert {column: len(levels) for column, levels in log.categories.items()} == {
            "item_feature_1": 10,
            "item_feature_3": 7,
        }
        assert log.feature_names[0] == "item_feature_0"
        assert log.feature_names[-1] == "user-item_affinity"


def test_the_uniform_log_shows_no_preference(logs):
    with pytest.warns(NoPreferenceWarning, match=r"likelihood ratio 12\.1 on 17 degrees of freedom, p = 0\.80"):
        fit = maximum_likelihood(logs["random"])
    ratio, p = likelihood_ratio(fit.log_likelihood_, fit.null_log_likelihood_, fit.rank_)
    assert ratio == pytest.approx(12.07, abs=0.005)
    assert fit.rank_ == 17
    assert p == pytest.approx(0.80, abs=0.005)
    assert p == pytest.approx(chi2.sf(ratio, 17))


def test_the_thompson_log_prefers_items_whoever_the_user_is(logs):
    log = logs["bts"]
    fit = maximum_likelihood(log, covariance="model")
    ratio, p = likelihood_ratio(fit.log_likelihood_, fit.null_log_likelihood_, fit.rank_)
    assert round(ratio) == 5180
    assert fit.rank_ == 17
    assert p == 0
    affinity = log.feature_names.index("user-item_affinity")
    assert fit.theta_[affinity] / np.sqrt(fit.covariance_[affinity, affinity]) == pytest.approx(0.57, abs=0.005)
    sandwich = maximum_likelihood(log)
    assert abs(sandwich.theta_[affinity]) < 1.96 * np.sqrt(sandwich.covariance_[affinity, affinity])


def test_the_finer_category_takes_the_place_of_the_coarser(data_folder):
    features = ["item_feature_0", "item_feature_1", "item_feature_2", "user-item_affinity"]
    fine = read_log(data_folder / "obd" / "random" / "women", features=features)
    assert fine.n_features == 25
    with pytest.warns(NoPreferenceWarning):
        assert maximum_likelihood(fine).rank_ == 25


ITEMS = "item_id,item_feature_0,item_feature_1,item_feature_2\n7,0.5,x,p\n03,-1.5,y,q\n9,2,x,q\n"
LOG = (
    ",timestamp,item_id,position,click,propensity_score,user_feature_0,"
    "user-item_affinity_7,user-item_affinity_03,user-item_affinity_9\n"
    "0,2019-11-24 00:02:00+00:00,9,1,0,0.3,a,0.25,0.5,1\n"
    "1,2019-11-24 00:01:00+00:00,03,2,1,0.3,a,2,0,0\n"
    "2,2019-11-24 00:03:00+00:00,7,1,0,,b,0,0,3\n"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "men").mkdir()
    (tmp_path / "men" / "item_context.csv").write_text(ITEMS)
    (tmp_path / "men" / "men.csv").write_text(LOG)
    return tmp_path / "men"


EXPECTED = [
    [[0.5, 0, 0, 0.25], [-1.5, 1, 1, 0.5], [2, 0, 1, 1]],
    [[0.5, 0, 0, 2], [-1.5, 1, 1, 0], [2, 0, 1, 0]],
    [[0.5, 0, 0, 0], [-1.5, 1, 1, 0], [2, 0, 1, 3]],
]


def test_a_folder_built_from_known_numbers(folder):
    log = read_log(folder)
    assert log.feature_names == ("item_feature_0", "item_feature_1=y", "item_feature_2=q", "user-item_affinity")
    assert log.features.reshape(3, 3, 4).tolist() == EXPECTED
    assert log.chosen.tolist() == [2, 1, 0]
    assert log.arm_ids.tolist() == ["7", "03", "9"] * 3
    assert dict(log.categories) == {"item_feature_1": ("x", "y"), "item_feature_2": ("p", "q")}


def test_the_log_itself_may_be_named_and_compressed(folder):
    whole = read_log(folder)
    assert np.array_equal(read_log(folder / "men.csv").features, whole.features)
    (folder / "men.csv.gz").write_bytes(gzip.compress((folder / "men.csv").read_bytes()))
    (folder / "men.csv").unlink()
    for path in (folder, folder / "men.csv.gz"):
        assert np.array_equal(read_log(path).features, whole.features)


def test_options(folder):
    assert read_log(folder, order_by="timestamp").chosen.tolist() == [1, 2, 0]
    assert read_log(folder, position=1).chosen.tolist() == [2, 0]
    assert read_log(folder, position=2).features.tolist() == EXPECTED[1]
    some = read_log(folder, features=["user-item_affinity", "item_feature_1"])
    assert some.feature_names == ("user-item_affinity", "item_feature_1=y")
    assert dict(some.categories) == {"item_feature_1": ("x", "y")}
    for options, message in [
        ({"position": 5}, "men.csv: has no rounds of position 5"),
        ({"order_by": "user_feature_0"}, "men.csv: column 'user_feature_0' holds string, not times"),
        ({"order_by": "time"}, "did you mean 'timestamp'"),
        ({"features": ["user_feature_0"]}, "men.csv: .*no column 'user_feature_0'"),
        ({"cross": True}, "Open Bandit Dataset has no option 'cross'"),
    ]:
        with pytest.raises(InputError, match=message):
            read_log(folder, **options)


def test_encoded_like_an_earlier_log(folder):
    earlier = read_log(folder)
    items = (folder / "item_context.csv").read_text()
    (folder / "item_context.csv").write_text(items.replace("7,0.5,x,p", "7,0.5,a,p"))
    with pytest.warns(UnseenCategoryWarning, match="'item_feature_1=a'"):
        later = read_log(folder, like=earlier)
    # The new label sorts before the old reference, and still all others are encoded as they were.
    assert later.feature_names == earlier.feature_names
    assert later.categories == earlier.categories
    assert np.array_equal(later.features, earlier.features)
    (folder / "men.csv").write_text("item_id\n7\n9\n")
    with pytest.raises(InputError, match="no column 'user-item_affinity'"):
        read_log(folder, like=earlier)
    with pytest.raises(InputError, match="'features' and 'like'"):
        read_log(folder, like=earlier, features=["item_feature_0"])


def test_a_log_without_affinities(folder):
    (folder / "men.csv").write_text("item_id\n7\n9\n")
    assert read_log(folder).feature_names == ("item_feature_0", "item_feature_1=y", "item_feature_2=q")


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("item_context.csv", "item_id", "item", "item_context.csv: the table has no column 'item_id'"),
        ("item_context.csv", "03,-1.5", "7,-1.5", "item_context.csv: has item '7' twice"),
        ("item_context.csv", "-1.5", "", "item_context.csv: column 'item_feature_0', line 3 is missing"),
        ("item_context.csv", "-1.5", "much", "item_context.csv: cannot be read as CSV"),
        ("item_context.csv", "y,q", ",q", "item_context.csv: column 'item_feature_1', line 3 is missing"),
        ("item_context.csv", ITEMS.partition("\n")[2], "", "item_context.csv: has no items"),
        ("men.csv", ",03,2", ",3,2", "men.csv: line 3 recommends item '3', which item_context.csv does not list"),
        ("men.csv", ",03,2", ",,2", "men.csv: line 3 recommends item '', which"),
        ("men.csv", "item_id", "item", "men.csv: the table has no column 'item_id'"),
        ("men.csv", "affinity_03", "affinity_04", "men.csv: .*no column 'user-item_affinity_03'"),
        ("men.csv", "0.25,0.5", "0.25,", "men.csv: column 'user-item_affinity_03', line 2 is missing"),
        ("men.csv", "0.25,0.5", "0.25,nan", "men.csv: column 'user-item_affinity_03', line 2 is missing"),
        ("men.csv", "0.25,0.5", "0.25,inf", "feature 'user-item_affinity' is inf"),
        ("men.csv", "0.25,0.5", "0.25", "men.csv: cannot be read as CSV"),
        ("men.csv", LOG.partition("\n")[2], "", "men.csv: has no rounds"),
    ],
)
def test_damaged_folders(folder, file, old, new, message):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        read_log(folder)
    assert str(caught.value).startswith(f"{folder}: ")
    assert "\n" not in str(caught.value)


def test_which_file_is_the_log(folder):
    (folder / "other.csv").write_text("a\n1\n")
    assert read_log(folder).n_rounds == 3
    (folder / "men.csv").rename(folder / "women.csv")
    with pytest.raises(InputError, match=r"called men.csv or .csv.gz \(found: other.csv, women.csv\)"):
        read_log(folder)
    (folder / "other.csv").unlink()
    assert read_log(folder).n_rounds == 3
    (folder / "women.csv").unlink()
    with pytest.raises(InputError, match="found: none"):
        read_log(folder)


def test_auto_keeps_a_policy_that_was_trained_before(logs):
    """There is no burn-in to discard: the sampler had been running for a month."""
    observer = SuffixImitation(burn_in="auto").fit(logs["bts"])
    assert observer.burn_in_ <= 0.2 * 10_000
