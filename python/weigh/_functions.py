"""The functions of the package."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, cast, overload

from . import _native
from ._phase import Phase, encoded
from ._results import Recording
from ._run import Run, Settings, innermost
from ._scope import F

PathOrText = str | os.PathLike[str]


def _settings(
    name: str | None,
    interval: float,
    output: PathOrText | None,
    record: bool,
    labels: dict[str, str] | None,
    collect: Sequence[str] | None,
    skip: Sequence[str],
    gpus: Sequence[str | int] | None,
    budget: float | None,
    expected_cores: float | None,
    command_lines: bool,
) -> Settings:
    wanted: Settings = {
        "name": name,
        "interval": interval,
        "output": None if output is None else os.fspath(output),
        "record": record,
        "labels": labels or {},
        "collect": None if collect is None else list(collect),
        "skip": list(skip),
        "gpus": None if gpus is None else [str(gpu) for gpu in gpus],
        "budget": budget,
        "expected_cores": expected_cores,
        "command_lines": command_lines,
    }
    return {key: value for key, value in wanted.items() if value is not None}


@overload
def track(function: F, /) -> F: ...


@overload
def track(
    name: str | None = None,
    /,
    *,
    interval: float = 1.0,
    output: PathOrText | None = None,
    record: bool = True,
    labels: dict[str, str] | None = None,
    collect: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    gpus: Sequence[str | int] | None = None,
    budget: float | None = None,
    expected_cores: float | None = None,
    command_lines: bool = True,
    inherit: bool = True,
    on_stop: Callable[[Run], object] | None = None,
) -> Run: ...


def track(
    name: Any = None,
    /,
    *,
    interval: float = 1.0,
    output: PathOrText | None = None,
    record: bool = True,
    labels: dict[str, str] | None = None,
    collect: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    gpus: Sequence[str | int] | None = None,
    budget: float | None = None,
    expected_cores: float | None = None,
    command_lines: bool = True,
    inherit: bool = True,
    on_stop: Callable[[Run], object] | None = None,
) -> Any:
    """Measures this process and all that it starts.

        with weigh.track("train", interval=0.1) as run:
            ...

        run = weigh.track("train").start()
        ...
        run.stop()

        @weigh.track
        def train(): ...

    A decorated function is a new run each time it is called.

    Args:
        name: What the run is called; the program's name when there is none.
        interval: Seconds between two samples.
        output: The directory of the recording, which must be new or empty; a new one below
            ``weigh-runs/`` when there is none.
        record: Whether it is recorded; without, there are figures and no tables.
        labels: What distinguishes this run from others.
        collect: Collectors to use, when not all: :func:`weigh.doctor` has their names.
        skip: Collectors to leave out.
        gpus: GPUs that count, by number, name or UUID, when not all.
        budget: Share of one core that expensive reads may take.
        expected_cores: Cores that the run should use.
        command_lines: Whether command lines are recorded.
        inherit: Whether ``WEIGH_RUN`` is set while it goes on, so that programs and workers that
            are started meanwhile send their phases to it. It is restored at the end.
        on_stop: Called with the run once it has ended.
    """
    function = name if callable(name) else None
    settings = _settings(
        None if function else name,
        interval,
        output,
        record,
        labels,
        collect,
        skip,
        gpus,
        budget,
        expected_cores,
        command_lines,
    )
    if function is not None:
        settings["name"] = getattr(function, "__name__", None) or "function"
    made = Run(_native.Session.current, settings, inherit=inherit, on_stop=on_stop)
    return made(function) if function is not None else made


def run(
    command: Sequence[PathOrText],
    *,
    name: str | None = None,
    interval: float = 1.0,
    output: PathOrText | None = None,
    record: bool = True,
    labels: dict[str, str] | None = None,
    collect: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    gpus: Sequence[str | int] | None = None,
    budget: float | None = None,
    expected_cores: float | None = None,
    command_lines: bool = True,
    wait: bool = True,
    wait_all: bool = False,
    subreaper: bool = False,
) -> Run:
    """Runs a command, measures it and all that it starts, and waits for its end.

        done = weigh.run(["make", "-j8"])
        done.exit_code, done.figures.cpu_time

    Args:
        wait: Whether to wait for its end; without, :meth:`Run.wait` waits, and :meth:`Run.stop` ends
            the measurement.
        wait_all: Whether the run lasts until its descendants have exited, too.
        subreaper: Whether this process is a child subreaper until the end of the run, so that
            daemons that the command starts are found and reaped, and all counts are exact. It is
            restored at the end. A program that waits for any child (``os.wait()``) gets them, too.

    All others are those of :func:`track`.
    """
    words = [os.fspath(word) for word in command]
    settings = _settings(
        name,
        interval,
        output,
        record,
        labels,
        collect,
        skip,
        gpus,
        budget,
        expected_cores,
        command_lines,
    )
    settings.update(wait_all=wait_all, subreaper=subreaper)
    started = Run(lambda wanted: _native.Session.spawn(words, wanted), settings, inherit=False)
    started.start()
    if wait:
        started.wait()
        started.stop()
    return started


def attach(
    *pids: int,
    cgroup: PathOrText | None = None,
    name: str | None = None,
    interval: float = 1.0,
    output: PathOrText | None = None,
    record: bool = True,
    labels: dict[str, str] | None = None,
    collect: Sequence[str] | None = None,
    skip: Sequence[str] = (),
    gpus: Sequence[str | int] | None = None,
    budget: float | None = None,
    expected_cores: float | None = None,
    command_lines: bool = True,
) -> Run:
    """Measures running processes and what they start, or a cgroup, until :meth:`Run.stop`.

        with weigh.attach(4182) as run:
            run.wait(timeout=60)
    """
    if (cgroup is None) == (not pids):
        raise ValueError("name processes, or a cgroup")
    settings = _settings(
        name,
        interval,
        output,
        record,
        labels,
        collect,
        skip,
        gpus,
        budget,
        expected_cores,
        command_lines,
    )

    def begin(wanted: Settings) -> _native.Session:
        if cgroup is not None:
            return _native.Session.cgroup(os.fspath(cgroup), wanted)
        return _native.Session.attach(list(pids), wanted)

    return Run(begin, settings, inherit=False).start()


def open(run: PathOrText = "last", *, among: PathOrText | None = None) -> Recording:
    """Opens a recording: a directory, an id, a name, ``last``, ``last~1``.

    Names and ids are looked up among the recordings of a directory, ``weigh-runs`` when there is
    none.
    """
    return Recording(_native.Recording.open(run, among))


def doctor() -> dict[str, Any]:
    """What can be measured here, what cannot, and what to type to change it."""
    return cast("dict[str, Any]", json.loads(_native.doctor()))


@overload
def phase(function: F, /) -> F: ...


@overload
def phase(name: str, /, **data: Any) -> Phase: ...


def phase(name: Any, /, **data: Any) -> Any:
    """A phase of the innermost run: of this process, of a parent, or of ``weigh run``.

        with weigh.phase("load", file="a.csv"):
            ...

        @weigh.phase
        def solve(): ...

    Functions, async functions and generators can be decorated. Outside a run it does nothing.
    """
    if callable(name):
        return Phase(getattr(name, "__qualname__", "phase"), {}, innermost)(name)
    return Phase(name, data, innermost)


def mark(text: str, **data: Any) -> None:
    """A mark in the innermost run; outside a run it does nothing."""
    if (target := innermost()) is not None:
        target.send_mark(text, encoded(data))


def event(type: str, data: dict[str, Any] | None = None) -> None:
    """A mark with data in the innermost run; outside a run it does nothing."""
    if (target := innermost()) is not None:
        target.send_mark(type, encoded(data))
