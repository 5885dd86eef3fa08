"""Evaluate another policy on a log without propensities: recover them, then SNIPS and doubly robust.

A shop's recommender picked one of 10 offers a visit. The log has the offers, the picks and what they earned, but not
the probabilities of the picks, without which there are no importance weights. `propensities` recovers them from the
picks. Since this shop is simulated, the true probabilities and the new policy's true value are known too.

Run it with `python examples/off_policy.py`. Where obp is installed, its estimators are run on the same numbers.
"""

import warnings

import numpy as np

from onlooker import BanditLog, propensities

ROUNDS, ARMS, FEATURES, EPSILON = 4000, 10, 5, 0.2


def play(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Offers, picks, earnings, the probabilities of all arms, and what each arm is worth on average."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROUNDS, ARMS, FEATURES)) / np.sqrt(FEATURES)
    worth = X @ np.array([1.0, -0.8, 0.6, 0.4, 0.2])
    weights, chosen, earned = np.zeros(FEATURES), np.empty(ROUNDS, dtype=int), np.empty(ROUNDS)
    logged = np.full((ROUNDS, ARMS), EPSILON / ARMS)
    for t in range(ROUNDS):
        # Epsilon-greedy on weights that take a gradient step a round: it never quite settles.
        logged[t, np.argmax(X[t] @ weights)] += 1 - EPSILON
        chosen[t] = rng.choice(ARMS, p=logged[t])
        earned[t] = worth[t, chosen[t]] + 0.3 * rng.normal()
        x = X[t, chosen[t]]
        weights += 0.05 * (earned[t] - x @ weights) * x
    return X, chosen, earned, logged, worth


def snips(weights: np.ndarray, earned: np.ndarray) -> float:
    """Self-normalised inverse propensity score: earnings weighted by how much likelier the new policy's picks are."""
    return float((weights * earned).sum() / weights.sum())


def doubly_robust(
    weights: np.ndarray, earned: np.ndarray, modelled: np.ndarray, chosen: np.ndarray, policy: np.ndarray
) -> float:
    """A model of the earnings, corrected by the weighted error that it makes on the picks."""
    picked = modelled[np.arange(len(chosen)), chosen]
    return float((policy * modelled).sum(axis=1).mean() + snips(weights, earned - picked))


def main() -> None:
    """Estimate with recovered and with true propensities."""
    X, chosen, earned, logged, worth = play()
    log = BanditLog.from_dense(X, chosen)
    found = propensities(log)
    print(found)
    print("overlap:", found.overlap())

    # The new policy: softmax on other weights. Its value is known here, since the shop is simulated.
    scores = np.exp(4.0 * X @ np.array([1.0, -0.5, 0.2, 0.6, 0.0]))
    policy = scores / scores.sum(axis=1, keepdims=True)
    rounds = np.arange(ROUNDS)
    print(f"true value of the new policy  {(policy * worth).sum(axis=1).mean():.3f}")
    print(f"mean earned by the old one    {earned.mean():.3f}")

    picks = X[rounds, chosen]
    modelled = X @ np.linalg.lstsq(picks, earned, rcond=None)[0]
    wanted = policy[rounds, chosen]
    for name, probability in (("recovered", found.chosen), ("true", logged[rounds, chosen])):
        weights = wanted / probability
        robust = doubly_robust(weights, earned, modelled, chosen, policy)
        print(f"{name:>9} propensities: SNIPS {snips(weights, earned):.3f}, doubly robust {robust:.3f}")

    # How far off the estimate may be because the propensities were not logged.
    drawn = [snips(wanted / draw[log.chosen_rows], earned) for draw in found.draws(100)]
    print(f"SNIPS over draws of the propensities: {np.quantile(drawn, 0.05):.3f} to {np.quantile(drawn, 0.95):.3f}")
    with_obp(chosen, earned, found.chosen, policy, modelled)


def with_obp(
    chosen: np.ndarray, earned: np.ndarray, pscore: np.ndarray, policy: np.ndarray, modelled: np.ndarray
) -> None:
    """The same by the Open Bandit Pipeline."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from obp.ope import DoublyRobust, SelfNormalizedInverseProbabilityWeighting
    except ImportError:
        print("obp is not installed: its estimators are left out")
        return
    common = {
        "reward": earned,
        "action": chosen,
        "pscore": pscore,
        "action_dist": policy[:, :, None],
        "position": np.zeros(len(chosen), dtype=int),
    }
    value = SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**common)
    robust = DoublyRobust().estimate_policy_value(**common, estimated_rewards_by_reg_model=modelled[:, :, None])
    print(f"      obp's, recovered: SNIPS {value:.3f}, doubly robust {robust:.3f}")


if __name__ == "__main__":
    main()
