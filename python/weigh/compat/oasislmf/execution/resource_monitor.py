"""``ResourceMonitor``: what the tools below one process use, as a table and a report."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile

from weigh import _native

__all__ = ["CSV_HEADER", "MONITORED_TOOLS", "TOOL_COLORS", "ResourceMonitor"]

logger = logging.getLogger(__name__)

#: The tools that are reported, and the colours that oasislmf draws them in.
TOOL_COLORS = {
    "evepy": "#17becf",
    "modelpy": "#bcbd22",
    "gulpy": "#7f7f7f",
    "fmpy": "#aec7e8",
    "gulmc": "#ffbb78",
    "summarypy": "#1f77b4",
    "pltpy": "#ff7f0e",
    "eltpy": "#2ca02c",
    "katpy": "#d62728",
    "aalpy": "#9467bd",
    "lecpy": "#8c564b",
    "plapy": "#e377c2",
}

#: The names of the tools.
MONITORED_TOOLS = frozenset(TOOL_COLORS)

#: The columns of ``resource_monitor.csv``.
CSV_HEADER = [
    "timestamp", "tool", "pid", "cpu_pct", "cpu_user_s", "cpu_sys_s", "rss_kb", "uss_kb", "pss_kb",
]

_SHORTEST_INTERVAL = 0.1
_TABLE = "resource_monitor.csv"
#: The recording of one worker, until the combined report is written.
_KEPT = ".resource_monitor"


class ResourceMonitor:
    """Samples the tools among one process and its descendants.

    Everything is recorded in the directory for temporary files first, because the script of a model
    run empties its log directory; ``stop`` writes the files.

    :param output_dir: Where ``resource_monitor.csv`` will be.
    :param poll_interval: Sampling interval in seconds, at least 0.1.
    :param generate_report: Whether ``stop`` writes the report. Without it the recording is kept in
        ``output_dir``, for the combined report of several monitors.
    :param log_root: Where the output directories of several monitors are: their combined table and
        report are written there.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        poll_interval: float = 1.0,
        generate_report: bool = True,
        log_root: str | os.PathLike[str] | None = None,
    ) -> None:
        self.output_dir = output_dir
        self.poll_interval = max(_SHORTEST_INTERVAL, float(poll_interval))
        self.generate_report = generate_report
        self.log_root = log_root
        self._session: _native.Session | None = None
        self._owner: int | None = None

    @property
    def _csv_path(self) -> str:
        return os.path.join(self.output_dir, _TABLE)

    def start(self, bash_pid: int) -> None:
        """Starts sampling.

        :param bash_pid: The process of the script; only it and its descendants are monitored.
        :raises RuntimeError: If it was started already.
        """
        if self._session is not None:
            raise RuntimeError("this monitor was started already: stop it first")
        recording = tempfile.mkdtemp(prefix="weigh-resource-monitor-")
        settings = {"interval": self.poll_interval, "output": recording, "record": True}
        try:
            self._session = _native.Session.attach([bash_pid], settings)
        except (OSError, _native.Error):
            # oasislmf starts its monitor beside the model run, which must not fail because of it.
            shutil.rmtree(recording, ignore_errors=True)
            logger.warning("Resource monitor: process %s is not monitored", bash_pid, exc_info=True)
            return
        except BaseException:
            shutil.rmtree(recording, ignore_errors=True)
            raise
        self._owner = os.getpid()
        logger.info(
            "Resource monitor started (pid=%s, interval=%.1fs, csv=%s)",
            bash_pid, self.poll_interval, self._csv_path)

    def stop(self) -> None:
        """Stops sampling, and writes the table and the report."""
        session, self._session = self._session, None
        if session is None or self._owner != os.getpid():
            # A forked child owns neither the sampling nor the files.
            return
        try:
            _, recording, warnings = session.stop()
        except (OSError, _native.Error):
            logger.warning("Resource monitor: no report", exc_info=True)
            return
        for warning in warnings:
            logger.warning("Resource monitor: %s", warning)
        if recording is None:
            return
        try:
            self._write(os.fspath(recording))
        except (OSError, ValueError):
            logger.warning(
                "Resource monitor: no report; the recording is kept in %s", recording,
                exc_info=True)
            return
        logger.info("Resource monitor stopped, csv=%s", self._csv_path)

    def _write(self, recording: str) -> None:
        is_part = self.log_root is not None or not self.generate_report
        self._export([recording], os.fspath(self.output_dir), not is_part)
        if not is_part:
            shutil.rmtree(recording, ignore_errors=True)
            return
        kept = os.path.join(self.output_dir, _KEPT)
        shutil.rmtree(kept, ignore_errors=True)
        os.makedirs(self.output_dir, exist_ok=True)
        shutil.move(recording, kept)
        if self.log_root is not None and self.generate_report:
            self._export(self._recordings(), os.fspath(self.log_root), True)

    def _recordings(self) -> list[str]:
        """The recordings of all monitors below ``log_root``, and of this one."""
        root = os.fspath(self.log_root or self.output_dir)
        directories = [entry.path for entry in os.scandir(root) if entry.is_dir()]
        recordings = {
            os.path.realpath(os.path.join(directory, _KEPT))
            for directory in [*directories, os.fspath(self.output_dir)]}
        return sorted(path for path in recordings if os.path.isdir(path))

    def _export(self, recordings: list[str], directory: str, report: bool) -> None:
        files = _native.oasis_export(recordings, directory, sorted(MONITORED_TOOLS), report)
        if not files:
            logger.info("Resource monitor: none of the tools was running, no report")
