"""TensorBoard: scalars of this run's process tree, GPUs and limits.

    with weigh.track("train") as run, weigh.integrations.tensorboard.logger(run, writer):
        ...
"""

from __future__ import annotations

from typing import Any

from .._run import Run
from ._periodic import Periodic


def logger(run: Run, writer: Any, *, every: float = 10.0) -> Periodic:
    """Logs to a ``SummaryWriter``, of torch or of tensorboardX; steps are seconds."""

    def send(values: dict[str, float], seconds: float) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, int(seconds))

    return Periodic(run, send, every=every)
