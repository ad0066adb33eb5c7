"""The interface of ``pytyche.diagnostics.run_monitor`` of pytyche 0.2.1, measured by weigh.

A script changes one import::

    from weigh.compat.pytyche.diagnostics.run_monitor import HWMonitor, RunLog

Names, files and units are pytyche's; the numbers are weigh's. Where they differ, and why, is in the
guide `Migrating from pytyche's run_monitor`.
"""

from .diagnostics.run_monitor import (
    HWMonitor,
    ResourceSummary,
    RunLog,
    build_resource_summary,
    probe_jax_peak_memory_mb,
)

__all__ = [
    "HWMonitor",
    "ResourceSummary",
    "RunLog",
    "build_resource_summary",
    "probe_jax_peak_memory_mb",
]
