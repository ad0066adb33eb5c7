"""pytest: what each test costs, with ``--weigh``, and limits that fail a test.

    @pytest.mark.weigh(max_memory="500MiB")
    def test_load(): ...

In the ini file ``weigh_max_memory = 2GiB`` is the limit of every test. Memory is what the process
tree had at its peak, above what it had when the test began.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

_UNITS = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

# How often memory is sampled: a test is short.
_INTERVAL = 0.02
_MOST_ROWS = 10
_KEY = "weigh"


def _bytes(text: str | int) -> float:
    found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", str(text))
    if found is None or found[2].upper() not in _UNITS:
        raise pytest.UsageError(f"{text!r} is not a size; write it like 500MiB")
    return float(found[1]) * _UNITS[found[2].upper()]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("weigh", "what tests cost")
    group.addoption("--weigh", action="store_true", help="show the CPU time and memory of tests")
    parser.addini("weigh_max_memory", "the memory that each test may use, like 2GiB", default="")


def pytest_configure(config: pytest.Config) -> None:
    """The mark, and the table of this process."""
    config.addinivalue_line("markers", "weigh(max_memory): fail when a test uses more memory")
    config.pluginmanager.register(_Table(config), "weigh-table")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Measures a test."""
    mark = item.get_closest_marker("weigh")
    limit = (mark.kwargs.get("max_memory") if mark else None) or item.config.getini("weigh_max_memory")
    if not limit and not item.config.getoption("--weigh"):
        return (yield)
    most = _bytes(limit) if limit else None
    from .. import track

    run = track(item.nodeid, interval=_INTERVAL, record=False, inherit=False).start()
    before = run.figures.memory_rss_peak.value
    try:
        return (yield)
    finally:
        run.stop()
        figures = run.figures
        peak = figures.memory_rss_peak.value
        used = None if peak is None or before is None else max(0.0, peak - before)
        used_cpu = figures.cpu_time.value
        item.user_properties.append((_KEY, {"memory": used, "cpu": used_cpu}))
        if most is not None and used is None:
            reason = figures.memory_rss_peak.reason
            item.warn(pytest.PytestWarning(f"the limit of memory is not checked: {reason}"))
        if most is not None and used is not None and used > most:
            pytest.fail(
                f"used {_size(used)} of memory ({figures.memory_rss_peak.method}); "
                f"the limit is {_size(most)}",
                pytrace=False,
            )


def _size(value: float | None) -> str:
    return "not known" if value is None else f"{value / (1 << 20):.1f} MiB"


class _Table:
    """The heaviest tests; those of all workers of xdist arrive in the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[_Used] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects what a test has used."""
        if report.when == "call":
            # Reports of xdist have the name of their worker.
            worker: str = getattr(report, "worker_id", "")
            for key, used in report.user_properties:
                if key == _KEY and isinstance(used, dict):
                    self._tests.append(_Used(report.nodeid, worker, used["memory"], used["cpu"]))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Shows them."""
        if not self._config.getoption("--weigh") or not self._tests:
            return
        terminalreporter.section("weigh: heaviest tests")
        # What is not known may be much, and comes first.
        heaviest = sorted(self._tests, key=lambda one: _or_infinite(one.memory), reverse=True)
        for one in heaviest[:_MOST_ROWS]:
            shown = "not known" if one.cpu is None else f"{one.cpu:.2f} s"
            terminalreporter.line(f"{_size(one.memory):>14} {shown:>10}  {one.name}")
        terminalreporter.line(_sums(self._tests))


class _Used(NamedTuple):
    """What a test has used; None is not known."""

    name: str
    worker: str
    memory: float | None
    cpu: float | None


def _or_infinite(value: float | None) -> float:
    return float("inf") if value is None else value


def _sums(tests: list[_Used]) -> str:
    """CPU time of all tests, and the memory of workers that have their heaviest test at once."""
    known = [one.cpu for one in tests if one.cpu is not None]
    text = f"{len(tests)} tests used {_at_least(len(known) < len(tests))}{sum(known):.2f} s of CPU time"
    workers = sorted({one.worker for one in tests})
    if len(workers) > 1:
        memory = [one.memory for one in tests if one.memory is not None]
        together = sum(
            max((one.memory for one in tests if one.worker == worker and one.memory is not None), default=0.0)
            for worker in workers
        )
        text += (
            f"; {len(workers)} workers with their heaviest tests at once: "
            f"{_at_least(len(memory) < len(tests))}{_size(together)}"
        )
    return text


def _at_least(is_lower_bound: bool) -> str:
    return "at least " if is_lower_bound else ""
