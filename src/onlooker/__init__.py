"""Recover what a bandit learned, from its actions alone.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from onlooker.burn_in import FixedStart as FixedStart
    from onlooker.burn_in import Fraction as Fraction
    from onlooker.burn_in import PowerRule as PowerRule
    from onlooker.clusters import RayParts as RayParts
    from onlooker.comparison import Comparison as Comparison
    from onlooker.comparison import compare as compare
    from onlooker.diagnosis import Diagnosis as Diagnosis
    from onlooker.diagnosis import diagnose as diagnose
    from onlooker.environment import Environment as Environment
    from onlooker.errors import ClusterError as ClusterError
    from onlooker.errors import InputError as InputError
    from onlooker.errors import NotFittedError as NotFittedError
    from onlooker.errors import OnlookerError as OnlookerError
    from onlooker.errors import OnlookerWarning as OnlookerWarning
    from onlooker.formats import LogScan as LogScan
    from onlooker.formats import read_log as read_log
    from onlooker.formats import read_logs as read_logs
    from onlooker.formats import scan_log as scan_log
    from onlooker.formats import write_log as write_log
    from onlooker.formats.obp import read_obp as read_obp
    from onlooker.held_out import HeldOut as HeldOut
    from onlooker.learners import OFUL as OFUL
    from onlooker.learners import Boltzmann as Boltzmann
    from onlooker.learners import EpsilonGreedy as EpsilonGreedy
    from onlooker.learners import ExploreThenCommit as ExploreThenCommit
    from onlooker.learners import Learner as Learner
    from onlooker.learners import LinTS as LinTS
    from onlooker.learners import LinUCB as LinUCB
    from onlooker.learners import UniformRandom as UniformRandom
    from onlooker.log import BanditLog as BanditLog
    from onlooker.log_report import report_page as report_page
    from onlooker.log_report import write_report as write_report
    from onlooker.metrics import agreement as agreement
    from onlooker.metrics import direction_error as direction_error
    from onlooker.metrics import predictive_regret as predictive_regret
    from onlooker.observers import IBCB as IBCB
    from onlooker.observers import BayesianICB as BayesianICB
    from onlooker.observers import BlockImitation as BlockImitation
    from onlooker.observers import ChangePointImitation as ChangePointImitation
    from onlooker.observers import NonparametricICB as NonparametricICB
    from onlooker.observers import RankedBlocks as RankedBlocks
    from onlooker.observers import SuffixImitation as SuffixImitation
    from onlooker.observers import TrackingObserver as TrackingObserver
    from onlooker.policy import LinearPolicy as LinearPolicy
    from onlooker.score_models import Linear as Linear
    from onlooker.score_models import Products as Products
    from onlooker.score_models import ProductsPolicy as ProductsPolicy
    from onlooker.simulation import Simulation as Simulation
    from onlooker.simulation import simulate as simulate
    from onlooker.simulation import simulate_many as simulate_many
    from onlooker.sweep import BurnInSweep as BurnInSweep
    from onlooker.sweep import burn_in_sweep as burn_in_sweep
    from onlooker.tracking import TS as TS
    from onlooker.tracking import UCB as UCB
    from onlooker.tracking import Lapse as Lapse
    from onlooker.tracking import Softmax as Softmax

_HOMES = {
    "burn_in": ("FixedStart", "Fraction", "PowerRule"),
    "clusters": ("RayParts",),
    "comparison": ("Comparison", "compare"),
    "diagnosis": ("Diagnosis", "diagnose"),
    "environment": ("Environment",),
    "errors": ("ClusterError", "InputError", "NotFittedError", "OnlookerError", "OnlookerWarning"),
    "formats": ("LogScan", "read_log", "read_logs", "scan_log", "write_log"),
    "formats.obp": ("read_obp",),
    "held_out": ("HeldOut",),
    "learners": (
        "OFUL",
        "Boltzmann",
        "EpsilonGreedy",
        "ExploreThenCommit",
        "Learner",
        "LinTS",
        "LinUCB",
        "UniformRandom",
    ),
    "log": ("BanditLog",),
    "log_report": ("report_page", "write_report"),
    "metrics": ("agreement", "direction_error", "predictive_regret"),
    "observers": (
        "IBCB",
        "BlockImitation",
        "ChangePointImitation",
        "RankedBlocks",
        "BayesianICB",
        "NonparametricICB",
        "SuffixImitation",
        "TrackingObserver",
    ),
    "policy": ("LinearPolicy",),
    "score_models": ("Linear", "Products", "ProductsPolicy"),
    "simulation": ("Simulation", "simulate", "simulate_many"),
    "sweep": ("BurnInSweep", "burn_in_sweep"),
    "tracking": ("TS", "UCB", "Lapse", "Softmax"),
}
"""Which module each public name lives in."""

_MODULES = ("bounds",)
"""Modules that are used by their own name, as in `onlooker.bounds.predictive_regret_bound`."""

_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605  the list is made from the table above


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
