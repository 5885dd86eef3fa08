"""Who takes part: every method with its adapter and, for a rival, the packages of its environment, pinned."""

from __future__ import annotations

from dataclasses import dataclass

NUMPY = "numpy==2.2.6"
SCIPY = "scipy==1.15.3"
TORCH = "torch==2.13.0"
"""Any build of that version: pip prefers one for the processor alone where the registry has it."""
PER_ARM = "context given; a model for each of K arms, d features"


@dataclass(frozen=True)
class Method:
    """One way to do the work."""

    name: str
    """As tables show it, and as `--only` takes it."""

    adapter: str
    """Module in `rivals.adapters`."""

    kind: str
    """`onlooker`, `by hand`, `choice library`, `bandit library` or `floor`."""

    packages: tuple[str, ...] = ()
    """What its environment holds; nothing means the environment that onlooker is in."""

    bare: tuple[str, ...] = ()
    """Packages installed without their requirements, which cannot be met on today's Pythons."""

    without: tuple[str, ...] = ()
    """Packages taken out again."""

    penalised: bool = True
    """Whether it can take our penalty; else it gets the problem without one."""

    shared: bool = True
    """Whether its learner is ours, one model for all arms, so that picks can be compared."""

    note: str = ""
    """What to know about the comparison."""

    @property
    def version(self) -> str:
        pins = self.bare or self.packages
        return pins[0].partition("==")[2] if pins else ""


FITS = (
    Method("onlooker, estimate", "onlooker_estimate", "onlooker", note="stops as soon as the others do"),
    Method("onlooker, with intervals", "onlooker_fit", "onlooker", note="`SuffixImitation.fit` by default: far closer"),
    Method("NumPy + SciPy L-BFGS", "numpy_scipy", "by hand", (NUMPY, SCIPY), note="float32 products"),
    Method(
        "NumPy + SciPy L-BFGS, by default",
        "numpy_scipy_defaults",
        "by hand",
        (NUMPY, SCIPY),
        note="the same, stopping where SciPy does by default",
    ),
    Method(
        "JAX L-BFGS", "jax_lbfgs", "by hand", ("jax==0.10.2", NUMPY, SCIPY), note="float32, compiled; SciPy's L-BFGS"
    ),
    Method("PyTorch L-BFGS", "torch_lbfgs", "by hand", (TORCH, NUMPY), note="float32"),
    Method(
        "torch-choice",
        "torch_choice_logit",
        "choice library",
        ("torch-choice==1.0.7", TORCH),
        # It is not used here, and does not load beside a PyTorch that is built for the processor alone.
        without=("torchvision",),
        penalised=False,
        note="float32; its penalty is not squared; without its standard errors",
    ),
    Method("xlogit", "xlogit_logit", "choice library", ("xlogit==0.2.7", NUMPY), penalised=False, note="float64"),
    Method("larch", "larch_logit", "choice library", ("larch==6.0.46",), penalised=False, note="float64, numba engine"),
    Method(
        "choice-learn",
        "choice_learn_logit",
        "choice library",
        ("choice-learn==1.3.3", "tensorflow-cpu==2.21.0"),
        note="TensorFlow, float32",
    ),
    Method(
        "statsmodels ConditionalLogit",
        "statsmodels_logit",
        "choice library",
        ("statsmodels==0.14.6",),
        penalised=False,
        note="loops over rounds in Python; its standard errors cannot be left out",
    ),
)
"""Rivals of the fit."""

SIMULATIONS = (
    Method("onlooker `simulate`", "onlooker_simulate", "onlooker", note="drawing the arms included"),
    Method("onlooker, learner alone", "onlooker_play", "onlooker", note="arms given"),
    Method("normals alone, NumPy", "numpy_normals", "floor", (NUMPY,), shared=False, note="on every core; no learner"),
    Method(
        "NumPy, drawing and learner",
        "numpy_simulate",
        "by hand",
        (NUMPY,),
        shared=False,
        note="arms of its own; rank-one updates",
    ),
    Method("NumPy, learner alone", "numpy_linucb", "by hand", (NUMPY,), note="arms given; rank-one updates"),
    Method("coba", "coba_linucb", "bandit library", ("coba==8.1.0", NUMPY), note="arms given"),
    Method(
        "contextualbandits",
        "contextualbandits_linucb",
        "bandit library",
        ("contextualbandits==0.3.30",),
        shared=False,
        note=PER_ARM,
    ),
    Method("mabwiser", "mabwiser_linucb", "bandit library", ("mabwiser==2.7.4",), shared=False, note=PER_ARM),
    Method(
        "obp",
        "obp_linucb",
        "bandit library",
        (
            TORCH,
            *("numpy==1.26.4", "scipy==1.13.1", "pandas==2.2.3", "scikit-learn==1.5.2"),
            *("matplotlib==3.9.4", "seaborn==0.13.2", "pyyaml==6.0.2", "tqdm==4.67.1"),
        ),
        bare=("obp==0.5.7",),
        shared=False,
        note=f"{PER_ARM}; beside newer packages than it asks for",
    ),
)
"""Rivals of the simulation."""
