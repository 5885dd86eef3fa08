"""The benchmark of fits with many weights runs, and on a small scale no estimate is far behind."""

import many_weights
import pytest


@pytest.mark.parametrize("hard", [False, True])
def test_contexts_end_no_higher_than_scikit_learn(hard):
    row = many_weights.beside_scikit_learn(800, 5, 4, hard=hard, repeats=1)
    assert float(row[-1]) > -1e-8


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_sparse_rows_end_no_higher_than_scipy():
    row = many_weights.beside_scipy(3500, 1, 400)
    assert float(row[-1]) > -1e-8


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_a_fit_takes_little_more_than_its_contexts():
    """Twice the contexts and 64 MB at most: here of 8 MB, so that the rest counts."""
    import tracemalloc

    from onlooker import BanditLog, SuffixImitation

    X, chosen = many_weights.contexts(20_000, 20, 50, hard=False)
    tracemalloc.start()
    SuffixImitation(burn_in="naive").fit(BanditLog.from_contexts(X, chosen, arms=range(20)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * X.nbytes + (64 << 20)
