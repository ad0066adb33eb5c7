"""The interface of ``oasislmf.execution.resource_monitor`` of oasislmf 2.5.8, measured by weigh.

A script changes one import::

    from weigh.compat.oasislmf.execution.resource_monitor import ResourceMonitor

Names, files and units are oasislmf's; the numbers are weigh's. Where they differ, and why, is in
the guide `Migrating from the oasislmf ResourceMonitor`.
"""

from .execution.resource_monitor import (
    CSV_HEADER,
    MONITORED_TOOLS,
    TOOL_COLORS,
    ResourceMonitor,
)

__all__ = ["CSV_HEADER", "MONITORED_TOOLS", "TOOL_COLORS", "ResourceMonitor"]
