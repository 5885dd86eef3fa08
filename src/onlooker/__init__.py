"""Recover what a bandit learned, from its actions alone.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from onlooker.base.notebook import Drawing, drawn_by
from onlooker.base.version import __version__ as __version__

if TYPE_CHECKING:
    from onlooker.base.errors import ClusterError as ClusterError
    from onlooker.base.errors import InputError as InputError
    from onlooker.base.errors import NotFittedError as NotFittedError
    from onlooker.base.errors import OnlookerError as OnlookerError
    from onlooker.base.errors import OnlookerWarning as OnlookerWarning
    from onlooker.clusters import RayParts as RayParts
    from onlooker.diagnosis import Diagnosis as Diagnosis
    from onlooker.diagnosis import diagnose as diagnose
    from onlooker.evaluation.comparison import Comparison as Comparison
    from onlooker.evaluation.comparison import compare as compare
    from onlooker.evaluation.metrics import agreement as agreement
    from onlooker.evaluation.metrics import direction_error as direction_error
    from onlooker.evaluation.metrics import information_share as information_share
    from onlooker.evaluation.metrics import predictive_regret as predictive_regret
    from onlooker.evaluation.propensities import Propensities as Propensities
    from onlooker.evaluation.propensities import propensities as propensities
    from onlooker.formats import LogScan as LogScan
    from onlooker.formats import read_log as read_log
    from onlooker.formats import read_logs as read_logs
    from onlooker.formats import scan_log as scan_log
    from onlooker.formats import write_log as write_log
    from onlooker.formats.obp import read_obp as read_obp
    from onlooker.formats.propensities import write_propensities as write_propensities
    from onlooker.imitation.burn_in import FixedStart as FixedStart
    from onlooker.imitation.burn_in import Fraction as Fraction
    from onlooker.imitation.burn_in import HeldOut as HeldOut
    from onlooker.imitation.burn_in import PowerRule as PowerRule
    from onlooker.imitation.choice_model import Linear as Linear
    from onlooker.imitation.scores.additive import Additive as Additive
    from onlooker.imitation.scores.additive_policy import AdditivePolicy as AdditivePolicy
    from onlooker.imitation.scores.boosted import Boosted as Boosted
    from onlooker.imitation.scores.loading import load_policy as load_policy
    from onlooker.imitation.scores.neural import Neural as Neural
    from onlooker.imitation.scores.neural import NeuralPolicy as NeuralPolicy
    from onlooker.imitation.scores.products import Products as Products
    from onlooker.imitation.scores.products import ProductsPolicy as ProductsPolicy
    from onlooker.imitation.scores.trees import BoostedPolicy as BoostedPolicy
    from onlooker.imitation.sweep import BurnInSweep as BurnInSweep
    from onlooker.imitation.sweep import burn_in_sweep as burn_in_sweep
    from onlooker.logs.effects import Effect as Effect
    from onlooker.logs.gaps import fill_gaps as fill_gaps
    from onlooker.logs.log import BanditLog as BanditLog
    from onlooker.logs.missing import draw_missing as draw_missing
    from onlooker.logs.missing import drop_missing as drop_missing
    from onlooker.logs.offers import assume_offers as assume_offers
    from onlooker.logs.offers import draw_offers as draw_offers
    from onlooker.logs.policy import LinearPolicy as LinearPolicy
    from onlooker.logs.sampling import sample_offers as sample_offers
    from onlooker.observers import IBCB as IBCB
    from onlooker.observers import BayesianICB as BayesianICB
    from onlooker.observers import BlockImitation as BlockImitation
    from onlooker.observers import ChangePointImitation as ChangePointImitation
    from onlooker.observers import DynamicImitation as DynamicImitation
    from onlooker.observers import NonparametricICB as NonparametricICB
    from onlooker.observers import RankedBlocks as RankedBlocks
    from onlooker.observers import SuffixImitation as SuffixImitation
    from onlooker.observers import TrackingObserver as TrackingObserver
    from onlooker.observers.completion import fit_draws as fit_draws
    from onlooker.observers.groups import Groups as Groups
    from onlooker.observers.groups import fit_groups as fit_groups
    from onlooker.observers.tracking import TS as TS
    from onlooker.observers.tracking import UCB as UCB
    from onlooker.observers.tracking import Lapse as Lapse
    from onlooker.observers.tracking import Softmax as Softmax
    from onlooker.report.log_page import report_page as report_page
    from onlooker.report.log_page import write_report as write_report
    from onlooker.simulation.environment import Environment as Environment
    from onlooker.simulation.learners import OFUL as OFUL
    from onlooker.simulation.learners import Boltzmann as Boltzmann
    from onlooker.simulation.learners import EpsilonGreedy as EpsilonGreedy
    from onlooker.simulation.learners import ExploreThenCommit as ExploreThenCommit
    from onlooker.simulation.learners import LinTS as LinTS
    from onlooker.simulation.learners import LinUCB as LinUCB
    from onlooker.simulation.learners import UniformRandom as UniformRandom
    from onlooker.simulation.mask import Mask as Mask
    from onlooker.simulation.mask import Masked as Masked
    from onlooker.simulation.nonlinear import Mapped as Mapped
    from onlooker.simulation.nonlinear import NetworkGreedy as NetworkGreedy
    from onlooker.simulation.play import Simulation as Simulation
    from onlooker.simulation.play import simulate as simulate
    from onlooker.simulation.play import simulate_many as simulate_many
    from onlooker.simulation.ridge import Learner as Learner

_HOMES = {
    "base.errors": ("ClusterError", "InputError", "NotFittedError", "OnlookerError", "OnlookerWarning"),
    "clusters": ("RayParts",),
    "diagnosis": ("Diagnosis", "diagnose"),
    "evaluation.comparison": ("Comparison", "compare"),
    "evaluation.metrics": ("agreement", "direction_error", "information_share", "predictive_regret"),
    "evaluation.propensities": ("Propensities", "propensities"),
    "formats": ("LogScan", "read_log", "read_logs", "scan_log", "write_log"),
    "formats.obp": ("read_obp",),
    "formats.propensities": ("write_propensities",),
    "imitation.burn_in": ("FixedStart", "Fraction", "PowerRule", "HeldOut"),
    "imitation.sweep": ("BurnInSweep", "burn_in_sweep"),
    "imitation.choice_model": ("Linear",),
    "imitation.scores.additive": ("Additive",),
    "imitation.scores.additive_policy": ("AdditivePolicy",),
    "imitation.scores.boosted": ("Boosted",),
    "imitation.scores.loading": ("load_policy",),
    "imitation.scores.neural": ("Neural", "NeuralPolicy"),
    "imitation.scores.products": ("Products", "ProductsPolicy"),
    "imitation.scores.trees": ("BoostedPolicy",),
    "logs.effects": ("Effect",),
    "logs.gaps": ("fill_gaps",),
    "logs.log": ("BanditLog",),
    "logs.missing": ("draw_missing", "drop_missing"),
    "logs.offers": ("assume_offers", "draw_offers"),
    "logs.policy": ("LinearPolicy",),
    "logs.sampling": ("sample_offers",),
    "observers": (
        "IBCB",
        "BayesianICB",
        "BlockImitation",
        "ChangePointImitation",
        "DynamicImitation",
        "NonparametricICB",
        "RankedBlocks",
        "SuffixImitation",
        "TrackingObserver",
    ),
    "observers.completion": ("fit_draws",),
    "observers.groups": ("Groups", "fit_groups"),
    "observers.tracking": ("TS", "UCB", "Lapse", "Softmax"),
    "report.log_page": ("report_page", "write_report"),
    "simulation.environment": ("Environment",),
    "simulation.learners": (
        "OFUL",
        "Boltzmann",
        "EpsilonGreedy",
        "ExploreThenCommit",
        "LinTS",
        "LinUCB",
        "UniformRandom",
    ),
    "simulation.nonlinear": ("Mapped", "NetworkGreedy"),
    "simulation.mask": ("Mask", "Masked"),
    "simulation.play": ("Simulation", "simulate", "simulate_many"),
    "simulation.ridge": ("Learner",),
}
"""Which module each public name lives in."""

_MODULES = {"bounds": "evaluation.bounds"}
"""Modules that are used by their own name, as in `onlooker.bounds.predictive_regret_bound`."""


class _Alias(ModuleType):
    """A module under its public name, which is loaded when something in it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind(), name)

    def __dir__(self) -> list[str]:
        return dir(self._behind())

    def _behind(self) -> ModuleType:
        from importlib import import_module

        return import_module(f"onlooker.{_MODULES[self.__name__.rpartition('.')[2]]}")


for _name in _MODULES:
    sys.modules[f"{__name__}.{_name}"] = _Alias(f"{__name__}.{_name}")

_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)  # noqa: PLE0605  the list is made from the table above


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return sys.modules[f"{__name__}.{name}"]
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def _drawing() -> Drawing:
    from onlooker.report import notebook

    return notebook


drawn_by(_drawing)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
