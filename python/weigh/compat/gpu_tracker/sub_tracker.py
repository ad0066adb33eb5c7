"""Code blocks: when they ran, what each used, and how sessions compare.

Analysis is weigh's. Tables are given as pandas objects, as gpu-tracker does; pandas is imported
when one is asked for. ``to_json()`` and ``str()`` work without it.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging as log
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeAlias, TypeVar

from weigh import _native

from . import _block_file, _stored_results

__all__ = [
    "CodeBlockResults",
    "ComparisonResults",
    "SubTracker",
    "SubTrackingAnalyzer",
    "SubTrackingResults",
    "TrackingComparison",
    "sub_track",
]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: pandas is optional, so its types cannot be named here.
DataFrame: TypeAlias = Any
Series: TypeAlias = Any

_START = 0
_STOP = 1


class SubTracker:
    """Logs when a code block starts and stops, to be analysed beside a tracking file.

    :param code_block_name: The name of the block; by default the file of the caller, a colon, and
        ``code_block_attribute``.
    :param code_block_attribute: By default the line of the caller.
    :param sub_tracking_file: A .csv or .sqlite file; by default the id of this process with .csv.
    :param overwrite: Whether a file that existed before is replaced.
    """

    def __init__(
        self,
        code_block_name: str | None = None,
        code_block_attribute: str | None = None,
        sub_tracking_file: str | None = None,
        overwrite: bool = False,
    ) -> None:
        if code_block_name is None:
            caller = sys._getframe(1)
            attribute = caller.f_lineno if code_block_attribute is None else code_block_attribute
            code_block_name = f"{os.path.relpath(caller.f_code.co_filename)}:{attribute}"
        self.code_block_name = code_block_name
        self.process_id = os.getpid()
        if sub_tracking_file is None:
            sub_tracking_file = f"{self.process_id}.csv"
        _block_file.check_name(sub_tracking_file)
        self.sub_tracking_file = sub_tracking_file
        self._overwrite = overwrite

    def __enter__(self) -> SubTracker:
        self._log(_START)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._log(_STOP)

    def _log(self, position: int) -> None:
        row = {
            "process_id": self.process_id,
            "code_block_name": self.code_block_name,
            "position": position,
            "timestamp": time.time(),
        }
        _block_file.append(self.sub_tracking_file, row, self._overwrite)


def sub_track(
    code_block_name: str | None = None,
    code_block_attribute: str | None = None,
    sub_tracking_file: str | None = None,
    overwrite: bool = False,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """A decorator that logs every call of a function as a code block.

    The parameters are those of :class:`SubTracker`, but ``code_block_attribute`` is the name of
    the function by default.
    """

    def decorator(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        name = code_block_name
        if name is None:
            file = os.path.abspath(sys._getframe(1).f_code.co_filename)
            attribute = code_block_attribute
            name = f"{file}:{function.__name__ if attribute is None else attribute}"

        @functools.wraps(function)
        def wrapper(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            with SubTracker(name, None, sub_tracking_file, overwrite):
                return function(*args, **kwargs)

        return wrapper

    return decorator


class SubTrackingAnalyzer:
    """Joins a tracking file with the code blocks that were logged while it was written.

    :param tracking_file: What a ``Tracker`` has written, or a recording of weigh.
    :param sub_tracking_file: What ``SubTracker`` objects have written, or a recording: its phases
        are code blocks.
    """

    def __init__(self, tracking_file: str | None, sub_tracking_file: str) -> None:
        for path in (tracking_file, sub_tracking_file):
            if path is not None and not os.path.isdir(path):
                _block_file.check_name(path)
        self._tracking_file = tracking_file
        self._sub_tracking_file = sub_tracking_file

    def read_static_data(self) -> Series:
        """Units, capacities and numbers of cores and GPUs."""
        return _pandas().Series(json.loads(_native.gpu_tracker_static_data(self._tracking())))

    def load_code_block_names(self) -> list[str]:
        """The names of the code blocks, sorted."""
        return _native.gpu_tracker_block_names(self._sub_tracking_file)

    def combine_sub_tracking_files(self, files: list[str]) -> None:
        """Writes the rows of these files into ``sub_tracking_file``, which must not exist."""
        _native.gpu_tracker_combine(list(files), self._sub_tracking_file)

    def load_timestamp_pairs(self, code_block_name: str) -> list[tuple[float, float]]:
        """When each call of a code block started and stopped."""
        return _native.gpu_tracker_timestamp_pairs(self._sub_tracking_file, code_block_name)

    def load_timepoints(self, timestamp_pairs: list[tuple[float, float]]) -> DataFrame:
        """The rows of the tracking file within any of these times."""
        columns = _native.gpu_tracker_timepoints(self._tracking(), timestamp_pairs)
        return _pandas().DataFrame(json.loads(columns))

    def overall_timepoint_results(self) -> DataFrame:
        """Statistics of each measure over the whole tracking file."""
        return _table(json.loads(_native.gpu_tracker_overall(self._tracking())))

    def sub_tracking_results(self) -> SubTrackingResults:
        """Statistics over the whole tracking file, and over the calls of each code block."""
        results = _native.gpu_tracker_analyze(self._tracking(), self._sub_tracking_file)
        return SubTrackingResults(json.loads(results))

    def _tracking(self) -> str:
        if self._tracking_file is None:
            raise ValueError("There is no tracking file: this analyzer was made without one.")
        return self._tracking_file


class CodeBlockResults:
    """What a code block used."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        #: Its name.
        self.name: str = values["name"]
        #: Samples within its calls.
        self.num_timepoints: int = values["num_timepoints"]
        self.num_calls: int = values["num_calls"]
        #: Calls with a sample in them.
        self.num_non_empty_calls: int = values["num_non_empty_calls"]

    @property
    def compute_time(self) -> Series:
        """Minimum, maximum, mean, standard deviation and sum of the times of its calls, in s."""
        return _pandas().Series(self._values["compute_time"])

    @property
    def resource_usage(self) -> DataFrame:
        """Statistics of each measure over the samples within its calls."""
        return _table(self._values["resource_usage"])

    def to_json(self) -> dict[str, Any]:
        """The same as a dict."""
        return dict(self._values)


class SubTrackingResults:
    """What a session used, as a whole and in each code block."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._overall: dict[str, dict[str, float]] = values["overall"]
        self._static_data: dict[str, Any] = values["static_data"]
        self.code_block_results = [
            CodeBlockResults(block) for block in values["code_block_results"]]

    @property
    def overall(self) -> DataFrame:
        """Statistics of each measure over the whole session."""
        return _table(self._overall)

    @property
    def static_data(self) -> Series:
        """Units, capacities and numbers of cores and GPUs."""
        return _pandas().Series(self._static_data)

    def to_json(self) -> dict[str, Any]:
        """The same as a dict."""
        blocks = [block.to_json() for block in self.code_block_results]
        return {
            "overall": self._overall,
            "static_data": self._static_data,
            "code_block_results": blocks,
        }

    def __str__(self) -> str:
        return _native.gpu_tracker_results_text(json.dumps(self.to_json()))

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return _stored_results.restore, (json.dumps(self.to_json()),)


class ComparisonResults:
    """One statistic of several sessions, for each measure and code block, the least first."""

    def __init__(self, values: dict[str, Any], text: str) -> None:
        self._values = values
        self._text = text

    @property
    def overall_resource_usage(self) -> dict[str, Series]:
        """By measure."""
        return _all_series(self._values["overall_resource_usage"])

    @property
    def code_block_resource_usage(self) -> dict[str, dict[str, Series]]:
        """By measure and code block."""
        by_measure = self._values["code_block_resource_usage"]
        return {measure: _all_series(blocks) for measure, blocks in by_measure.items()}

    @property
    def code_block_compute_time(self) -> dict[str, Series]:
        """By code block, in seconds."""
        return _all_series(self._values["code_block_compute_time"])

    def to_json(self) -> dict[str, Any]:
        """The same as a dict."""
        return dict(self._values)

    def __str__(self) -> str:
        return self._text


class TrackingComparison:
    """Compares sessions.

    :param file_path_map: The name of each session, and the file with its ``SubTrackingResults``:
        pickled, as JSON, or a recording of weigh.
    :raises ValueError: If the code blocks of the sessions do not match, or a file does not hold
        results. A pickle of another program is refused: reading it would execute what is in it.
    """

    def __init__(self, file_path_map: dict[str, str]) -> None:
        stored = [(name, _stored_results.read(path)) for name, path in file_path_map.items()]
        self._stored, warnings = _native.gpu_tracker_match(stored)
        for warning in warnings:
            log.warning(warning)
        #: The results of each session, with code blocks in the order in which they are matched.
        self.results_map = {
            name: SubTrackingResults(json.loads(results)) for name, results in self._stored}

    def compare(self, statistic: str = "mean") -> ComparisonResults:
        """Compares the sessions by min, max, mean or std."""
        values, text = _native.gpu_tracker_compare(self._stored, statistic)
        return ComparisonResults(json.loads(values), text)


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "this table is a pandas object: pip install pandas, or use to_json() or str()"
        ) from error


def _table(by_measure: dict[str, dict[str, float]]) -> DataFrame:
    return _pandas().DataFrame.from_dict(by_measure, orient="index")


def _all_series(values: dict[str, dict[str, float]]) -> dict[str, Series]:
    series = _pandas().Series
    return {name: series(of) for name, of in values.items()}
