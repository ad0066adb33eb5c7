"""The run around this process: under ``weigh run``, or of a parent that called ``weigh.track``."""

from __future__ import annotations

import itertools
import os
import sys
import time

from . import _native

_count = itertools.count()


class Outer:
    """A recording that another process writes; messages go through its pipe."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outer) and other.directory == self.directory

    def __hash__(self) -> int:
        return hash(self.directory)

    def start_phase(self, name: str, parent: str | None, data: str | None) -> str | None:
        """Begins a phase, and returns its id; None when it cannot be sent."""
        id = f"{os.getpid()}-{time.monotonic_ns()}-{next(_count)}"
        try:
            _native.send_phase_start(self.directory, id, name, parent, data)
        except (_native.Error, OSError) as error:
            _log(error)
            return None
        return id

    def end_phase(self, phase: str) -> None:
        """Ends a phase."""
        try:
            _native.send_phase_end(self.directory, phase)
        except (_native.Error, OSError) as error:
            _log(error)

    def send_mark(self, text: str, data: str | None) -> None:
        """Adds a mark."""
        try:
            _native.send_mark(self.directory, text, data)
        except (_native.Error, OSError) as error:
            _log(error)


def _log(error: Exception) -> None:
    # Slow to import, and seldom needed.
    import logging

    # The run may be over before its workers: a program does not fail because of that.
    logging.getLogger("weigh").debug("not recorded: %s", error)


# What multiprocessing copies to its workers, under this name.
_CONFIG = "weigh_run"


def _worker_config() -> dict[str, object]:
    """What ``multiprocessing`` copies from a process to its workers, whatever starts them.

    The environment is not enough: a fork server keeps the one that it was started with, and a run
    that begins later is not in it. The attribute is private, so its absence is no error.
    """
    module = sys.modules.get("multiprocessing.process")
    config = getattr(module and module.current_process(), "_config", None)
    return config if isinstance(config, dict) else {}


def shown_to_workers() -> str | None:
    """The run that workers of this process belong to, and this process, if it is a worker."""
    directory = _worker_config().get(_CONFIG)
    return directory if isinstance(directory, str) else None


def show_to_workers(directory: str | None) -> None:
    """Workers that are started from now on belong to this run, or to none."""
    config = _worker_config()
    if directory is not None:
        config[_CONFIG] = directory
    else:
        config.pop(_CONFIG, None)


def outer() -> Outer | None:
    """The run of the process that started this one, or that $WEIGH_RUN names."""
    directory = shown_to_workers() or os.environ.get("WEIGH_RUN")
    return Outer(directory) if directory else None
