"""The paper's theory as numbers: what an observer's predictive regret cannot exceed, and under which assumption.

Every bound holds with probability at least `1 - delta` for contexts that are drawn independently from one distribution,
features and `theta_star` of length one at most, and at most `n_arms` arms on offer. Bounds are returned as they are:
where they say nothing they exceed `TRIVIAL_REGRET` (or are infinite), so `min(bound, TRIVIAL_REGRET)` always holds.
`docs/bounds.md` has the proofs, and what had to be corrected in the paper's statements.
"""

from onlooker.evaluation.bounds.lemmas import (
    Dimension,
    log_growth,
    natarajan_dimension,
    risk_from_sample,
    uniform_deviation,
)
from onlooker.evaluation.bounds.mistakes import (
    EtaCurve,
    eta_from_gaps,
    eta_from_regret,
    eta_from_simulation,
    reward_gaps,
)
from onlooker.evaluation.bounds.signals import group_confusion, signal_eta, signal_margin, signal_regret_bound
from onlooker.evaluation.bounds.theorems import (
    TRIVIAL_REGRET,
    BestBurnIn,
    any_learner_regret_bound,
    any_learner_risk_bound,
    best_burn_in,
    clean_risk_bound,
    corollary_bound,
    predictive_regret_bound,
    regret_from_risk,
    risk_from_excess,
)

__all__ = [
    "TRIVIAL_REGRET",
    "BestBurnIn",
    "Dimension",
    "EtaCurve",
    "any_learner_regret_bound",
    "any_learner_risk_bound",
    "best_burn_in",
    "clean_risk_bound",
    "corollary_bound",
    "eta_from_gaps",
    "eta_from_regret",
    "eta_from_simulation",
    "group_confusion",
    "log_growth",
    "natarajan_dimension",
    "predictive_regret_bound",
    "regret_from_risk",
    "reward_gaps",
    "risk_from_excess",
    "risk_from_sample",
    "signal_eta",
    "signal_margin",
    "signal_regret_bound",
    "uniform_deviation",
]
