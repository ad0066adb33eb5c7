"""MLflow: metrics of this run's process tree, GPUs and limits.

    with weigh.track("train") as run, weigh.integrations.mlflow.logger(run):
        ...
"""

from __future__ import annotations

from typing import Any

from .._run import Run
from ._periodic import Periodic


def logger(run: Run, *, run_id: str | None = None, every: float = 10.0, client: Any = None) -> Periodic:
    """Logs to the active MLflow run, or to the one of an id."""
    import mlflow
    from mlflow.entities import Metric

    client = client or mlflow.MlflowClient()
    if run_id is None:
        active = mlflow.active_run()
        if active is None:
            raise RuntimeError("there is no active MLflow run: mlflow.start_run()")
        run_id = active.info.run_id

    def send(values: dict[str, float], seconds: float) -> None:
        import time

        now, step = int(time.time() * 1000), int(seconds)
        metrics = [Metric(key, value, now, step) for key, value in values.items()]
        client.log_batch(run_id, metrics=metrics)

    return Periodic(run, send, every=every)
