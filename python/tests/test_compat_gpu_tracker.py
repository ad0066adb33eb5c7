"""``weigh.compat.gpu_tracker`` against loads whose memory and CPU time are known."""

from __future__ import annotations

import csv
import json
import logging
import math
import os
import pathlib
import pickle
import signal
import sqlite3
import subprocess
import sys

import pytest
from compat_support import LOADS, environment, has, python, python_json

import weigh.compat.gpu_tracker as gput
from weigh.compat.gpu_tracker import tracker as tracker_module

NO_GPU = (
    "Neither the nvidia-smi command nor the amd-smi command is installed. Install one of these to "
    "profile the GPU. Otherwise the GPU RAM and GPU utilization values will remain 0.0."
)

MEASURES = [
    "main_ram", "descendants_ram", "combined_ram", "system_ram", "main_gpu_ram",
    "descendants_gpu_ram", "combined_gpu_ram", "system_gpu_ram", "gpu_sum_utilization_percent",
    "gpu_hardware_utilization_percent", "main_n_threads", "descendants_n_threads",
    "combined_n_threads", "cpu_system_sum_utilization_percent",
    "cpu_system_hardware_utilization_percent", "cpu_main_sum_utilization_percent",
    "cpu_main_hardware_utilization_percent", "cpu_descendants_sum_utilization_percent",
    "cpu_descendants_hardware_utilization_percent", "cpu_combined_sum_utilization_percent",
    "cpu_combined_hardware_utilization_percent", "timestamp",
]


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_memory_and_cpu_time_of_this_process_are_the_kernels(tmp_path: pathlib.Path) -> None:
    found = python_json("""
import json, resource, time
import weigh.compat.gpu_tracker as gput

began = time.perf_counter()
with gput.Tracker(sleep_time=0.1, ram_unit='bytes', time_unit='seconds', disable_logs=True) as t:
    inside, cpu = time.perf_counter(), time.process_time()
    block = touch(300)
    burn(1.0)
    cpu = time.process_time() - cpu
    inside = time.perf_counter() - inside
outside = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({'usage': t.to_json(), 'cpu': cpu, 'peak': peak, 'times': [inside, outside]}))
""", tmp_path)
    usage, (inside, outside) = found["usage"], found["times"]
    assert inside <= usage["compute_time"]["time"] <= outside
    main = usage["max_ram"]["main"]["total_rss"]
    assert 300e6 < main and abs(main - found["peak"]) < 0.02 * found["peak"]
    assert usage["max_ram"]["combined"]["total_rss"] == pytest.approx(main, rel=0.02)
    assert usage["max_ram"]["descendants"] == {
        "total_rss": 0.0, "private_rss": 0.0, "shared_rss": 0.0}
    used = usage["cpu_utilization"]["main"]["mean_sum_percent"] / 100
    assert used * usage["compute_time"]["time"] == pytest.approx(found["cpu"], rel=0.1, abs=0.05)
    assert list(tmp_path.iterdir()) == [], "neither the backup nor the recording is left"


def test_memory_shared_by_a_fork_counts_once(tmp_path: pathlib.Path) -> None:
    found = python_json("""
import json
import weigh.compat.gpu_tracker as gput

blocks = [touch(100) for _ in range(6)]
with gput.Tracker(sleep_time=0.1, ram_unit='bytes', disable_logs=True) as tracker:
    end = waiting_fork()
    burn(1.0)
    end()
print(json.dumps(tracker.to_json()['max_ram']))
""", tmp_path)
    main, combined = found["main"]["total_rss"], found["combined"]["total_rss"]
    assert main > 600e6, "gpu-tracker reports a fourth of it"
    assert main <= combined < 1.1 * main
    assert found["descendants"]["total_rss"] > 0


def test_command_shorter_than_the_interval_has_its_time(tmp_path: pathlib.Path) -> None:
    with gput.Tracker(sleep_time=60.0, time_unit="seconds", disable_logs=True) as tracker:
        pass
    assert tracker.resource_usage is not None
    assert tracker.resource_usage.compute_time.time > 0
    assert tracker.resource_usage.max_ram.main.total_rss > 0


@pytest.fixture
def load() -> subprocess.Popen[str]:  # type: ignore[misc]
    """A process with 200 MB that waits until its input ends."""
    script = LOADS + "import sys\nblock = touch(200)\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_another_process_is_tracked_until_it_exits(load: subprocess.Popen[str]) -> None:
    with gput.Tracker(
            sleep_time=0.1, ram_unit="megabytes", process_id=load.pid,
            disable_logs=True) as tracker:
        load.communicate()
    usage = tracker.resource_usage
    assert usage is not None
    assert 200 < usage.max_ram.main.total_rss < 260


def test_process_that_has_ended_is_a_warning_and_nothing_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with gput.Tracker(process_id=ended.pid) as tracker:
        pass
    warning = f"The target process of ID {ended.pid} ended before tracking could begin."
    assert warning in caplog.messages
    assert tracker.resource_usage is not None
    assert math.isnan(tracker.resource_usage.max_ram.main.total_rss)
    assert tracker.to_json()["max_ram"]["main"]["total_rss"] is None
    assert "Total RSS: null" in str(tracker)


def test_tracking_file_has_the_two_headers_and_22_columns(tmp_path: pathlib.Path) -> None:
    python("""
import weigh.compat.gpu_tracker as gput
for file in ('tracking.csv', 'tracking.sqlite'):
    with gput.Tracker(
            sleep_time=0.1, ram_unit='megabytes', tracking_file=file, disable_logs=True,
            n_expected_cores=2):
        block = touch(100)
        burn(0.5)
""", tmp_path)
    lines = (tmp_path / "tracking.csv").read_bytes().split(b"\r\n")
    assert lines[0].startswith(b"ram_unit,gpu_ram_unit,time_unit,ram_system_capacity,")
    assert lines[1].startswith(b"megabytes,gigabytes,hours,")
    rows = list(csv.DictReader(line.decode() for line in lines[2:] if line))
    assert list(rows[0]) == MEASURES
    assert max(float(row["main_ram"]) for row in rows) > 100
    known = [row["cpu_main_sum_utilization_percent"] for row in rows[1:]]
    assert "" not in known and max(map(float, known)) > 20
    connection = sqlite3.connect(tmp_path / "tracking.sqlite")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(data)")]
    assert columns == MEASURES
    [most] = connection.execute("SELECT max(main_ram) FROM data").fetchone()
    assert most > 100
    [cores] = connection.execute("SELECT n_expected_cores FROM static_data").fetchone()
    assert cores == 2
    connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tracking.csv", "tracking.sqlite"]


def test_existing_tracking_file_is_refused_before_and_replaced_on_request(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "old.csv").write_text("old")
    with pytest.raises(FileExistsError) as refused:
        gput.Tracker(tracking_file="old.csv", disable_logs=True)
    assert str(refused.value) == (
        "File old.csv already exists. Set overwrite to True to overwrite the existing file.")
    assert (tmp_path / "old.csv").read_text() == "old"
    with gput.Tracker(tracking_file="old.csv", overwrite=True, disable_logs=True):
        pass
    assert (tmp_path / "old.csv").read_text().startswith("ram_unit,")


def test_backup_has_the_usage_of_a_killed_process(tmp_path: pathlib.Path) -> None:
    script = LOADS + """
import sys
import weigh.compat.gpu_tracker as gput
tracker = gput.Tracker(
    sleep_time=0.1, ram_unit='bytes', resource_usage_file='backup.pkl', disable_logs=True)
tracker.start()
block = touch(150)
print('ready', flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    backup = tmp_path / "backup.pkl"
    # The recording reaches the disk within seconds.
    while not pickle.loads(backup.read_bytes()).max_ram.main.total_rss > 150e6:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    usage = pickle.loads(backup.read_bytes())
    assert isinstance(usage, gput.ResourceUsage)
    assert usage.max_ram.main.total_rss > 150e6
    assert usage.max_ram.unit == "bytes"


def test_results_up_to_an_exception_are_there() -> None:
    with pytest.raises(RuntimeError, match="AN ERROR"):
        with gput.Tracker(disable_logs=True) as tracker:
            raise RuntimeError("AN ERROR")
    assert tracker.resource_usage is not None
    assert tracker.state is gput.Tracker.State.STOPPED


def test_forked_child_that_leaves_the_block_changes_nothing(tmp_path: pathlib.Path) -> None:
    found = python_json("""
import json, os, sys
import weigh.compat.gpu_tracker as gput
with gput.Tracker(sleep_time=0.1, tracking_file='t.csv', disable_logs=True) as tracker:
    child = os.fork()
    if child == 0:
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    left = [name for name in os.listdir('.') if name.startswith('.')]
    assert status == 0 and len(left) == 2, (status, left)
    burn(0.3)
print(json.dumps(tracker.to_json()['cpu_utilization']['main']))
""", tmp_path)
    assert found["mean_sum_percent"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_trackers_may_nest_and_overlap() -> None:
    outer = gput.Tracker(sleep_time=0.1, time_unit="seconds", disable_logs=True)
    inner = gput.Tracker(sleep_time=0.1, time_unit="seconds", disable_logs=True)
    outer.start()
    inner.start()
    outer.stop()
    inner.stop()
    assert outer.resource_usage is not None and inner.resource_usage is not None


@pytest.mark.parametrize(("arguments", "text"), [
    ({"sleep_time": 0.0}, "Sleep time of 0.0 is invalid. Must be at least 0.1 seconds."),
    ({"sleep_time": math.nan}, "Sleep time of nan is invalid. Must be at least 0.1 seconds."),
    ({"ram_unit": "GB"}, '"GB" is not a valid RAM unit. Valid values are bytes, gigabytes, '
                         "kilobytes, megabytes, terabytes"),
    ({"gpu_ram_unit": "x"}, '"x" is not a valid GPU RAM unit. Valid values are bytes, gigabytes, '
                            "kilobytes, megabytes, terabytes"),
    ({"time_unit": "weeks"}, '"weeks" is not a valid time unit. Valid values are days, hours, '
                             "minutes, seconds"),
    ({"gpu_uuids": set()}, "gpu_uuids is not None but the set is empty. Please provide a set of at "
                           "least one GPU UUID."),
    ({"gpu_brand": "intel"}, '"intel" is not a valid GPU brand. Supported values are "nvidia" and '
                             '"amd".'),
    ({"tracking_file": "t.txt"}, 'Invalid file name: "t.txt". Valid file extensions are ".csv" and '
                                 '".sqlite".'),
    ({"n_expected_cores": 0}, "0 is not a number of cores: at least 1 is expected"),
])
def test_invalid_argument_is_refused_in_gpu_trackers_words(
    arguments: dict[str, object], text: str
) -> None:
    with pytest.raises(ValueError) as refused:
        gput.Tracker(**arguments)  # type: ignore[arg-type]
    assert str(refused.value) == text


def test_states_and_their_messages() -> None:
    tracker = gput.Tracker(disable_logs=True)
    assert repr(tracker) == "State: NEW"

    def refused(action: str) -> str:
        with pytest.raises(RuntimeError) as error:
            getattr(tracker, action)()
        return str(error.value)

    assert refused("stop") == "Cannot stop tracking when tracking has not started yet."
    assert refused("to_json").startswith("Cannot display the tracker in string or JSON format")
    tracker.start()
    assert repr(tracker) == "State: STARTED"
    assert refused("start") == "Cannot start tracking when tracking has already started."
    tracker.stop()
    assert repr(tracker) == "State: STOPPED"
    assert refused("start") == "Cannot start tracking when tracking has already stopped."
    assert refused("stop") == "Cannot stop tracking when tracking has already stopped."


def test_defaults_are_gpu_trackers() -> None:
    import inspect

    parameters = inspect.signature(gput.Tracker).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "sleep_time": 1.0, "ram_unit": "gigabytes", "gpu_ram_unit": "gigabytes",
        "time_unit": "hours", "n_expected_cores": None, "gpu_uuids": None, "disable_logs": False,
        "process_id": None, "resource_usage_file": None, "n_join_attempts": 5,
        "join_timeout": 10.0, "gpu_brand": None, "tracking_file": None, "overwrite": False,
    }


def test_missing_gpu_is_a_warning_unless_logs_are_disabled(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracker_module._native, "gpu_tracker_has_driver", lambda: False)
    monkeypatch.setattr(tracker_module.shutil, "which", lambda tool: None)
    gput.Tracker(disable_logs=True)
    assert caplog.messages == []
    gput.Tracker()
    monkeypatch.setattr(tracker_module.shutil, "which", lambda tool: tool)
    gput.Tracker()
    connection = "The nvidia-smi command is installed but cannot connect to a GPU."
    assert caplog.messages[0] == NO_GPU
    assert caplog.messages[1].startswith(connection)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_text_has_three_decimals_and_json_all(tmp_path: pathlib.Path) -> None:
    with gput.Tracker(disable_logs=True, ram_unit="bytes") as tracker:
        pass
    lines = str(tracker).splitlines()
    assert lines[:2] == ["Max RAM:", "   Unit: bytes"]
    assert "Compute time:" in lines and "   Main number of threads: " in str(tracker)
    json.dumps(tracker.to_json(), allow_nan=False)


def block(name: str, file: str, **more: bool) -> None:
    with gput.SubTracker(code_block_name=name, sub_tracking_file=file, **more):
        pass


@pytest.fixture(params=[".csv", ".sqlite"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_code_blocks_are_paired_as_calls_nest(kind: str) -> None:
    file = "blocks" + kind
    with gput.SubTracker("f", None, file):
        block("f", file)
        block("it's; \"g\"", file)
    analyzer = gput.SubTrackingAnalyzer(None, file)
    assert analyzer.load_code_block_names() == ["f", "it's; \"g\""]
    (outer_start, outer_stop), (inner_start, inner_stop) = analyzer.load_timestamp_pairs("f")
    assert outer_start <= inner_start <= inner_stop <= outer_stop
    assert len(analyzer.load_timestamp_pairs("it's; \"g\"")) == 1


def test_block_is_named_after_its_line_or_function() -> None:
    with gput.SubTracker(sub_tracking_file="a.csv") as tracker:
        pass
    name = os.path.relpath(__file__)
    assert tracker.code_block_name.startswith(f"{name}:")
    assert tracker.code_block_name.split(":")[-1].isdigit()
    decorator = gput.sub_track(sub_tracking_file="b.csv")

    @decorator
    def one(value: int) -> int:
        return value + 1

    @decorator
    def other() -> None:
        pass

    assert one(1) == 2
    other()
    names = gput.SubTrackingAnalyzer(None, "b.csv").load_code_block_names()
    assert names == [f"{os.path.abspath(__file__)}:{name}" for name in ("one", "other")]


def test_file_that_existed_before_is_refused_or_replaced(kind: str) -> None:
    file = "existed" + kind
    pathlib.Path(file).touch()
    with pytest.raises(FileExistsError, match="Set overwrite to True"):
        block("a", file)
    block("a", file, overwrite=True)
    block("a", file, overwrite=True)
    assert len(gput.SubTrackingAnalyzer(None, file).load_timestamp_pairs("a")) == 2
    os.remove(file)
    with pytest.raises(FileNotFoundError) as refused:
        block("a", file)
    assert str(refused.value) == (
        f"The file {file} was removed in the middle of writing data to it.")


def test_rows_of_processes_that_write_to_one_file_do_not_mix(tmp_path: pathlib.Path) -> None:
    python("""
import os
import weigh.compat.gpu_tracker as gput
def blocks():
    for _ in range(200):
        with gput.SubTracker('x' * 200, None, 'shared.csv'):
            pass
blocks()
children = [os.fork() for _ in range(1)]
blocks()
if 0 in children:
    os._exit(0)
for child in children:
    os.waitpid(child, 0)
""", tmp_path)
    pairs = gput.SubTrackingAnalyzer(None, str(tmp_path / "shared.csv"))
    assert len(pairs.load_timestamp_pairs("x" * 200)) == 600


def session(directory: pathlib.Path, kind: str, name: str) -> gput.SubTrackingResults:
    python(f"""
import weigh.compat.gpu_tracker as gput
with gput.Tracker(
        sleep_time=0.1, ram_unit='megabytes', tracking_file='{name}{kind}', disable_logs=True):
    for _ in range(2):
        with gput.SubTracker('load', None, '{name}-blocks{kind}'):
            block = touch(50)
            burn(0.4)
""", directory)
    analyzer = gput.SubTrackingAnalyzer(
        str(directory / f"{name}{kind}"), str(directory / f"{name}-blocks{kind}"))
    return analyzer.sub_tracking_results()


def test_results_of_code_blocks_survive_pickle_and_json(
    tmp_path: pathlib.Path, kind: str
) -> None:
    results = session(tmp_path, kind, "one")
    [load] = results.code_block_results
    assert (load.name, load.num_calls) == ("load", 2)
    values = results.to_json()
    assert values["overall"]["main_ram"]["max"] > 50
    assert values["code_block_results"][0]["compute_time"]["total"] >= 0.8
    assert str(results).startswith("Overall:\n")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path = tmp_path / f"results-{protocol}.pkl"
        path.write_bytes(pickle.dumps(results, protocol))
        assert pickle.loads(path.read_bytes()).to_json() == values
        comparison = gput.TrackingComparison({"a": str(path)})
        assert comparison.results_map["a"].to_json() == values
    (tmp_path / "results.json").write_text(json.dumps(values))
    both = {"a": str(tmp_path / "results.json"), "b": str(tmp_path / "results-4.pkl")}
    compared = gput.TrackingComparison(both).compare("max").to_json()
    most = values["overall"]["main_ram"]["max"]
    assert compared["overall_resource_usage"]["main_ram"] == {"a": most, "b": most}


@pytest.mark.skipif(bool(has("pandas")), reason="pandas is not installed")
def test_tables_are_pandas_objects(tmp_path: pathlib.Path) -> None:
    results = session(tmp_path, ".csv", "one")
    [load] = results.code_block_results
    assert results.overall.loc["main_ram", "max"] > 50
    assert results.static_data["ram_unit"] == "megabytes"
    assert list(load.compute_time.index) == ["min", "max", "mean", "std", "total"]
    assert list(load.resource_usage.index) == MEASURES[:-1]
    analyzer = gput.SubTrackingAnalyzer(
        str(tmp_path / "one.csv"), str(tmp_path / "one-blocks.csv"))
    points = analyzer.load_timepoints(analyzer.load_timestamp_pairs("load"))
    assert list(points.columns) == MEASURES
    assert len(points) == load.num_timepoints
    overall = analyzer.overall_timepoint_results()
    assert overall.equals(results.overall)
    assert analyzer.read_static_data().equals(results.static_data)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(results))
    compared = gput.TrackingComparison({"a": str(tmp_path / "a.pkl")}).compare()
    assert compared.code_block_compute_time["load"]["a"] == load.compute_time["mean"]
    assert compared.code_block_resource_usage["main_ram"]["load"]["a"] > 0
    assert compared.overall_resource_usage["main_ram"]["a"] > 0


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("executed",)


def test_pickle_of_another_program_is_refused_and_not_executed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "hostile.pkl"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Hostile(), protocol))
        with pytest.raises(ValueError, match="it holds no results of weigh"):
            gput.TrackingComparison({"a": str(path)})
    for contents in (b"", b"\x80\x04", b"{", b"{}", b"\x80\x04K\x01."):
        path.write_bytes(contents)
        with pytest.raises(ValueError):
            gput.TrackingComparison({"a": str(path)})
    assert not os.path.exists("executed")


def test_files_are_combined_and_an_existing_one_is_refused(kind: str) -> None:
    for name in ("one", "other"):
        block(name, f"{name}{kind}")
    analyzer = gput.SubTrackingAnalyzer(None, "all" + kind)
    files = [f"one{kind}", f"other{kind}"]
    analyzer.combine_sub_tracking_files(files)
    assert analyzer.load_code_block_names() == ["one", "other"]
    with pytest.raises(ValueError, match="Cannot create sub-tracking file all.* already exists"):
        analyzer.combine_sub_tracking_files(files)


def test_neither_pandas_nor_numpy_nor_psutil_is_needed(tmp_path: pathlib.Path) -> None:
    python("""
import sys
for name in ('pandas', 'numpy', 'psutil', 'sqlalchemy'):
    sys.modules[name] = None
import weigh.compat.gpu_tracker as gput
with gput.Tracker(sleep_time=0.1, tracking_file='t.csv', disable_logs=True) as tracker:
    with gput.SubTracker('x', None, 'x.csv'):
        burn(0.3)
results = gput.SubTrackingAnalyzer('t.csv', 'x.csv').sub_tracking_results()
str(tracker), str(results), results.to_json()
try:
    results.overall
except ImportError as error:
    assert 'pip install pandas' in str(error)
else:
    raise AssertionError
""", tmp_path)
