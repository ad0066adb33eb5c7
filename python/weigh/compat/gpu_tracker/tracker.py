"""``Tracker``: what this process, or another one, and its descendants use.

Measuring is weigh's: a native thread samples, and a recording is written beside the results until
tracking stops. So nothing is forked, and results survive even a SIGKILL of this process.
"""

from __future__ import annotations

import enum
import json
import logging as log
import os
import pickle
import shutil
import tempfile
import uuid
from types import TracebackType
from typing import Any, NamedTuple

from weigh import _native

from ._resource_usage import (
    ComputeTime,
    CPUUtilization,
    GPUUtilization,
    MaxGPURAM,
    MaxRAM,
    ProcessingUnitPercentages,
    ResourceUsage,
    RSSValues,
    resource_usage,
    to_json,
    unmeasured,
)

__all__ = [
    "CPUUtilization",
    "ComputeTime",
    "GPUUtilization",
    "MaxGPURAM",
    "MaxRAM",
    "ProcessingUnitPercentages",
    "RSSValues",
    "ResourceUsage",
    "State",
    "Tracker",
]

_SHORTEST_SLEEP_TIME = 0.1

_NO_TOOL = (
    "Neither the nvidia-smi command nor the amd-smi command is installed. Install one of these to "
    "profile the GPU. Otherwise the GPU RAM and GPU utilization values will remain 0.0."
)
_NO_CONNECTION = (
    "The {} command is installed but cannot connect to a GPU. The GPU RAM and GPU utilization "
    "values will remain 0.0."
)
_NOT_STOPPED = (
    "Cannot display the tracker in string or JSON format before tracking completes. Exit the "
    "content manager or call the stop() method before calling to_json() or str()"
)


class State(enum.Enum):
    """What a tracker is doing."""

    NEW = 0
    STARTED = 1
    STOPPED = 2


class _Options(NamedTuple):
    """How results are written."""

    ram_unit: str
    gpu_ram_unit: str
    time_unit: str
    n_expected_cores: int | None
    gpu_uuids: list[str] | None


class _InterruptedUsage:
    """What ``resource_usage_file`` holds while tracking: unpickled, it is a ``ResourceUsage``.

    The file is written once, and names the recording, which grows with every sample. So reading
    it back gives the usage up to the last sample, however this process has ended.
    """

    def __init__(self, recording: str, options: _Options) -> None:
        self._arguments = (recording, *options)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return read_usage, self._arguments


def read_usage(
    recording: str,
    ram_unit: str = "gigabytes",
    gpu_ram_unit: str = "gigabytes",
    time_unit: str = "hours",
    n_expected_cores: int | None = None,
    gpu_uuids: list[str] | None = None,
) -> ResourceUsage:
    """What a recorded run used, in these units."""
    options = _Options(ram_unit, gpu_ram_unit, time_unit, n_expected_cores, gpu_uuids)
    return _track(recording, options, [], False)


def _track(recording: str, options: _Options, files: list[str], overwrite: bool) -> ResourceUsage:
    values = _native.gpu_tracker_track(recording, *options, files, overwrite)
    return resource_usage(json.loads(values))


class Tracker:
    """Tracks RAM, GPU RAM, CPU and GPU utilisation and time, between ``start`` and ``stop``.

    It is a context manager as well. After it, ``resource_usage`` has what was used, and the
    tracker itself prints as text.

    :param sleep_time: Sampling interval in seconds, at least 0.1.
    :param ram_unit: bytes, kilobytes, megabytes, gigabytes or terabytes; all are decimal.
    :param gpu_ram_unit: The same for the memory of GPUs.
    :param time_unit: seconds, minutes, hours or days.
    :param n_expected_cores: Cores that are 100 percent of the hardware; all by default.
    :param gpu_uuids: UUIDs of the GPUs whose utilisation counts; all by default.
    :param disable_logs: Whether warnings are left out.
    :param process_id: The process to track; this one by default.
    :param resource_usage_file: A pickle of the usage so far, for the case that this process is
        killed. It is removed when tracking stops. By default a hidden file in the working
        directory.
    :param n_join_attempts: Has no effect: there is no process to join.
    :param join_timeout: Has no effect.
    :param gpu_brand: nvidia or amd: track only GPUs of this brand.
    :param tracking_file: A .csv or .sqlite file for every sample, written when tracking stops.
    :param overwrite: Whether ``tracking_file`` is replaced if it exists.
    :raises ValueError: If an argument is not valid.
    :raises FileExistsError: If ``tracking_file`` exists.
    """

    State = State

    def __init__(
        self,
        sleep_time: float = 1.0,
        ram_unit: str = "gigabytes",
        gpu_ram_unit: str = "gigabytes",
        time_unit: str = "hours",
        n_expected_cores: int | None = None,
        gpu_uuids: set[str] | None = None,
        disable_logs: bool = False,
        process_id: int | None = None,
        resource_usage_file: str | None = None,
        n_join_attempts: int = 5,
        join_timeout: float = 10.0,
        gpu_brand: str | None = None,
        tracking_file: str | None = None,
        overwrite: bool = False,
    ) -> None:
        if not sleep_time >= _SHORTEST_SLEEP_TIME:
            raise ValueError(
                f"Sleep time of {sleep_time} is invalid. "
                f"Must be at least {_SHORTEST_SLEEP_TIME} seconds.")
        if n_expected_cores is not None and n_expected_cores < 1:
            raise ValueError(
                f"{n_expected_cores} is not a number of cores: at least 1 is expected")
        _native.gpu_tracker_check(ram_unit, gpu_ram_unit, time_unit, tracking_file, overwrite)
        if gpu_uuids is not None and not gpu_uuids:
            raise ValueError(
                "gpu_uuids is not None but the set is empty. "
                "Please provide a set of at least one GPU UUID.")
        uuids = None if gpu_uuids is None else sorted(gpu_uuids)
        self._disable_logs = disable_logs
        if gpu_brand is None:
            self._warn_without_gpu()
        self._gpus = _native.gpu_tracker_choose_gpus(uuids, gpu_brand)
        self._options = _Options(ram_unit, gpu_ram_unit, time_unit, n_expected_cores, uuids)
        self._sleep_time = sleep_time
        self._process_id = os.getpid() if process_id is None else process_id
        self._tracking_file = tracking_file
        self._overwrite = overwrite
        self._is_default_file = resource_usage_file is None
        self._resource_usage_file = (
            f".gpu-tracker_{uuid.uuid1()}.pkl" if resource_usage_file is None
            else resource_usage_file)
        self._session: _native.Session | None = None
        self._recording: str | None = None
        self._owner: int | None = None
        #: What was used; ``None`` until tracking stops.
        self.resource_usage: ResourceUsage | None = None
        self.n_join_attempts = n_join_attempts
        self.join_timeout = join_timeout
        self.state = State.NEW

    def __repr__(self) -> str:
        return f"State: {self.state.name}"

    def __enter__(self) -> Tracker:
        if self.state is not State.NEW:
            raise RuntimeError(
                f"Cannot start tracking when tracking has already {self.state.name.lower()}.")
        self._recording = self._new_directory()
        try:
            self._session = self._measure(self._recording)
            self._write_backup(self._recording)
        except BaseException:
            if self._session is not None:
                self._session.stop()
            shutil.rmtree(self._recording, ignore_errors=True)
            raise
        self._owner = os.getpid()
        self.state = State.STARTED
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        if self.state is State.NEW:
            raise RuntimeError("Cannot stop tracking when tracking has not started yet.")
        if self.state is State.STOPPED:
            raise RuntimeError("Cannot stop tracking when tracking has already stopped.")
        self.state = State.STOPPED
        if self._owner != os.getpid():
            # A forked child leaves the block as well: tracking and its files are the parent's.
            return
        self.resource_usage = self._finish()

    def start(self) -> None:
        """Starts tracking, as entering the context manager does."""
        self.__enter__()

    def stop(self) -> None:
        """Stops tracking, as leaving the context manager does."""
        self.__exit__()

    def __str__(self) -> str:
        text: str = _native.gpu_tracker_text(json.dumps(self.to_json()))
        return text

    def to_json(self) -> dict[str, Any]:
        """What was used, as a dict; what is not known is ``None``."""
        if self.resource_usage is None:
            raise RuntimeError(_NOT_STOPPED)
        return to_json(self.resource_usage)

    def _warn(self, warning: str) -> None:
        if not self._disable_logs:
            log.warning(warning)

    def _warn_without_gpu(self) -> None:
        if _native.gpu_tracker_has_driver():
            return
        for tool in ("nvidia-smi", "amd-smi"):
            if shutil.which(tool) is not None:
                self._warn(_NO_CONNECTION.format(tool))
                return
        self._warn(_NO_TOOL)

    def _new_directory(self) -> str:
        """Where the recording is until tracking stops: beside the files that are written."""
        beside = self._tracking_file or self._resource_usage_file
        try:
            return tempfile.mkdtemp(
                prefix=".weigh-gpu-tracker-", dir=os.path.dirname(os.path.abspath(beside)))
        except OSError:
            if self._tracking_file is not None or not self._is_default_file:
                raise
            # The working directory need not be writable for those who want no file.
            return tempfile.mkdtemp(prefix=".weigh-gpu-tracker-")

    def _measure(self, recording: str) -> _native.Session | None:
        settings: dict[str, Any] = {
            "interval": float(self._sleep_time), "output": recording, "record": True}
        if self._options.n_expected_cores is not None:
            settings["expected_cores"] = float(self._options.n_expected_cores)
        if self._gpus is not None:
            settings["gpus"] = self._gpus
        if self._process_id == os.getpid():
            return _native.Session.current(settings)
        try:
            return _native.Session.attach([self._process_id], settings)
        except Exception:
            if _exists(self._process_id):
                raise
        self._warn(
            f"The target process of ID {self._process_id} ended before tracking could begin.")
        return None

    def _write_backup(self, recording: str) -> None:
        backup = _InterruptedUsage(os.path.abspath(recording), self._options)
        try:
            with open(self._resource_usage_file, "wb") as file:
                pickle.dump(backup, file)
        except OSError:
            if not self._is_default_file:
                raise

    def _finish(self) -> ResourceUsage:
        directory, self._recording = self._recording, None
        session, self._session = self._session, None
        usage, is_written = None, True
        if session is not None:
            _, recording, warnings = session.stop()
            for warning in warnings:
                self._warn(warning)
            files = [] if self._tracking_file is None else [self._tracking_file]
            try:
                if recording is not None:
                    usage = _track(recording, self._options, files, self._overwrite)
            except (OSError, ValueError):
                is_written = False
                self._warn(
                    f"There are no results. The recording is kept in {recording}, "
                    f"and {self._resource_usage_file} refers to it.")
                raise
            finally:
                if is_written:
                    self._remove(directory)
        else:
            self._remove(directory)
        return self._unmeasured() if usage is None else usage

    def _remove(self, directory: str | None) -> None:
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)
        if os.path.isfile(self._resource_usage_file):
            os.remove(self._resource_usage_file)

    def _unmeasured(self) -> ResourceUsage:
        cores = os.cpu_count() or 1
        units = (self._options.ram_unit, self._options.gpu_ram_unit, self._options.time_unit)
        return unmeasured(*units, cores, self._options.n_expected_cores or cores)


def _exists(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
