"""``weigh.compat.pytyche``: logs, tables and summaries of a small load."""

from __future__ import annotations

import csv
import json
import math
import os
import pathlib
import re
import sys
import types

import pytest
from compat_support import python, python_json

import weigh.compat.pytyche as package
from weigh.compat.pytyche.diagnostics import run_monitor
from weigh.compat.pytyche.diagnostics.run_monitor import (
    HWMonitor,
    ResourceSummary,
    RunLog,
    build_resource_summary,
    probe_jax_peak_memory_mb,
)

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00")


def entries(path: pathlib.Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_names_are_in_the_package_and_in_the_module() -> None:
    assert package.__all__ == run_monitor.__all__
    assert package.HWMonitor is HWMonitor


def test_log_has_pytyches_keys_and_times(tmp_path: pathlib.Path) -> None:
    log = RunLog()
    log.log_phase("load", 1.23456, rows=3)
    log.log_event("started")
    log.log_event("saved", {"path": pathlib.Path("a")})
    log.write(tmp_path / "log.jsonl")
    phase, started, saved = entries(tmp_path / "log.jsonl")
    assert all(TIME.fullmatch(str(entry.pop("ts"))) for entry in (phase, started, saved))
    assert list(phase.items()) == [
        ("type", "phase"), ("name", "load"), ("seconds", 1.235), ("rows", 3)]
    assert started == {"type": "event", "event": "started"}
    assert saved == {"type": "event", "event": "saved", "data": {"path": "a"}}


def test_extras_do_not_overwrite_the_time_of_a_phase(tmp_path: pathlib.Path) -> None:
    log = RunLog()
    log.log_phase("load", 1.0, ts="OVERWRITTEN", type="x")
    log.write(tmp_path / "log.jsonl")
    [phase] = entries(tmp_path / "log.jsonl")
    assert TIME.fullmatch(str(phase["ts"]))
    assert (phase["type"], phase["ts_"], phase["type_"]) == ("phase", "OVERWRITTEN", "x")


def test_lines_are_in_the_file_when_they_are_logged(tmp_path: pathlib.Path) -> None:
    python("""
import os
from weigh.compat.pytyche import RunLog
log = RunLog('log.jsonl')
log.log_phase('first', 1.0)
if os.fork() == 0:
    log.log_event('second')
    os._exit(0)
os.wait()
log.write('log.jsonl')
log.write('copy.jsonl')
log.log_event('third')
os._exit(0)
""", tmp_path)
    names = [entry.get("name", entry.get("event")) for entry in entries(tmp_path / "log.jsonl")]
    assert names == ["first", "second", "third"]
    assert len(entries(tmp_path / "copy.jsonl")) == 1


def test_table_of_cpus_has_the_shares_of_the_machine(tmp_path: pathlib.Path) -> None:
    found = python_json("""
import json, os
from weigh.compat.pytyche import HWMonitor, build_resource_summary
monitor = HWMonitor()
monitor.start('out/hw', interval_sec=0.2)
burn(1.0)
gpu, cpu, dmon = monitor.stop()
summary = build_resource_summary(gpu, cpu, dmon)
print(json.dumps({
    'cpu': str(cpu), 'user': summary.cpu_usr_mean_pct, 'idle': summary.cpu_idle_mean_pct,
    'is_gpu': gpu is not None, 'is_dmon': dmon is not None, 'cores': os.cpu_count()}))
""", tmp_path)
    assert found["cpu"] == "out/hw/cpu_metrics.csv"
    with open(tmp_path / found["cpu"], newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["timestamp", "usr_pct", "idle_pct"]
    assert all(TIME.fullmatch(row["timestamp"]) for row in rows)
    shares = [(float(row["usr_pct"]), float(row["idle_pct"])) for row in rows]
    assert all(user >= 0 and idle >= 0 and user + idle <= 100.1 for user, idle in shares)
    assert found["user"] == pytest.approx(sum(user for user, _ in shares) / len(shares), abs=0.1)
    assert found["idle"] == pytest.approx(sum(idle for _, idle in shares) / len(shares), abs=0.1)
    assert found["user"] > 0
    expected = {"cpu_metrics.csv"}
    assert found["is_gpu"] == found["is_dmon"]
    if found["is_gpu"]:
        expected |= {"hw_metrics.csv", "hw_dmon.csv", "hw_metrics_gpus.csv"}
    left = {path.name for path in (tmp_path / "out" / "hw").iterdir()}
    assert left == expected, "no recording and no empty file is left"


def test_monitor_that_was_not_started_has_no_tables() -> None:
    assert HWMonitor().stop() == (None, None, None)


def test_monitor_is_started_once_and_may_start_again(tmp_path: pathlib.Path) -> None:
    monitor = HWMonitor()
    monitor.start(tmp_path / "first")
    with pytest.raises(RuntimeError, match="started already"):
        monitor.start(tmp_path / "second")
    assert not (tmp_path / "second").exists()
    monitor.stop()
    assert monitor.stop() == (None, None, None)
    monitor.start(tmp_path / "second")
    monitor.stop()


def test_forked_child_that_stops_changes_nothing(tmp_path: pathlib.Path) -> None:
    found = python_json("""
import json, os
from weigh.compat.pytyche import HWMonitor
monitor = HWMonitor()
monitor.start('.', interval_sec=0.1)
child = os.fork()
if child == 0:
    os._exit(0 if monitor.stop() == (None, None, None) else 1)
_, status = os.waitpid(child, 0)
burn(0.3)
print(json.dumps([status, str(monitor.stop()[1])]))
""", tmp_path)
    assert found == [0, "cpu_metrics.csv"]


def test_summary_without_tables_is_not_known(tmp_path: pathlib.Path) -> None:
    for summary in (
            build_resource_summary(None, None),
            build_resource_summary(tmp_path / "a.csv", str(tmp_path / "b.csv"))):
        values = summary.to_dict()
        assert set(values.values()) == {None}
        assert list(values) == [
            "peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean",
            "power_watts_max", "cpu_usr_mean_pct", "cpu_idle_mean_pct"]
        assert math.isnan(summary.cpu_usr_mean_pct)


def test_summary_reads_pytyches_tables(tmp_path: pathlib.Path) -> None:
    gpu, cpu, dmon = (tmp_path / name for name in ("gpu.csv", "cpu.csv", "dmon.csv"))
    gpu.write_text(
        "2026/11/15 18:17:24.976, 50, 10, 1000, 16000, 100.50, 40, 1500, 5000\n"
        "2026/11/15 18:17:26.976, 70, 20, 3000, 16000, [N/A], 40, 1500, 5000\n")
    cpu.write_text(
        "timestamp,usr_pct,idle_pct\n"
        "2026-11-15T18:17:24.976+00:00,10.0,80.0\n"
        "2026-11-15T18:17:26.976+00:00,30.0,60.0\n")
    dmon.write_text(
        "# gpu     fb   bar1   ccpm     sm    mem    enc    dec\n"
        "# Idx     MB     MB     MB      %      %      %      %\n"
        "    0   1000    257      0     50     11      0      0\n"
        "    0   3000    257      0     70     21      0      0\n")
    summary = build_resource_summary(gpu, cpu, dmon)
    assert summary.peak_vram_mb == 3000
    assert (summary.gpu_util_mean_pct, summary.gpu_util_max_pct) == (60, 70)
    assert (summary.cpu_usr_mean_pct, summary.cpu_idle_mean_pct) == (20, 70)
    assert summary.power_watts_max == 100.5, "the other row has no power, but all else"
    assert summary.mem_util_max_pct < 100, "it is not the megabytes of BAR1"


def test_summary_has_one_decimal_and_leaves_out_what_is_zero() -> None:
    assert list(ResourceSummary().to_dict().values()) == [0.0] * 7
    summary = ResourceSummary(peak_vram_mb=1.26, jax_peak_bytes_mb=2.0, mem_util_mean_pct=3.0)
    values = summary.to_dict()
    assert values["peak_vram_mb"] == 1.3
    assert list(values)[7:] == ["jax_peak_bytes_mb", "mem_util_mean_pct", "mem_util_max_pct"]


def jax_with(monkeypatch: pytest.MonkeyPatch, *devices: object) -> None:
    jax = types.ModuleType("jax")
    jax.local_devices = lambda: list(devices)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", jax)


def test_memory_of_jax_is_that_of_its_first_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def device(platform: str, stats: object) -> object:
        return types.SimpleNamespace(platform=platform, memory_stats=lambda: stats)

    jax_with(
        monkeypatch, device("cpu", None), device("gpu", {"peak_bytes_in_use": 3 * 1024 * 1024}))
    assert probe_jax_peak_memory_mb() == 3.0
    jax_with(monkeypatch, device("gpu", None))
    assert probe_jax_peak_memory_mb() == 0.0
    monkeypatch.setitem(sys.modules, "jax", None)
    assert probe_jax_peak_memory_mb() == 0.0


def test_directory_that_cannot_be_made_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        HWMonitor().start(os.fspath(tmp_path / "file" / "out"))
