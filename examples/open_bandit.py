"""Ask what Thompson sampling at a fashion shop values.

ZOZOTOWN let two policies recommend 46 items of women's fashion in the same week of November 2019: one picked uniformly
at random, one by Bernoulli Thompson sampling, which had learned for a month before. Their logs are part of the Open
Bandit Dataset. Here they are read without clicks and propensities, and what each policy values is recovered.

Run it with `python examples/open_bandit.py [FOLDER]`; the folder holds `random/women` and `bts/women`.
"""

import sys
import warnings
from math import exp
from pathlib import Path

import numpy as np

from onlooker import BanditLog, OnlookerWarning, SuffixImitation, read_log

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "obd"
AFFINITY = "user-item_affinity"


def describe_uniform(log: BanditLog) -> None:
    """Print the control: in picks at random, nothing should be found."""
    found = SuffixImitation(burn_in="naive", l2=0.0).fit(log).summary()
    verdict = "no preference found" if found.p_value > 0.05 else "a preference found, which should not be there"
    print(f"Uniform policy, {log.n_rounds:,} recommendations among {log.n_arms[0]} items: {verdict}")
    print(f"  (likelihood ratio against picks at random {found.likelihood_ratio:.1f}, p = {found.p_value:.2f}).")


def describe_thompson(log: BanditLog) -> None:
    """Print how strong the learner's preference is, what it rests on, and what it does not rest on."""
    found = SuffixImitation(burn_in="naive", l2=0.0).fit(log).summary()
    strength = "a preference found" if found.p_value < 0.05 else "no preference found"
    print(f"Thompson sampling, {log.n_rounds:,} recommendations among {log.n_arms[0]} items: {strength}")
    chance = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.3f}"
    print(f"  (likelihood ratio {found.likelihood_ratio:,.0f}, {chance}).")

    shares = np.sort(np.bincount(log.chosen, minlength=log.n_arms[0]))[::-1] / log.n_rounds
    half = 1 + int(np.searchsorted(np.cumsum(shares), 0.5))
    print(f"  Half of the recommendations go to {half} items; the favourite gets {shares[0]:.0%},")
    print(f"  where picks at random would give it {1 / log.n_arms[0]:.1%}.")

    *items, affinity = found.coefficients
    assert affinity.name == AFFINITY
    print("  Other things being equal, what raises an item's odds most:")
    for c in sorted((c for c in items if c.low > 0), key=lambda c: -c.estimate)[:3]:
        print(f"    {_in_words(c.name, log):<58} x {exp(c.estimate):4.1f}  ({exp(c.low):.1f} to {exp(c.high):.1f})")
    ignored = affinity.low < 0 < affinity.high
    print(f"  The user's affinity to the item: x {exp(affinity.low):.2f} to {exp(affinity.high):.2f} for one unit,")
    print(f"  z = {affinity.z:.2f}: {'no sign that it looks' if ignored else 'it looks'} at the user.")


def _in_words(name: str, log: BanditLog) -> str:
    """What a feature stands for; labels are hashes, of which a few letters do."""
    column, _, label = name.partition("=")
    if not label:
        return f"one unit more of {column}"
    return f"{column} being {label[:6]}... and not {log.categories[column][0][:6]}..."


def main() -> None:
    """Describe both logs."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    with warnings.catch_warnings():
        # The page says in words what they would: no preference; and a label that subdivides another is left out.
        warnings.simplefilter("ignore", OnlookerWarning)
        describe_uniform(read_log(folder / "random" / "women"))
        describe_thompson(read_log(folder / "bts" / "women"))


if __name__ == "__main__":
    main()
