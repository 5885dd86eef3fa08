"""Algorithm 1 itself: the linear policy that misses the fewest picks, by search, or exactly where a log is small."""

from onlooker.imitation.zero_one.circles import ZeroOneFit, count_misses
from onlooker.imitation.zero_one.exact import exact_minimum
from onlooker.imitation.zero_one.search import fewest_misses

__all__ = ["ZeroOneFit", "count_misses", "exact_minimum", "fewest_misses"]
