"""Phases: parts of a run that have figures of their own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from . import _scope
from ._scope import F, Scope, Target


class Phase(Scope):
    """A part of a run, from ``with`` to its end; it also decorates functions.

        with run.phase("epoch", n=3):
            ...

        @run.phase("solve")
        def solve(): ...
    """

    def __init__(
        self, name: str, data: dict[str, Any], target: Callable[[], Target | None]
    ) -> None:
        self.name = name
        self.data = data
        self._find = target
        # Each begin of it: with this object, `with` may be used again, also recursively.
        self._begun: list[tuple[Target | None, str | None, int]] = []

    def begin(self) -> None:
        """Begins it; :meth:`end` must follow."""
        target = self._find()
        id = None
        if target is not None:
            id = target.start_phase(self.name, self._parent(target), encoded(self.data))
        self._begun.append((target, id, os.getpid()))

    def end(self, exception: BaseException | None = None) -> None:
        """Ends it."""
        if not self._begun:
            raise RuntimeError(f"phase {self.name} has not begun")
        target, id, pid = self._begun.pop()
        # After fork it is the parent's to end.
        if target is not None and id is not None and pid == os.getpid():
            target.end_phase(id)

    def again(self) -> Phase:
        """A phase of the same name and data."""
        return Phase(self.name, self.data, self._find)

    def _parent(self, target: Target) -> str | None:
        for scope in reversed(_scope.around()):
            if isinstance(scope, Phase) and scope is not self and scope._begun:
                of, id, _ = scope._begun[-1]
                if of is target or of == target:
                    return id
        return None

    def __enter__(self) -> Phase:
        self.begin()
        _scope.enter(self)
        return self

    def __exit__(self, kind: object, exception: BaseException | None, trace: object) -> None:
        _scope.leave(self)
        self.end(exception)

    def __call__(self, function: F) -> F:
        return _scope.decorate(self, function)


def encoded(data: dict[str, Any] | None) -> str | None:
    """Data of a phase or a mark as JSON; what JSON has no type for is written as text."""
    return json.dumps(data, default=_plain) if data else None


def _plain(value: Any) -> Any:
    # A number of numpy or a tensor of one element.
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
