"""Write the golden answers that `tests/numerics` holds the package to: `python scripts/make_golden.py`.

Fits, intervals and sweeps come from `tests/numerics/reference.py`, which shares no code with the package: the
definitions in long double. Tracking and diagnosis have no such reference of the same digits; their files hold the
package's own numbers, to notice a change, and say so. Write them anew only after looking at what moved and why.
"""

import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from numerics.reference import (  # noqa: E402  found through the line above
    derivatives,
    linucb_log,
    minimiser,
    model_errors,
    newey_west_errors,
    softmax_log,
)
from onlooker import BanditLog, OnlookerWarning, TrackingObserver, diagnose  # noqa: E402

FOLDER = ROOT / "tests/numerics/golden"
ALPHAS = (0.0, 0.5, 0.75, 0.9, 0.95)
"""Of the sweep."""
INDEPENDENT = "long double by the definitions (tests/numerics/reference.py), which share no code with the package"
OWN = "the package's own numbers, kept to notice a change: no independent reference has the same digits"


def logs() -> dict[str, BanditLog]:
    """The logs that the answers are about, by name."""
    return {
        "softmax": softmax_log(1, 300, (4, 4), [1.0, -0.5, 0.0]),
        "ragged": softmax_log(2, 240, (2, 6), [0.8, -0.6, 0.3, 0.0, 1.2]),
        "linucb": linucb_log(3, 500, 8, [0.6, -0.7, 0.4]),
        "drifting": softmax_log(4, 1200, (5, 5), [1.5, -1.0], late=[-1.0, 1.5]),
        "uniform": softmax_log(5, 600, (3, 5), [0.0, 0.0]),
    }


FITTED = (("softmax", 0.0), ("softmax", 1e-2), ("ragged", 0.0), ("ragged", 1e-4), ("linucb", 1e-4))
"""Log and penalty."""


def rule(n_rounds: int, alpha: float = 0.9) -> int:
    """The paper's burn-in, `N ** alpha` without its fraction."""
    return int(n_rounds**alpha)


@cache
def best(name: str, l2: float, burn_in: int) -> Any:
    """The reference's minimiser on a log without its first rounds."""
    return minimiser(logs()[name].suffix(burn_in), l2)


def fits() -> list[dict[str, Any]]:
    """Minimiser and loss, with all rounds and after the rule's burn-in."""
    known, rows = logs(), []
    for name, l2 in FITTED:
        for burn_in in (0, rule(known[name].n_rounds)):
            suffix, theta = known[name].suffix(burn_in), best(name, l2, burn_in)
            loss = derivatives(suffix, theta, 0.0)[0]
            rows.append({"log": name, "l2": l2, "burn_in": burn_in, "theta": _plain(theta), "loss": float(loss)})
    return rows


def intervals() -> list[dict[str, Any]]:
    """Standard errors of the same fits, robust and by the model; half the width of a 95% interval is 1.96 of them."""
    known, rows = logs(), []
    for name, l2 in FITTED:
        theta = best(name, l2, 0)
        for covariance, errors in (("sandwich", newey_west_errors), ("model", model_errors)):
            found = _plain(errors(known[name], theta, l2))
            rows.append({"log": name, "l2": l2, "covariance": covariance, "standard_errors": found})
    return rows


def sweeps() -> list[dict[str, Any]]:
    """Minimiser and loss after each burn-in; a theta may be off by what a sweep's tolerance allows."""
    known, rows = logs(), []
    for name in ("softmax", "linucb"):
        for alpha in ALPHAS:
            burn_in = rule(known[name].n_rounds, alpha)
            suffix, theta = known[name].suffix(burn_in), best(name, 1e-4, burn_in)
            _, _, hessian = derivatives(suffix, theta, 1e-4)
            row = {"log": name, "alpha": alpha, "theta": _plain(theta), "hessian": [_plain(line) for line in hessian]}
            rows.append({**row, "loss": float(derivatives(suffix, theta, 0.0)[0])})
    return rows


def tracked() -> list[dict[str, Any]]:
    """What tracking makes of three logs."""
    rows = []
    for name in ("linucb", "ragged", "uniform"):
        observer = TrackingObserver().fit(logs()[name])
        rows.append(
            {
                "log": name,
                "exploration": None if observer.exploration_ is None else observer.exploration_.name,
                "strength": None if observer.exploration_ is None else observer.exploration_.strength,
                "evidence": observer.evidence_,
                "theta": _plain(observer.theta_),
                "variances": _plain(observer.covariance_.diagonal()),
                "misfit": observer.misfit_,
                "settled_round": observer.settled_round_,
                "path": [_plain(line) for line in observer.path_.theta],
            }
        )
    return rows


def diagnosed() -> list[dict[str, Any]]:
    """Verdict and figures for every log; the sentences, which repeat the figures rounded, are left out."""
    rows = []
    for name, log in logs().items():
        found = diagnose(log).to_dict()
        rows.append({"log": name, **{key: value for key, value in found.items() if key not in {"sentence", "notes"}}})
    return rows


MAKERS = {
    "fit": (INDEPENDENT, fits),
    "intervals": (INDEPENDENT, intervals),
    "sweep": (INDEPENDENT, sweeps),
    "tracking": (OWN, tracked),
    "diagnose": (OWN, diagnosed),
}
"""By the name of the file: where its numbers come from, and what makes them."""


def document(name: str) -> dict[str, Any]:
    """What the file of this name holds."""
    source, make = MAKERS[name]
    with warnings.catch_warnings():
        # What these logs cannot tell is not the point here.
        warnings.simplefilter("ignore", OnlookerWarning)
        made: dict[str, Any] = json.loads(json.dumps({"source": source, "answers": make()}, allow_nan=False))
    return made


def _plain(values: Any) -> list[float]:
    return [float(value) for value in values]


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for name in MAKERS:
        text = json.dumps(document(name), indent=1, allow_nan=False)
        (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{FOLDER.relative_to(ROOT) / name}.json")


if __name__ == "__main__":
    main()
