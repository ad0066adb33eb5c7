"""A log of phases and events, tables of the machine's CPUs and GPUs, and their summary."""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import shutil
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from weigh import _native

__all__ = [
    "HWMonitor",
    "ResourceSummary",
    "RunLog",
    "build_resource_summary",
    "probe_jax_peak_memory_mb",
]

_MEBIBYTE = 1024 * 1024
_CPU = "cpu_metrics.csv"
_GPU = "hw_metrics.csv"
_DMON = "hw_dmon.csv"


class RunLog:
    """A log of phases and events, as JSON lines.

    With a path, every line is written when it is logged, so that it can be followed with
    ``tail -f`` and survives a crash. ``write`` works with and without one.

    :param path: Where lines are written as they are logged; nowhere by default. An existing file
        is replaced.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._entries: list[dict[str, Any]] = []
        self._file: IO[str] | None = None
        if path is not None:
            self._file = open(path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115

    def log_phase(self, name: str, seconds: float, **extra: Any) -> None:
        """Logs a phase that has ended, and how long it took.

        A keyword ``ts`` or ``type`` never replaces that of the phase: it gets an underscore.
        """
        phase = {"ts": _now(), "type": "phase", "name": name, "seconds": round(seconds, 3)}
        for key, value in extra.items():
            phase[_free_key(key, phase)] = value
        self._log(phase)

    def log_event(self, event_type: str, data: dict[str, Any] | None = None) -> None:
        """Logs an event."""
        event: dict[str, Any] = {"ts": _now(), "type": "event", "event": event_type}
        if data:
            event["data"] = data
        self._log(event)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes everything that was logged into a file; an existing one is replaced."""
        if self._file is not None and _is_same_file(self._file, path):
            # It is complete already, and must not be truncated.
            return
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(_line(entry) for entry in self._entries)

    def _log(self, entry: dict[str, Any]) -> None:
        self._entries.append(entry)
        if self._file is not None:
            self._file.write(_line(entry))


class HWMonitor:
    """Samples the CPUs and GPUs of the machine, all processes included, into tables.

    Sampling is a native thread: no ``nvidia-smi`` is started. The tables are written by ``stop``;
    until then everything is in a recording in the output directory, which survives a crash.
    """

    def __init__(self) -> None:
        self._session: _native.Session | None = None
        self._recording: str | None = None
        self._output: Path | None = None
        self._owner: int | None = None

    def start(self, output_dir: str | os.PathLike[str], interval_sec: float = 2) -> None:
        """Starts sampling.

        :param output_dir: Where the tables will be; it is created.
        :param interval_sec: Time between two rows, also fractions of a second.
        :raises RuntimeError: If it was started already.
        """
        if self._session is not None:
            raise RuntimeError("this monitor was started already: stop it first")
        output = Path(output_dir)
        output.mkdir(parents=True, exist_ok=True)
        self._recording = tempfile.mkdtemp(prefix=".weigh-pytyche-", dir=output)
        settings = {
            "interval": float(interval_sec),
            "output": self._recording,
            "record": True,
            "collect": ["cpu", "gpu"],
        }
        try:
            self._session = _native.Session.current(settings)
        except BaseException:
            shutil.rmtree(self._recording, ignore_errors=True)
            raise
        self._output = output
        self._owner = os.getpid()

    def stop(self) -> tuple[Path | None, Path | None, Path | None]:
        """Stops sampling and writes the tables.

        :return: The tables of GPUs, of CPUs and of dmon, in this order; ``None`` for one that
            does not exist.
        """
        session, self._session = self._session, None
        output, owner = self._output, self._owner
        if session is None or output is None or owner != os.getpid():
            # A forked child owns neither the sampling nor the files.
            return None, None, None
        _, recording, _ = session.stop()
        if recording is None:
            return None, None, None
        written = set(_native.pytyche_export_tables(recording, output))
        shutil.rmtree(recording, ignore_errors=True)

        def table(name: str) -> Path | None:
            path = output / name
            return path if path in written else None

        return table(_GPU), table(_CPU), table(_DMON)


@dataclasses.dataclass
class ResourceSummary:
    """What CPUs and GPUs of the machine did. NaN is what is not known."""

    #: The most memory in use of one GPU, in MiB.
    peak_vram_mb: float = 0.0
    #: The most memory that JAX had in use, in MiB.
    jax_peak_bytes_mb: float = 0.0
    gpu_util_mean_pct: float = 0.0
    gpu_util_max_pct: float = 0.0
    #: Share of the time in which GPU memory was read or written.
    mem_util_mean_pct: float = 0.0
    mem_util_max_pct: float = 0.0
    power_watts_mean: float = 0.0
    power_watts_max: float = 0.0
    cpu_usr_mean_pct: float = 0.0
    cpu_idle_mean_pct: float = 0.0

    def to_dict(self) -> dict[str, float | None]:
        """With one decimal; ``None`` is what is not known.

        Memory of JAX and utilisation of GPU memory are left out where they are zero or not known.
        """
        optional = {
            "jax_peak_bytes_mb": self.jax_peak_bytes_mb > 0,
            "mem_util_mean_pct": self.mem_util_mean_pct > 0,
            "mem_util_max_pct": self.mem_util_mean_pct > 0,
        }
        shown = [name for name in _KEYS if optional.get(name, True)]
        values = ((name, getattr(self, name)) for name in shown)
        return {name: None if math.isnan(value) else round(value, 1) for name, value in values}


#: The order of keys in ``to_dict``.
_KEYS = (
    "peak_vram_mb", "gpu_util_mean_pct", "gpu_util_max_pct", "power_watts_mean", "power_watts_max",
    "cpu_usr_mean_pct", "cpu_idle_mean_pct", "jax_peak_bytes_mb", "mem_util_mean_pct",
    "mem_util_max_pct",
)


def build_resource_summary(
    gpu_csv_path: str | os.PathLike[str] | None,
    cpu_csv_path: str | os.PathLike[str] | None,
    dmon_csv_path: str | os.PathLike[str] | None = None,
) -> ResourceSummary:
    """The summary of tables of an ``HWMonitor``, weigh's or pytyche's.

    What a table does not have is NaN; so is everything of one that is ``None`` or does not exist.
    """
    paths = (gpu_csv_path, cpu_csv_path, dmon_csv_path)
    texts = [None if path is None else os.fspath(path) for path in paths]
    values = json.loads(_native.pytyche_summary(*texts))
    return ResourceSummary(**{
        name: math.nan if value is None else value for name, value in values.items()})


def probe_jax_peak_memory_mb() -> float:
    """The most memory that JAX had in use on the first GPU, in MiB; 0.0 without JAX or a GPU."""
    try:
        devices = importlib.import_module("jax").local_devices()
        gpus = [device for device in devices if device.platform == "gpu"]
        peak = (gpus[0].memory_stats() or {}).get("peak_bytes_in_use", 0) if gpus else 0
        return float(peak) / _MEBIBYTE
    except Exception:
        # JAX may be absent, or its backend may fail in many ways: no reason to end a sweep.
        return 0.0


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="milliseconds")


def _line(entry: dict[str, Any]) -> str:
    return json.dumps(entry, default=str) + "\n"


def _free_key(key: str, entry: dict[str, Any]) -> str:
    while key in entry:
        key += "_"
    return key


def _is_same_file(file: IO[str], path: str | os.PathLike[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False
