"""What state a learner is in, from its picks alone: settled, exploring, drifting, or without any preference.

How the verdict is reached, in this order:

1. *Not enough evidence*: fewer rounds with a choice than 20 for every direction of theta, or fewer than 100. Rounds
   whose arms have the same features offer no choice; features in unusual units are brought to usual ones (`choices`).
2. *No preference found*: score tests do not reject uniformly random picks (`preference`).
3. *Drifting*: in some bin the past predicts the picks better than what comes after, by more than a tenth (`change`),
   and not because later rounds do not identify the weights (`common`).
4. *Not enough evidence*: the final policy, that of the last 30%, does not predict picks better than random guessing.
5. *Settled from the start*: the final policy fits the whole log as well as its end (`settling`).
6. *Settled since about round T*: from T on it fits as well as at the end, to within a tenth, and that is at least half
   of the log, or 30% of it where the final policy took over at once; else *still exploring*.

So *settled* is meant operationally. The estimate of a learner such as LinUCB moves for ever, like the square root of
1/t; it counts as settled where moving on changes less than a tenth of what one fixed policy predicts. Random
picks at a constant rate do not count against it.

Four constants were chosen by looking at simulated logs, on other seeds than `benchmarks/calibration.py` measures by
default: a tenth (`settling.MATERIAL`), half of the log (`verdict.LONGEST`), what counts as taking over at once
(`Settling.abrupt`), and how much a single round may say about where a change lies (`change.MOST_EVIDENCE`).
"""

from onlooker.diagnosis.bins import Bin, Estimate
from onlooker.diagnosis.result import Block, Diagnosis, RoundEstimate, Test
from onlooker.diagnosis.verdict import diagnose

__all__ = ["Bin", "Block", "Diagnosis", "Estimate", "RoundEstimate", "Test", "diagnose"]
