"""``weigh.compat.oasislmf``: tools below a shell, and others that are not of the run."""

from __future__ import annotations

import contextlib
import csv
import logging
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
from compat_support import LOADS, python

import weigh.compat.oasislmf as package
from weigh.compat.oasislmf.execution import resource_monitor
from weigh.compat.oasislmf.execution.resource_monitor import (
    CSV_HEADER,
    MONITORED_TOOLS,
    TOOL_COLORS,
    ResourceMonitor,
)

PICTURES = {
    "aggregate_uss.png", "rss_vs_uss.png", "total_footprint.png", "aggregate_cpu.png",
    "cpu_time.png", "instance_count.png",
}


def tool(directory: pathlib.Path, name: str, megabytes: int) -> pathlib.Path:
    """A program that touches memory, burns 0.5 s of CPU time, and waits until its input ends."""
    path = directory / name
    path.write_text(
        f"#!{sys.executable}\n{LOADS}\nimport sys\nblock = touch({megabytes})\nburn(0.5)\n"
        "print('ready', flush=True)\nsys.stdin.read()\n")
    path.chmod(0o755)
    return path


@contextlib.contextmanager
def shell(program: pathlib.Path) -> Iterator[subprocess.Popen[bytes]]:
    """A shell with the program as its child; it waits for a line before it starts it."""
    process = subprocess.Popen(
        ["bash", "-c", f"read line; {program}; true"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate()


def go(process: subprocess.Popen[bytes]) -> None:
    """Starts the program of a shell, and returns when it has done its work."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"


def sample(monitor: ResourceMonitor) -> None:
    """Waits for a sample: the CPU time of a tool after its last one is its parent's to know."""
    assert monitor._session is not None
    monitor._session.snapshot()


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_names_are_in_the_package_and_in_the_module() -> None:
    assert package.__all__ == resource_monitor.__all__
    assert package.ResourceMonitor is ResourceMonitor
    assert set(TOOL_COLORS) == MONITORED_TOOLS and len(MONITORED_TOOLS) == 12


def test_interval_is_at_least_a_tenth_of_a_second(tmp_path: pathlib.Path) -> None:
    assert ResourceMonitor(tmp_path, poll_interval=0.01).poll_interval == 0.1
    assert ResourceMonitor(str(tmp_path)).poll_interval == 1.0


def test_tools_below_the_shell_are_reported_and_no_others(tmp_path: pathlib.Path) -> None:
    (tmp_path / "other").mkdir()
    out = tmp_path / "log"
    monitor = ResourceMonitor(out, poll_interval=0.1)
    run_program = tool(tmp_path, "fmpy", 100)
    other_program = tool(tmp_path / "other", "gulpy", 10)
    with shell(run_program) as run, shell(other_program) as other:
        monitor.start(run.pid)
        go(other)
        go(run)
        sample(monitor)
        run.communicate()
        monitor.stop()
    assert (out / "resource_monitor.csv").read_bytes().splitlines(keepends=True)[0] == (
        ",".join(CSV_HEADER).encode() + b"\r\n")
    found = rows(out / "resource_monitor.csv")
    assert {row["tool"] for row in found} == {"fmpy"}
    assert len({row["pid"] for row in found}) == 1
    assert 100_000_000 / 1024 < max(int(row["rss_kb"]) for row in found) < 150_000_000 / 1024
    used = max(float(row["cpu_user_s"]) + float(row["cpu_sys_s"]) for row in found)
    assert used >= 0.5
    report = out / "resource_report"
    assert {path.name for path in report.iterdir()} == PICTURES | {"resource_report.md"}
    page = (report / "resource_report.md").read_text()
    assert page.startswith("# Resource Monitor Report")
    assert "fmpy" in page and "gulpy" not in page
    assert [path.name for path in sorted(out.iterdir())] == [
        "resource_monitor.csv", "resource_report"]


def test_workers_add_up_in_the_combined_report(tmp_path: pathlib.Path) -> None:
    programs = [tool(tmp_path, name, 60) for name in ("fmpy", "gulpy")]
    root = tmp_path / "log"
    with shell(programs[0]) as one, shell(programs[1]) as two:
        workers = [
            ResourceMonitor(root / str(number), poll_interval=0.1, generate_report=False)
            for number in range(2)]
        for monitor, process in zip(workers, (one, two)):
            monitor.start(process.pid)
        go(one)
        go(two)
        for process, monitor in zip((one, two), workers):
            process.communicate()
            monitor.stop()
    assert not (root / "0" / "resource_report").exists()
    assert {row["tool"] for row in rows(root / "0" / "resource_monitor.csv")} == {"fmpy"}
    with shell(tool(tmp_path, "lecpy", 10)) as outputs:
        last = ResourceMonitor(root / "out", poll_interval=0.1, log_root=root)
        last.start(outputs.pid)
        go(outputs)
        outputs.communicate()
        last.stop()
    combined = rows(root / "resource_monitor.csv")
    assert {row["tool"] for row in combined} == {"fmpy", "gulpy", "lecpy"}
    page = (root / "resource_report" / "resource_report.md").read_text()
    [line] = [line for line in page.splitlines() if "Peak total USS" in line]
    number = float(line.split("**")[-1].split("MB")[0].strip(" :").replace(",", ""))
    assert number > 2 * 60e6 / 1024**2, "the two workers ran at the same time"


def test_nothing_is_written_where_no_tool_ran(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "log"
    monitor = ResourceMonitor(out, poll_interval=0.1)
    with shell(tool(tmp_path, "notatool", 1)) as run:
        monitor.start(run.pid)
        go(run)
        run.communicate()
        monitor.stop()
    assert not (out / "resource_monitor.csv").exists()
    assert not (out / "resource_report").exists()


def test_process_that_has_ended_is_a_warning(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    monitor = ResourceMonitor(tmp_path / "log")
    monitor.start(ended.pid)
    monitor.stop()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert not (tmp_path / "log").exists()


def test_monitor_is_started_once_and_stopped_without_a_start(tmp_path: pathlib.Path) -> None:
    monitor = ResourceMonitor(tmp_path / "log")
    monitor.stop()
    with shell(tool(tmp_path, "fmpy", 1)) as run:
        monitor.start(run.pid)
        with pytest.raises(RuntimeError, match="started already"):
            monitor.start(run.pid)
        go(run)
        run.communicate()
        monitor.stop()
        monitor.stop()


def test_matplotlib_and_psutil_are_not_needed(tmp_path: pathlib.Path) -> None:
    program = tool(tmp_path, "fmpy", 10)
    python(f"""
import subprocess, sys
for name in ('psutil', 'matplotlib', 'pandas', 'numpy'):
    sys.modules[name] = None
from weigh.compat.oasislmf import ResourceMonitor
run = subprocess.Popen(
    ['bash', '-c', '{program}; true'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
monitor = ResourceMonitor('log', poll_interval=0.1)
monitor.start(run.pid)
assert run.stdout.readline() == b'ready\\n'
run.communicate()
monitor.stop()
""", tmp_path)
    assert (tmp_path / "log" / "resource_report" / "cpu_time.png").stat().st_size > 0
