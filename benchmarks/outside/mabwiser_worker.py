"""mabwiser at work in an environment of its own: `python -m outside.mabwiser_worker OFFERS POLICY SEED OUT`.

It keeps a ridge model for every arm and gets one context a round; random picks are ours, so that their share is known.
"""

from __future__ import annotations

import sys

import numpy as np
from mabwiser.mab import MAB, LearningPolicy

POLICIES = {
    "greedy": (LearningPolicy.LinGreedy(epsilon=0.0), 0.1),
    "ucb": (LearningPolicy.LinUCB(alpha=0.1), 0.0),
    "ts": (LearningPolicy.LinTS(alpha=0.1), 0.0),
}


def main(offers: str, policy: str, seed: str, out: str) -> None:
    given = np.load(offers)
    contexts, worth = given["contexts"].astype(np.float64), given["worth"]
    n_rounds, n_arms = worth.shape
    kind, random = POLICIES[policy]
    learner = MAB(list(range(n_arms)), kind, seed=int(seed))
    learner.fit([0], worth[:1, 0], contexts[:1])
    source = np.random.default_rng(int(seed))
    chosen, propensities = np.empty(n_rounds, dtype=np.int64), np.full((n_rounds, n_arms), random / n_arms)
    for t in range(n_rounds):
        values = learner.predict_expectations(contexts[t : t + 1])
        propensities[t, max(values, key=values.get)] += 1.0 - random
        pick = chosen[t] = source.choice(n_arms, p=propensities[t])
        learner.partial_fit([pick], worth[t, pick : pick + 1], contexts[t : t + 1])
    # What it has learned of each arm, for the policy that it would follow without exploring.
    theta = np.array([learner._imp.arm_to_model[arm].beta for arm in range(n_arms)])  # noqa: SLF001  it has no name
    # An exploration bonus is small by then: its best arm is the greedy one in all but a few contexts.
    known = [learner.predict_expectations(context[None]) for context in given["fresh"].astype(np.float64)]
    greedy = [max(values, key=values.get) for values in known]
    np.savez(out, chosen=chosen, propensities=propensities, greedy=greedy, theta=theta)


if __name__ == "__main__":
    main(*sys.argv[1:])
