"""Scripts of the tools that ``weigh.compat`` stands for, beside the tools themselves.

A script runs twice, and only its import differs. Its load is known: the kernel counts the CPU time
and the memory of the same process. Where a tool is known to be wrong, the test shows both numbers.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from compat_support import environment, python, python_json
from originals import gpu_tracker_sources, need

from weigh import _native

GPU_TRACKER = ("gpu_tracker", "weigh.compat.gpu_tracker")
PYTYCHE = ("pytyche.diagnostics.run_monitor", "weigh.compat.pytyche.diagnostics.run_monitor")
OASISLMF = ("oasislmf.execution.resource_monitor", "weigh.compat.oasislmf.execution.resource_monitor")


def beside(modules: tuple[str, str], script: str, directory: pathlib.Path) -> tuple[Any, Any]:
    """The JSON that a script prints: with the original, and with weigh."""
    need(modules[0].partition(".")[0])
    found = []
    for number, module in enumerate(modules):
        where = directory / str(number)
        where.mkdir()
        found.append(python_json(script.replace("MODULE", module), where))
    return found[0], found[1]


# gpu-tracker

def test_memory_that_a_fork_shares_is_missed_by_gpu_tracker_and_not_here(
    tmp_path: pathlib.Path,
) -> None:
    theirs, ours = beside(GPU_TRACKER, """
import json, mmap
import MODULE as gput

def block(advice):
    memory = mmap.mmap(-1, 50_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # The kernel makes one mapping of neighbours, unless their flags differ.
    memory.madvise(advice)
    for place in range(0, len(memory), 4096):
        memory[place] = 1
    return memory

blocks = [block(advice) for advice in 3 * [mmap.MADV_SEQUENTIAL, mmap.MADV_RANDOM]]
with gput.Tracker(sleep_time=0.1, ram_unit='bytes', disable_logs=True) as tracker:
    end = waiting_fork()
    burn(1.5)
    # All that the child has is also in this process.
    [truth] = [
        int(line.split()[1]) * 1024 for line in open('/proc/self/smaps_rollup')
        if line.startswith('Rss:')]
    end()
print(json.dumps([tracker.to_json()['max_ram']['combined']['total_rss'], truth]))
""", tmp_path)
    (theirs, their_truth), (ours, our_truth) = theirs, ours
    assert our_truth > 300e6 and their_truth > 300e6
    assert theirs < 0.6 * their_truth, "gpu-tracker has mended it"
    assert ours == pytest.approx(our_truth, rel=0.1)


def test_time_until_the_last_sample_is_not_the_time_of_the_block(tmp_path: pathlib.Path) -> None:
    theirs, ours = beside(GPU_TRACKER, """
import json, time
import MODULE as gput

with gput.Tracker(sleep_time=3.0, time_unit='seconds', disable_logs=True) as tracker:
    began = time.perf_counter()
    time.sleep(1.0)
    inside = time.perf_counter() - began
print(json.dumps([tracker.to_json()['compute_time']['time'], inside]))
""", tmp_path)
    assert theirs[0] < 0.9 * theirs[1], "gpu-tracker has mended it"
    assert ours[1] <= ours[0] < ours[1] + 0.5


def test_daemon_is_followed_after_its_parent_has_exited(tmp_path: pathlib.Path) -> None:
    theirs, ours = beside(GPU_TRACKER, """
import json, os, subprocess, sys
import MODULE as gput

load = '''
import os, sys, time
parent = os.getpid()
if os.fork():
    # Longer than an interval: who exits between two samples leaves no trace of his children.
    time.sleep(0.5)
    os._exit(0)
os.setsid()
while os.getppid() == parent:
    time.sleep(0.01)
block = bytearray(100_000_000)
for place in range(0, len(block), 4096):
    block[place] = 1
print('ready', flush=True)
sys.stdin.read()
'''
with gput.Tracker(sleep_time=0.1, ram_unit='bytes', disable_logs=True) as tracker:
    child = subprocess.Popen(
        [sys.executable, '-c', load], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    burn(0.5)
    child.communicate()
print(json.dumps(tracker.to_json()['max_ram']['descendants']['total_rss']))
""", tmp_path)
    assert theirs < 50e6, "gpu-tracker has mended it"
    assert ours > 100e6


def test_nested_blocks_of_one_name_are_paired_as_calls_nest(tmp_path: pathlib.Path) -> None:
    theirs, ours = beside(GPU_TRACKER, """
import json
import MODULE as gput

def block():
    return gput.SubTracker(code_block_name='f', sub_tracking_file='blocks.csv')

with block():
    burn(0.1)
    with block():
        burn(0.2)
    burn(0.1)
pairs = gput.SubTrackingAnalyzer(None, 'blocks.csv').load_timestamp_pairs('f')
print(json.dumps(sorted(stop - start for start, stop in pairs)))
""", tmp_path)
    assert theirs[1] < 0.35, "gpu-tracker has mended it"
    assert ours[1] >= 0.4 and 0.2 <= ours[0] < ours[1]


# Stands for PyTorch with CUDA, which the tutorial of gpu-tracker computes with.
TORCH = """
import array

class Tensor:
    def __init__(self, values):
        self.values = array.array("q", values)

    def cuda(self):
        return self

    def __mul__(self, other):
        return Tensor(self.values)

def tensor(values):
    return Tensor(values)
"""

# Runs the cells of a notebook, and notes what each tracker reports, beside what the kernel counts.
NOTEBOOK = """
import json, resource, sys, time
space, noted, last = {"__name__": "__main__"}, [], None
for cell in json.load(open("cells.json")):
    wall, cpu = time.perf_counter(), time.process_time()
    exec(compile(cell, "cell", "exec"), space)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    tracker = space.get("tracker")
    if tracker is not last and getattr(tracker, "resource_usage", None) is not None:
        last = tracker
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        noted.append({"usage": tracker.to_json(), "wall": wall, "cpu": cpu, "peak": peak})
        json.dump(noted, open("noted.json", "w"))
"""

SECONDS = {"seconds": 1.0, "hours": 3600.0}
BYTES = {"megabytes": 1e6, "gigabytes": 1e9}


@pytest.fixture(scope="module", params=GPU_TRACKER)
def tutorial(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, pathlib.Path, list[list[str]]]:
    """The notebook of gpu-tracker's tutorial: its directory, and the cells of its programs."""
    need("gpu_tracker", "pandas")
    directory = gpu_tracker_sources(tmp_path_factory.mktemp("tutorial")) / "docs" / "notebook"
    for old in ("tracking.csv", "sub-tracking.csv", "results.pkl", "results2.pkl", "combined-file.csv"):
        (directory / old).unlink()
    (directory / "torch.py").write_text(TORCH)
    notebook = json.loads((directory / "tutorial.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    # The first program ends with os._exit; the next begins with its import.
    programs: list[list[str]] = [[]]
    for cell in cells:
        if cell.startswith("import gpu_tracker") and programs[-1]:
            programs.append([])
        programs[-1].append(cell.replace("import gpu_tracker as", f"import {request.param} as"))
    return request.param, directory, programs


def runs_here(cell: str) -> bool:
    # One cell of the notebook is a sentence; one is an error for both where there is no such GPU.
    is_python = not cell.startswith(("!", "Storing the results"))
    return is_python and ("gpu_brand=" not in cell or _native.gpu_tracker_has_driver())


@pytest.mark.originals
def test_tutorial_of_gpu_tracker_runs_with_one_changed_import(
    tutorial: tuple[str, pathlib.Path, list[list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    module, directory, programs = tutorial
    assert len(programs) == 2
    variables = environment()
    variables["PYTHONPATH"] = os.pathsep.join([os.fspath(directory), variables["PYTHONPATH"]])
    for cells in programs:
        (directory / "cells.json").write_text(json.dumps([cell for cell in cells if runs_here(cell)]))
        # In no file, as in a notebook: workers do not import it.
        done = subprocess.run(
            [sys.executable, "-c", NOTEBOOK], cwd=directory, env=variables, text=True,
            capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        if cells is programs[0]:
            noted = json.loads((directory / "noted.json").read_text())
    assert {"results.pkl", "results2.pkl", "tracking.csv"} <= set(os.listdir(directory))
    # with, start and stop, units, a child process, an exception, code blocks
    assert len(noted) == 6
    for number, one in enumerate(noted):
        usage = one["usage"]
        memory = usage["max_ram"]["main"]["total_rss"] * BYTES[usage["max_ram"]["unit"]]
        seconds = usage["compute_time"]["time"] * SECONDS[usage["compute_time"]["unit"]]
        used = usage["cpu_utilization"]["main"]["mean_sum_percent"] / 100 * seconds
        with capsys.disabled():
            print(
                f"\n{module}, tracker {number + 1}: memory {memory / 1e6:.0f} MB (kernel "
                f"{one['peak'] / 1e6:.0f}), time {seconds:.2f} s (cell {one['wall']:.2f}), CPU time "
                f"{used:.2f} s (kernel {one['cpu']:.2f})", end="")
        if module == "gpu_tracker":
            continue
        # The list of ten million numbers alone has 400 MB.
        assert memory > 400e6 and memory == pytest.approx(one["peak"], rel=0.05)
        # The second cell of a tracker that spans two is not timed here.
        if number < 5:
            assert one["wall"] - 0.5 <= seconds <= one["wall"]
            assert used == pytest.approx(one["cpu"], rel=0.1, abs=0.1)
    descendants = noted[3]["usage"]["max_ram"]["descendants"]["total_rss"]
    assert descendants > 0.4


@pytest.mark.originals
def test_commands_of_the_tutorial_run(
    tutorial: tuple[str, pathlib.Path, list[list[str]]], tmp_path: pathlib.Path
) -> None:
    module, directory, programs = tutorial
    # Needs the results that the other test leaves behind.
    if not (directory / "results2.pkl").exists():
        pytest.skip("the tutorial has not run")
    (tmp_path / "gpu-tracker").write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
    (tmp_path / "gpu-tracker").chmod(0o755)
    variables = environment()
    variables["PATH"] = os.pathsep.join(
        [os.fspath(tmp_path), os.path.dirname(sys.executable), variables["PATH"]])
    commands = [cell[1:] for cells in programs for cell in cells if cell.startswith("!")]
    assert sum(command.startswith("gpu-tracker") for command in commands) >= 9
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=directory, env=variables, text=True, capture_output=True,
            check=False)
        if module != "gpu_tracker" and "compare" in command and ".pkl" in command:
            # The program reads no pickle, which would execute what is in it; JSON it compares.
            assert done.returncode == 2 and "--format json" in done.stderr
            continue
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if "-o " not in command and " -e " in command:
            assert "Resource tracking complete. Process completed with status code: 0" in done.stdout
    result = json.loads((directory / "out.json").read_text())
    assert result["max_ram"]["descendants"]["total_rss"] > 0.4, "the script runs below bash"


# pytyche

SWEEP = """
import json, pathlib, time
from MODULE import HWMonitor, RunLog, build_resource_summary, probe_jax_peak_memory_mb

log, monitor = RunLog(), HWMonitor()
def jiffies():
    return [int(value) for value in open("/proc/stat").readline().split()[1:9]]
before = jiffies()
monitor.start(pathlib.Path("hw"), interval_sec=1)
began = time.perf_counter()
burn(3.2)
log.log_phase("fit", time.perf_counter() - began, draws=100)
log.log_event("converged", {"rhat": 1.01})
gpu, cpu, dmon = monitor.stop()
passed = [after - first for first, after in zip(before, jiffies())]
log.write(pathlib.Path("run_log.jsonl"))
summary = build_resource_summary(gpu, cpu, dmon)
summary.jax_peak_bytes_mb = probe_jax_peak_memory_mb()
print(json.dumps({
    "summary": summary.to_dict(), "log": pathlib.Path("run_log.jsonl").read_text().splitlines(),
    "user": 100 * (passed[0] + passed[1]) / sum(passed), "idle": 100 * passed[3] / sum(passed),
    "header": cpu.read_text().splitlines()[0], "files": sorted(p.name for p in cpu.parent.iterdir())}))
"""


def test_sweep_with_pytyches_monitor_has_the_same_keys_and_the_kernels_shares(
    tmp_path: pathlib.Path,
) -> None:
    theirs, ours = beside(PYTYCHE, SWEEP, tmp_path)
    assert list(ours["summary"]) == list(theirs["summary"]) and ours["header"] == theirs["header"]
    assert [list(json.loads(line)) for line in ours["log"]] == [
        list(json.loads(line)) for line in theirs["log"]]
    for found in (theirs, ours):
        # The kernel counts in steps of 10 ms, and the last interval may be cut.
        assert found["summary"]["cpu_usr_mean_pct"] == pytest.approx(found["user"], abs=12)
    assert ours["summary"]["cpu_idle_mean_pct"] == pytest.approx(ours["idle"], abs=12)
    # Without a GPU pytyche leaves two empty tables and says 0; nothing is known.
    if theirs["summary"]["peak_vram_mb"] == 0.0:
        assert ours["summary"]["peak_vram_mb"] is None
        assert ours["files"] == ["cpu_metrics.csv"]


def test_tables_that_pytyche_misreads_are_read_right(tmp_path: pathlib.Path) -> None:
    theirs, ours = beside(PYTYCHE, """
import json, pathlib
from MODULE import RunLog, build_resource_summary

gpu, dmon = pathlib.Path("gpu.csv"), pathlib.Path("dmon.csv")
gpu.write_text(
    "2026/11/15 18:17:24.976, 50, 10, 1000, 16000, 100.50, 40, 1500, 5000\\n"
    "2026/11/15 18:17:24.976, 90, 20, 9000, 16000, [N/A], 40, 1500, 5000\\n")
dmon.write_text(
    "# gpu     fb   bar1   ccpm     sm    mem    enc    dec\\n"
    "# Idx     MB     MB     MB      %      %      %      %\\n"
    "    0   1000    257      0     50     10      0      0\\n"
    "    1   9000    257      0     90     20      0      0\\n")
log = RunLog()
log.log_phase("fit", 1.0, ts="OVERWRITTEN")
log.write(pathlib.Path("log.jsonl"))
summary = build_resource_summary(gpu, None, dmon)
print(json.dumps({
    "bar1": summary.mem_util_max_pct, "memory": summary.peak_vram_mb, "busy": summary.gpu_util_max_pct,
    "ts": json.loads(pathlib.Path("log.jsonl").read_text())["ts"]}))
""", tmp_path)
    assert (theirs["bar1"], ours["bar1"]) == (257, 20)
    assert (theirs["memory"], ours["memory"]) == (1000, 9000), "a row without power is a row"
    assert (theirs["busy"], ours["busy"]) == (50, 90)
    assert theirs["ts"] == "OVERWRITTEN" and ours["ts"].startswith("20")


# oasislmf

OASIS = """
import csv, json, os, subprocess, sys, time
from MODULE import ResourceMonitor

load = '''
import sys, time
block = bytearray(60_000_000)
for place in range(0, len(block), 4096):
    block[place] = 1
end = time.process_time() + 1.0
while time.process_time() < end:
    pass
print('ready', flush=True)
sys.stdin.read()
'''
def tool(name):
    with open(name, 'w') as file:
        file.write('#!' + sys.executable + chr(10) + load)
    os.chmod(name, 0o755)

tool('fmpy')
tool('katpy')
# Another run on the same machine, and an editor with the name of a tool in its command line.
other = subprocess.Popen(['./katpy'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
editor = subprocess.Popen(['tail', '-f', '/dev/null', 'fmpy'], stdout=subprocess.DEVNULL)
other.stdout.readline()
bash = subprocess.Popen(
    ['bash', '-c', 'read line; ./fmpy; true'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
monitor = ResourceMonitor('log', poll_interval=0.2)
monitor.start(bash.pid)
bash.stdin.write(b'go' + bytes([10]))
bash.stdin.flush()
bash.stdout.readline()
[fmpy] = open(f'/proc/{bash.pid}/task/{bash.pid}/children').read().split()
truth = sum(map(int, open(f'/proc/{fmpy}/stat').read().rpartition(')')[2].split()[11:13]))
# Both poll: a whole interval after its work.
time.sleep(0.5)
bash.communicate()
monitor.stop()
for process in (other, editor):
    process.kill()
    process.communicate()
rows = list(csv.DictReader(open('log/resource_monitor.csv', newline='')))
print(json.dumps({
    'rows': rows, 'fmpy': int(fmpy), 'cpu': truth / os.sysconf('SC_CLK_TCK'),
    'header': open('log/resource_monitor.csv').readline()}))
"""


def test_tools_of_a_model_run_are_measured_and_not_those_of_others(tmp_path: pathlib.Path) -> None:
    need("psutil")
    theirs, ours = beside(OASISLMF, OASIS, tmp_path)
    assert ours["header"] == theirs["header"]
    # oasislmf counts another run, an editor and the shell around the tool.
    assert len({row["pid"] for row in theirs["rows"]}) > 1
    assert {int(row["pid"]) for row in ours["rows"]} == {ours["fmpy"]}
    for found in (theirs, ours):
        mine = [row for row in found["rows"] if int(row["pid"]) == found["fmpy"]]
        assert max(int(row["rss_kb"]) for row in mine) * 1024 == pytest.approx(70e6, rel=0.15)
        used = max(float(row["cpu_user_s"]) + float(row["cpu_sys_s"]) for row in mine)
        assert used == pytest.approx(found["cpu"], rel=0.05)
    first = [float(row["cpu_pct"]) for row in ours["rows"]][0]
    their_first = [row for row in theirs["rows"] if int(row["pid"]) == theirs["fmpy"]][0]
    assert float(their_first["cpu_pct"]) == 0.0 and first > 0, "the first poll of a process"


# What nobody needs

def test_jax_torch_and_mlflow_are_not_needed(tmp_path: pathlib.Path) -> None:
    python("""
import sys
for name in ('jax', 'torch', 'mlflow', 'wandb', 'numpy', 'pandas', 'psutil', 'lightning', 'IPython'):
    sys.modules[name] = None
import weigh, weigh.compat.gpu_tracker as gput
from weigh.compat.pytyche import HWMonitor, probe_jax_peak_memory_mb
from weigh.compat.oasislmf import ResourceMonitor
with weigh.track(record=False) as run, weigh.phase('x'):
    burn(0.05)
assert run.snapshot()['cpu/time_seconds'] > 0
with gput.Tracker(disable_logs=True) as tracker:
    pass
assert 'Max RAM' in str(tracker) and probe_jax_peak_memory_mb() == 0.0
for absent in ('mlflow', 'wandb'):
    try:
        __import__(f'weigh.integrations.{absent}', fromlist=['logger']).logger(run)
    except ImportError as error:
        assert absent in str(error)
    else:
        raise AssertionError(absent)
""", tmp_path)
