"""Move a shop's assistant to a new system when nobody kept its rewards.

The old system shows one of several offers to every visitor, learns from sales by Thompson sampling, and logs what it
could have shown and what it showed: a plain CSV file with prices, ratings and colours. Its sales figures are gone. Here
the policy is recovered from that file, saved as JSON, loaded where there is no log at all, and asked about new offers.

Run it with `python examples/migration.py [FOLDER]`; the files are kept in the folder, by default a temporary one.
"""

import csv
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from onlooker import LinearPolicy, LinTS, SuffixImitation, TrackingObserver, read_log
from onlooker.simulation.ridge import Player

COLOURS = ("black", "green", "red")
WORTH = {"price": -0.6, "rating": 0.5, "green": -0.2, "red": 0.3}
"""What a sale is worth to the old system, which the new one is not told."""


def offers(random: np.random.Generator) -> list[dict[str, object]]:
    """Three to eight items that could be shown to one visitor."""
    return [
        {
            "sku": f"{random.integers(100_000):05d}",
            "price": round(float(random.uniform(0, 1)), 2),
            "rating": round(float(random.uniform(0, 1)), 1),
            "colour": str(random.choice(COLOURS)),
        }
        for _ in range(random.integers(3, 9))
    ]


def as_features(items: list[dict[str, object]]) -> np.ndarray:
    """The items as the old system sees them."""
    return np.array([[i["price"], i["rating"], i["colour"] == "green", i["colour"] == "red"] for i in items], float)


def run_old_system(path: Path, n_visits: int, seed: int) -> Player:
    """Let the old system learn, and write its log: no sales in it. Give the learner."""
    random = np.random.default_rng(seed)
    worth = np.array(list(WORTH.values()))
    player = LinTS().start(random, n_features=4, noise=0.1)
    with path.open("w", newline="") as file:
        log = csv.DictWriter(file, ["visit", "sku", "shown", "price", "rating", "colour"])
        log.writeheader()
        for visit in range(n_visits):
            items = offers(random)
            features = as_features(items)
            shown = player.choose(features)
            player.update(features[shown], reward=float(features[shown] @ worth + 0.1 * random.normal()))
            log.writerows({"visit": f"v{visit:05d}", "shown": int(k == shown)} | item for k, item in enumerate(items))
    return player


def migrate(log_path: Path, policy_path: Path) -> None:
    """Recover the policy from the log alone, and save it."""
    log = read_log(log_path, round="visit", chosen="shown", arm="sku")
    print(f"The log: {log!r}; features {', '.join(log.feature_names or ())}.")
    print(SuffixImitation(burn_in="auto", l2=0.0).fit(log).summary())
    tracking = TrackingObserver().fit(log)
    print("\n".join(tracking.summary().words))
    tracking.policy_.save(policy_path)


def judge(policy: LinearPolicy, player: Player, seed: int, n_visits: int = 2000) -> tuple[float, float]:
    """Share of new visits where the new system shows what the old one thinks best, and the worth that it misses."""
    random = np.random.default_rng(seed)
    worth = np.array(list(WORTH.values()))
    same, missed = 0, 0.0
    for _ in range(n_visits):
        items = offers(random)
        features = as_features(items)
        shown = policy.pick(pa.Table.from_pylist(items))
        same += shown == int(np.argmax(features @ player.theta))
        missed += float((features @ worth).max() - features[shown] @ worth)
    return same / n_visits, missed / n_visits


def main(folder: Path) -> None:
    """Run the old system, move, and compare."""
    player = run_old_system(folder / "visits.csv", n_visits=3000, seed=1)
    migrate(folder / "visits.csv", folder / "policy.json")
    policy = LinearPolicy.load(folder / "policy.json")
    same, missed = judge(policy, player, seed=2)
    print(f"On 2,000 new visits the new system shows what the old one thinks best in {same:.1%} of them;")
    print(f"it misses {missed:.5f} in worth a visit.")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as temporary:
            main(Path(temporary))
