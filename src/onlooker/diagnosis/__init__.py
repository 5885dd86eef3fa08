"""What a learner values over time, and how it picks, from its picks alone.

*What it values* is the direction of the weights. How the state is found, in this order:

1. *Not enough evidence*: fewer rounds with a choice than 20 for every direction of theta, or fewer than 100. Rounds
   whose arms have the same features offer no choice; features in unusual units are brought to usual ones (`findings`).
2. *No preference*: score tests do not reject uniformly random picks (`findings`), or positions explain more than twice
   what features do and score tests do not reject that positions alone decide (`evenness`).
3. *Moving*: in the last half, since the last change, rounds follow those shortly before them more than any fixed policy
   explains, and following them would predict picks better by at least 0.5% (`movement`).
   Nor may it be so between changes: if no policy explains the last three quarters of such a part, it is *moving* too.
4. *Changed*: no one policy explains all rounds, and at some round the step ahead was larger than the step behind it:
   what had been learned was given up, at a cost of at least a tenth of what a policy predicts, or of a fiftieth where
   that is clear (`movement`).
5. *Not enough evidence*: the policy of the last 30% does not predict picks better than random guessing.
6. *Stable from the start*: that policy fits the whole log as well as its end, or one policy may have made all picks and
   fits the early ones at least half as well as the late ones (`predictability`).
7. *Stable since about round T*: from T on it fits as well as at the end, to within a tenth, and that is at least half
   of the log, or 30% of it where the policy took over at once; else *moving*: the learner was learning until then.

*How it picks*: the share of picks now that are not the best guess, with an interval and a trend (`picking`). Random
picks, habits of position and decisiveness are estimated part by part (`stretches`), so that a learner that explores
more than before is not taken for one that changed its mind.

Tests compare what a model expects with what follows, given everything before. So they hold whatever is on offer:
outlying arms, offers that move slowly, few arms. `benchmarks/diagnosis.py` measures how often they are wrong.
"""

from onlooker.diagnosis.picking import Exploration
from onlooker.diagnosis.predictability import Bin, Estimate
from onlooker.diagnosis.result import Block, Diagnosis, RoundEstimate, Test, Values
from onlooker.diagnosis.verdict import diagnose

__all__ = ["Bin", "Block", "Diagnosis", "Estimate", "Exploration", "RoundEstimate", "Test", "Values", "diagnose"]
