"""Lightning: a callback that logs this run's process tree, GPUs and limits.

    trainer = Trainer(callbacks=[weigh.integrations.lightning.callback()])
"""

from __future__ import annotations

from typing import Any

from .._functions import track


def callback(*, every_steps: int = 50, **settings: Any) -> Any:
    """A callback that measures from the start of training to its end, each epoch as a phase."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class Weigh(Callback):  # type: ignore[misc]
        """Measures training with weigh."""

        def __init__(self) -> None:
            self.run = track("fit", **settings)
            self._epoch: Any = None

        def _log(self, trainer: Any) -> None:
            values = {f"weigh/{key}": value for key, value in self.run.snapshot().items()}
            for logger in trainer.loggers:
                logger.log_metrics(values, step=trainer.global_step)

        def on_fit_start(self, trainer: Any, module: Any) -> None:
            self.run = self.run.again().start()

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            self._epoch = self.run.phase("epoch", n=trainer.current_epoch)
            self._epoch.begin()

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            if self._epoch is not None:
                self._epoch.end()

        def on_train_batch_end(self, trainer: Any, *batch: Any) -> None:
            if trainer.global_step % every_steps == 0:
                self._log(trainer)

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self._log(trainer)
            self.run.stop()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            self.run.end(exception)

    return Weigh()
