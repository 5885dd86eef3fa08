"""Checkpoints, and paths that grow."""

import numpy as np

from onlooker.observers.dynamic.path import POINTS, WeightPath, checkpoints_between


def path_of(rounds):
    values = np.zeros((len(rounds), 2))
    return WeightPath(rounds=np.array(rounds), theta=values, standard_error=values)


def test_checkpoints_end_where_the_rounds_do():
    assert checkpoints_between(0, 5, None) == [1, 2, 3, 4, 5]
    assert checkpoints_between(10, 20, [3, 12, 99]) == [12, 20]
    assert len(checkpoints_between(0, 10**6, None)) == POINTS


def test_a_path_of_many_calls_stays_short():
    path = path_of([1])
    for t in range(2, 2000):
        path = path.joined(path_of([t]), None)
    assert len(path.rounds) <= 4 * POINTS
    assert path.rounds[-1] == 1999
    assert (np.diff(path.rounds) > 0).all()
    assert path_of([3, 7]).joined(path_of([9]), [3]).rounds.tolist() == [3, 9]


def test_round_trip():
    path = WeightPath(rounds=np.array([4]), theta=np.array([[0.1, 0.0]]), standard_error=np.array([[0.2, np.nan]]))
    back = WeightPath.from_dict(path.to_dict(), 2)
    np.testing.assert_array_equal(back.standard_error, path.standard_error)
    np.testing.assert_array_equal(back.theta, path.theta)
