"""Where this code is: which runs and phases are around it, in this thread or task."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Target(Protocol):
    """What phases and marks are sent to."""

    def start_phase(self, name: str, parent: str | None, data: str | None) -> str | None:
        """Begins a phase, and returns its id."""

    def end_phase(self, phase: str) -> None:
        """Ends a phase."""

    def send_mark(self, text: str, data: str | None) -> None:
        """Adds a mark."""


class Scope:
    """What a ``with`` statement or a decorator begins and ends: a run or a phase."""

    def begin(self) -> None:
        """Begins it."""
        raise NotImplementedError

    def end(self, exception: BaseException | None) -> None:
        """Ends it."""
        raise NotImplementedError

    def again(self) -> Scope:
        """Another one of the same settings: a function may be called more than once."""
        raise NotImplementedError


# A tuple, so that a task or thread that has copied it does not see what another one adds.
_around: ContextVar[tuple[Scope, ...]] = ContextVar("weigh", default=())


def around() -> tuple[Scope, ...]:
    """The runs and phases around this code, the outermost first."""
    return _around.get()


def enter(scope: Scope) -> None:
    """From here on this code is inside a scope."""
    _around.set((*_around.get(), scope))


def leave(scope: Scope) -> None:
    """This code is no longer inside a scope, wherever it was entered."""
    _around.set(tuple(one for one in _around.get() if one is not scope))


class _Inside:
    """A scope around some code, without its begin and end."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        enter(self._scope)

    def __exit__(self, *exception: object) -> None:
        leave(self._scope)


class _Whole:
    """A scope around some code, from begin to end."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        self._scope.begin()
        enter(self._scope)

    def __exit__(self, kind: object, exception: BaseException | None, trace: object) -> None:
        leave(self._scope)
        self._scope.end(exception)


def decorate(pattern: Scope, function: F) -> F:
    """A function inside a new scope each time it is called.

    The scope of an async function is all of it; that of a generator lasts from its first value to
    its end, and the code between its values is not inside.
    """
    # Not needed by those who decorate nothing, and slow to import.
    import inspect

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def of_async_generator(*args: Any, **keywords: Any) -> AsyncGenerator[Any, Any]:
            inner = function(*args, **keywords)
            scope = pattern.again()
            scope.begin()
            step, value = inner.__anext__, ()
            try:
                while True:
                    with _Inside(scope):
                        item = await step(*value)
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, value = inner.athrow, (error,)
                    else:
                        step, value = inner.asend, (sent,)
            except StopAsyncIteration:
                pass
            finally:
                with _Inside(scope):
                    await inner.aclose()
                scope.end(None)

        return cast(F, of_async_generator)

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def of_generator(*args: Any, **keywords: Any) -> Generator[Any, Any, Any]:
            inner = function(*args, **keywords)
            scope = pattern.again()
            scope.begin()
            step, value = inner.__next__, ()
            try:
                while True:
                    try:
                        with _Inside(scope):
                            item = step(*value)
                    except StopIteration as stop:
                        return stop.value
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, value = inner.throw, (error,)
                    else:
                        step, value = inner.send, (sent,)
            finally:
                with _Inside(scope):
                    inner.close()
                scope.end(None)

        return cast(F, of_generator)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def of_coroutine(*args: Any, **keywords: Any) -> Any:
            with _Whole(pattern.again()):
                return await function(*args, **keywords)

        return cast(F, of_coroutine)

    @functools.wraps(function)
    def of_function(*args: Any, **keywords: Any) -> Any:
        with _Whole(pattern.again()):
            return function(*args, **keywords)

    return cast(F, of_function)
