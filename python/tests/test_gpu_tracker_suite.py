"""gpu-tracker's own tests against ``weigh.compat.gpu_tracker``.

They come with its source package, and run unchanged. Those that cannot apply are below, each with
the reason and with what is tested instead.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from compat_support import environment
from originals import gpu_tracker_sources, need

import weigh.compat.gpu_tracker as gput
from weigh import _native

#: Why a test replaces something that does not exist here.
_NO_PROCESS = "it replaces methods of the process that gpu-tracker forks; nothing is forked here. "
_NO_SMI = "it replaces the output of nvidia-smi and amd-smi, which are not started here. "
_NATIVE = (
    "it replaces Tracker, Popen and print inside a command line that is written in Python; this one "
    "is the native program. "
)

NOT_APPLICABLE = {
    "tests/test_tracker.py::test_tracker": (
        "it replaces psutil, time, the event and the process of the tracker, and compares with numbers "
        "that follow from these calls. Instead: its 16 texts are compared with their JSON here, and "
        "numbers with those of the kernel in test_compat_gpu_tracker.py"),
    "tests/test_tracker.py::test_cannot_connect_warnings": (
        _NO_SMI + "Instead: test_missing_gpu_is_a_warning_unless_logs_are_disabled has its texts"),
    "tests/test_tracker.py::test_main_process_warnings": (
        _NO_PROCESS + "There is no process that could fail to be joined, so there are no such warnings"),
    "tests/test_tracker.py::test_tracking_process_warnings": (
        _NO_PROCESS + "Instead: test_process_that_has_ended_is_a_warning_and_nothing_is_known"),
    "tests/test_tracker.py::test_validate_arguments": (
        _NO_SMI + "Its UUIDs come from there, and it counts the calls. Instead: "
        "test_invalid_argument_is_refused_in_gpu_trackers_words has all its other texts, and "
        "it::gpu_tracker of the program the one about UUIDs"),
    "tests/test_tracker.py::test_resource_usage_file": (
        _NO_PROCESS + "Instead: test_backup_has_the_usage_of_a_killed_process"),
    "tests/test_cli.py::test_execute": _NATIVE + "Instead: it::gpu_tracker of the program",
    "tests/test_cli.py::test_errors": _NATIVE + "Instead: test_errors_of_the_command_line_are_gpu_trackers",
    "tests/test_cli.py::test_analyze": _NATIVE + "Instead: it::gpu_tracker_golden of the program",
    "tests/test_cli.py::test_combine": _NATIVE + "Instead: it::gpu_tracker_golden of the program",
    "tests/test_cli.py::test_compare": _NATIVE + "Instead: it::gpu_tracker_golden of the program",
}

#: Tests that apply and differ in something that is right here.
DIFFERENT = {
    "tests/test_sub_tracker.py::test_invalid_file": (
        "the error has the timestamp 1745449613.5325918 as it is in the file; gpu-tracker reads it with "
        "pandas' fast parser, which gives the neighbour 1745449613.532592. Instead: "
        "test_error_of_an_invalid_file_has_the_timestamps_of_the_file"),
}

#: What is left, with its parameters: two tests of the tracker and seven of code blocks.
APPLICABLE = 20

#: Stored results are pickles of gpu-tracker's classes, which weigh never unpickles: the original
#: writes them as JSON, under the same names.
CONVERT = """
import glob, json, pickle
for path in glob.glob("tests/data/sub-tracking-results/results-*.pkl"):
    with open(path, "rb") as file:
        results = pickle.load(file)
    with open(path, "w") as file:
        json.dump(results.to_json(), file)
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    need("gpu_tracker", "deepdiff", "pytest_mock", "sqlalchemy")
    directory = gpu_tracker_sources(tmp_path_factory.mktemp("sources"))
    subprocess.run([sys.executable, "-c", CONVERT], cwd=directory, check=True)
    return directory


def pytest_of(sources: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    here = os.path.dirname(__file__)
    variables = environment()
    variables["PYTHONPATH"] = os.pathsep.join([here, variables["PYTHONPATH"]])
    command = [sys.executable, "-m", "pytest", "-p", "gpu_tracker_alias", "-p", "no:cacheprovider"]
    command += ["-q", "-rA", "--tb=short", "-c", os.devnull, "--rootdir", ".", *options, "tests"]
    return subprocess.run(
        command, cwd=sources, env=variables, capture_output=True, text=True, check=False)


def test_every_test_that_can_apply_passes(sources: pathlib.Path) -> None:
    deselected = [f"--deselect={test}" for test in (*NOT_APPLICABLE, *DIFFERENT)]
    done = pytest_of(sources, *deselected)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b{APPLICABLE} passed", done.stdout), done.stdout


def test_every_test_that_is_left_out_exists(sources: pathlib.Path) -> None:
    listed = pytest_of(sources, "--collect-only").stdout.splitlines()
    for test in (*NOT_APPLICABLE, *DIFFERENT):
        assert any(line.split("[")[0] == test for line in listed), test


def test_texts_of_results_are_gpu_trackers(sources: pathlib.Path) -> None:
    results = sorted((sources / "tests" / "data").glob("*e-*.json"))
    assert len(results) == 16
    for result in results:
        text = _native.gpu_tracker_text(json.dumps(json.loads(result.read_text())))
        assert text == result.with_suffix(".txt").read_text(), result.name


@pytest.mark.parametrize(("arguments", "text"), [
    (["-e", ""], "Empty command provided."),
    (["-e", "no-such-command"], 'Command not found: "no-such-command"'),
    (["-e", "true", "-f", "invalid-format"],
     '"invalid-format" is not a valid format. Valid values are "json" or "text".'),
    (["sub-track", "compare"],
     "A mapping of tracking session name to file path must be provided either through the -m option "
     "or a config file."),
])
def test_errors_of_the_command_line_are_gpu_trackers(arguments: list[str], text: str) -> None:
    command = [sys.executable, "-m", "weigh.compat.gpu_tracker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode != 0
    assert text in done.stderr


@pytest.mark.parametrize(("file", "text"), [
    ("invalid1.csv", "(1745449613.5325918, 1745449609.7528224) with differing process IDs: 1723811 and 1723812."),
    ("invalid2.csv", "(1745449609.7528222, 1745449613.5325918) of process ID 1723811 with a start time greater "
                     "than the stop time."),
])
def test_error_of_an_invalid_file_has_the_timestamps_of_the_file(
        sources: pathlib.Path, file: str, text: str) -> None:
    path = sources / "tests" / "data" / "sub-tracking-results" / file
    analyzer = gput.SubTrackingAnalyzer(None, sub_tracking_file=os.fspath(path))
    with pytest.raises(ValueError) as error:
        analyzer.load_timestamp_pairs("X")
    assert str(error.value) == f"Sub-tracking file is invalid. Detected timestamp pair {text}"
