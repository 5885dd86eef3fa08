"""The inverse problem of a learner that updates in batches: its objective, and the solver."""

from onlooker.inverse_batched.objective import BatchedObjective
from onlooker.inverse_batched.solver import Solution, minimise_hinge, minimise_logit

__all__ = ["BatchedObjective", "Solution", "minimise_hinge", "minimise_logit"]
