"""Weights & Biases: metrics of this run's process tree, GPUs and limits.

    with weigh.track("train") as run, weigh.integrations.wandb.logger(run, wandb.init()):
        ...
"""

from __future__ import annotations

from typing import Any

from .._run import Run
from ._periodic import Periodic


def logger(run: Run, wandb_run: Any = None, *, every: float = 10.0) -> Periodic:
    """Logs to a run of W&B, or to the one that ``wandb.init`` made."""
    if wandb_run is None:
        import wandb

        wandb_run = wandb.run
    if wandb_run is None:
        raise RuntimeError("there is no run of W&B: wandb.init()")
    # An axis of its own: the program's steps are not touched.
    wandb_run.define_metric("weigh/seconds")
    wandb_run.define_metric("weigh/*", step_metric="weigh/seconds")

    def send(values: dict[str, float], seconds: float) -> None:
        wandb_run.log({**values, "weigh/seconds": seconds})

    return Periodic(run, send, every=every)
