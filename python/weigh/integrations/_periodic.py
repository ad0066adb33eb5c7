"""Sends snapshots of a run to a logger, now and then, and its figures at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .._run import Run

Send = Callable[[dict[str, float], float], object]


class Periodic:
    """Sends ``run.snapshot()`` every so many seconds, from a thread that holds the GIL only then.

        with weigh.track() as run, Periodic(run, send):
            ...
    """

    def __init__(self, run: Run, send: Send, *, every: float = 10.0, prefix: str = "weigh/") -> None:
        self._run = run
        self._send = send
        self._every = every
        self._prefix = prefix
        self._over = threading.Event()
        self._began = time.monotonic()
        self._thread: threading.Thread | None = None

    def send(self) -> None:
        """Sends one snapshot now."""
        values = {self._prefix + key: value for key, value in self._run.snapshot().items()}
        self._send(values, time.monotonic() - self._began)

    def _repeat(self) -> None:
        while not self._over.wait(self._every):
            self.send()

    def __enter__(self) -> Periodic:
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._repeat, name="weigh-logger", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self.send()
