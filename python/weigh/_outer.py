"""The run around this process: under ``weigh run``, or of a parent that called ``weigh.track``."""

from __future__ import annotations

import itertools
import logging
import os
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
    # The run may be over before its workers: a program does not fail because of that.
    logging.getLogger("weigh").debug("not recorded: %s", error)


def outer() -> Outer | None:
    """The run that $WEIGH_RUN names."""
    directory = os.environ.get("WEIGH_RUN")
    return Outer(directory) if directory else None
