"""torch-choice: its conditional logit, trained by its own loop with PyTorch's L-BFGS; standard errors are left out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_choice.data import ChoiceDataset
from torch_choice.model import ConditionalLogitModel

from rivals.adapters import ITERATIONS
from rivals.problem import Array, Problem

SETTINGS = ITERATIONS


def prepare(problem: Problem) -> Callable[[int], Array]:
    n, k, d = problem.X.shape
    data = ChoiceDataset(
        item_index=torch.from_numpy(problem.chosen),
        num_items=k,
        num_sessions=n,
        itemsession_x=torch.from_numpy(problem.X),
    )

    def run(iterations: int) -> Array:
        model = ConditionalLogitModel(
            coef_variation_dict={"itemsession_x": "constant"},
            num_param_dict={"itemsession_x": d},
            num_items=k,
            weight_initialization="zero",
        )
        # The part of `fit` that finds the estimate: the rest computes a Hessian by automatic differentiation.
        model._fit_with_torch_backend(  # noqa: SLF001
            dataset_train=data,
            dataset_val=None,
            dataset_test=None,
            batch_size=-1,
            learning_rate=1.0,
            num_epochs=1,
            model_optimizer="LBFGS",
            num_workers=0,
            report_frequency=None,
            device_hint=None,
            optimizer_kwargs={
                "max_iter": iterations,
                "max_eval": 4 * iterations,
                "tolerance_grad": 0.0,
                "tolerance_change": 0.0,
                "line_search_fn": "strong_wolfe",
            },
        )
        return model.get_coefficient("itemsession_x[constant]").numpy()

    return run
