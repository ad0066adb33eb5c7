"""A run that this process measures: of itself, of a command, or of other processes.

After fork the child owns nothing of it: it neither stops nor writes it, and the native session
that it has inherited is left alone for ever. Its phases and marks are sent to the parent.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable
from typing import Any

from . import _native, _outer, _scope
from ._phase import Phase, encoded
from ._results import Results
from ._scope import F, Scope, Target
from ._snapshot import flat

Settings = dict[str, Any]
Begin = Callable[[Settings], _native.Session]

# The runs that have begun and not ended, in their order, with the lock that changes them.
_active: list[Run] = []
_lock = threading.Lock()

# What the variables were before the first run, and what was shown to workers.
_VARIABLES = ("WEIGH_RUN", "WEIGH_INBOX", "WEIGH_PHASE")
_before: tuple[dict[str, str | None], str | None] | None = None


class Run(Results, Scope):
    """A run: begins and ends with ``with`` or with :meth:`start` and :meth:`stop`."""

    def __init__(
        self,
        begin: Begin,
        settings: Settings,
        *,
        inherit: bool = True,
        on_stop: Callable[[Run], object] | None = None,
    ) -> None:
        self._begin = begin
        self._settings = settings
        self._inherit = inherit
        self._on_stop = on_stop
        self._session: _native.Session | None = None
        self._owner: int | None = None
        self._ended: str | None = None
        self._directory: str | None = None
        self._id: str | None = None
        self._stopping = threading.Lock()
        self._warnings: list[str] = []

    # Beginning and ending

    def start(self) -> Run:
        """Begins to measure."""
        if self._owner is not None:
            raise RuntimeError("this run has begun already; weigh.track(…) makes another one")
        session = self._begin(self._settings)
        self._owner = os.getpid()
        self._session = session
        self._directory = session.directory
        self._id = session.id
        with _lock:
            if not _active:
                atexit.unregister(_stop_all)
                atexit.register(_stop_all)
            _active.append(self)
            _publish()
        return self

    def stop(self) -> Run:
        """Ends it; results stay. To end it again, or in another process, does nothing."""
        if self._owner is None:
            raise RuntimeError("this run has not begun")
        if self._owner != os.getpid():
            return self
        with self._stopping:
            session, self._session = self._session, None
            if session is None:
                return self
            with _lock:
                _active.remove(self)
                _publish()
            self._ended, self._directory, self._warnings = session.stop()
        if self._on_stop is not None:
            self._on_stop(self)
        return self

    def begin(self) -> None:
        """Begins to measure."""
        self.start()

    def end(self, exception: BaseException | None) -> None:
        """Ends it, with a mark when an exception is the reason."""
        if exception is not None and self.is_running:
            self.mark(f"exception {type(exception).__name__}")
        self.stop()

    def again(self) -> Run:
        """A run of the same settings."""
        return Run(self._begin, self._settings, inherit=self._inherit, on_stop=self._on_stop)

    def __enter__(self) -> Run:
        if self._owner is None:
            self.start()
        _scope.enter(self)
        return self

    def __exit__(self, kind: object, exception: BaseException | None, trace: object) -> None:
        _scope.leave(self)
        self.end(exception)

    def __call__(self, function: F) -> F:
        return _scope.decorate(self, function)

    # While it goes on

    @property
    def is_running(self) -> bool:
        """Whether this process measures it now."""
        return self._session is not None and self._owner == os.getpid()

    def phase(self, name: str, **data: Any) -> Phase:
        """A part of it: ``with run.phase("epoch", n=3):``; also a decorator."""
        return Phase(name, data, self._target)

    def mark(self, text: str, **data: Any) -> None:
        """A mark at this moment."""
        if (target := self._target()) is not None:
            target.send_mark(text, encoded(data))

    def event(self, type: str, data: dict[str, Any] | None = None) -> None:
        """A mark with data: ``run.event("checkpoint", {"step": 100})``."""
        if (target := self._target()) is not None:
            target.send_mark(type, encoded(data))

    def snapshot(self) -> dict[str, float]:
        """What it uses now, and has used so far, for a logger.

            {"now/cpu_cores": 3.9, "now/memory_bytes": 1.2e9, "memory/peak_bytes": 2.1e9, …}

        Values of this moment begin with ``now/``; after the end there are none. Cores are a mean
        since the last snapshot that is at least a second old. Names are stable, and what is not
        known has none: it is never 0.
        """
        session = self._session
        if session is not None and self._owner == os.getpid():
            summary, now = session.snapshot_with_values()
            return flat(json.loads(summary), now or {})
        return flat(self.summary, {})

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until what is measured has ended: a command, or attached processes.

        Returns whether it has.
        """
        session = self._session
        if session is None or self._owner != os.getpid():
            return True
        # Ctrl-C is only seen between two calls.
        step, waited = 0.2, 0.0
        while timeout is None or waited < timeout:
            part = step if timeout is None else min(step, timeout - waited)
            if session.wait(part):
                return True
            waited += part
        return session.wait(0.0)

    def _is_of_parent(self) -> bool:
        return self._owner is not None and self._owner != os.getpid() and self._ended is None

    def _target(self) -> Target | None:
        if self._owner is None or self._ended is not None:
            return None
        if self._owner != os.getpid():
            return _outer.Outer(self._directory) if self._directory else None
        return self

    def start_phase(self, name: str, parent: str | None, data: str | None) -> str | None:
        """Begins a phase, and returns its id; :meth:`phase` is easier to use."""
        session = self._session
        return session.start_phase(name, parent, data) if session is not None else None

    def end_phase(self, phase: str) -> None:
        """Ends a phase."""
        if (session := self._session) is not None:
            session.end_phase(phase)

    def send_mark(self, text: str, data: str | None) -> None:
        """Adds a mark."""
        if (session := self._session) is not None:
            session.mark(text, data)

    # What is known of it

    @property
    def id(self) -> str | None:
        """Its unique id; None before it begins."""
        return self._id

    @property
    def directory(self) -> str | None:
        """Where it is recorded; None when it is not."""
        return self._directory

    @property
    def pid(self) -> int | None:
        """The process of the command."""
        return self._session.pid if self._session is not None and self.is_running else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command, 128 and the signal when one killed it; None otherwise."""
        code: int | None = self.summary["run"]["exit_code"]
        return code

    @property
    def warnings(self) -> list[str]:
        """What went wrong with the recording, once it has ended."""
        return list(self._warnings)

    def _summary_text(self) -> str:
        if self._ended is not None:
            return self._ended
        session = self._session
        if session is not None and self._owner == os.getpid():
            return session.snapshot()
        return self._recording().summary()

    def _recording(self) -> _native.Recording:
        if self._owner is None:
            raise _native.Error("this run has not begun")
        if self._directory is None:
            raise _native.Error("this run is not recorded: it was made with record=False")
        return _native.Recording.open(self._directory)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "ended" if self._ended else "not begun"
        return f"<weigh.Run {self._id or ''} {state}>"


def innermost() -> Target | None:
    """What phases and marks of this code go to: the innermost run of this process, else the outer
    one."""
    for scope in reversed(_scope.around()):
        if isinstance(scope, Run) and (scope.is_running or scope._is_of_parent()):
            return scope._target()
    for run in reversed(_active):
        if (target := run._target()) is not None:
            return target
    return _outer.outer()


def _stop_all() -> None:
    """The interpreter exits, and some runs were not stopped."""
    for run in reversed(_active[:]):
        run.stop()


def _publish() -> None:
    """Shows the innermost run to programs and workers that are started from now on."""
    global _before
    shown = [run for run in _active if run._inherit and run._directory is not None]
    if not shown:
        if _before is not None:
            variables, workers = _before
            for name, value in variables.items():
                _set(name, value)
            _outer.show_to_workers(workers)
        _before = None
        return
    if _before is None:
        variables = {name: os.environ.get(name) for name in _VARIABLES}
        _before = (variables, _outer.shown_to_workers())
    directory = os.path.abspath(shown[-1]._directory or "")
    _set("WEIGH_RUN", directory)
    _set("WEIGH_INBOX", os.path.join(directory, "inbox"))
    # A phase of the run around this one.
    _set("WEIGH_PHASE", None)
    _outer.show_to_workers(directory)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    elif os.environ.get(name) != value:
        os.environ[name] = value


def _after_fork() -> None:
    """In the child: another thread may have held the locks."""
    global _lock
    _lock = threading.Lock()
    for run in _active:
        run._stopping = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
