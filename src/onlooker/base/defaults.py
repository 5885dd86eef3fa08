"""Default parameters of estimators and commands."""

from __future__ import annotations

L2 = 1e-4
"""Penalty on the mean loss, `l2/2 |theta|^2`: the paper's. It keeps theta finite where one explains every pick."""

BURN_IN = "auto"
"""Where imitation starts: by held-out picks. The paper's rule is `"rule"`."""
