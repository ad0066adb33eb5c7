"""The interface of gpu-tracker 5.0.1, measured by weigh.

A script changes one import::

    import weigh.compat.gpu_tracker as gput

Names, defaults, units, files and messages are gpu-tracker's; the numbers are weigh's. Where they
differ, and why, is in the guide `Migrating from gpu-tracker`.
"""

from .sub_tracker import (
    CodeBlockResults,
    ComparisonResults,
    SubTracker,
    SubTrackingAnalyzer,
    SubTrackingResults,
    TrackingComparison,
    sub_track,
)
from .tracker import (
    ComputeTime,
    CPUUtilization,
    GPUUtilization,
    MaxGPURAM,
    MaxRAM,
    ProcessingUnitPercentages,
    ResourceUsage,
    RSSValues,
    State,
    Tracker,
)

#: The version of gpu-tracker whose interface this is.
__version__ = "5.0.1"

__all__ = [
    "CPUUtilization",
    "CodeBlockResults",
    "ComparisonResults",
    "ComputeTime",
    "GPUUtilization",
    "MaxGPURAM",
    "MaxRAM",
    "ProcessingUnitPercentages",
    "RSSValues",
    "ResourceUsage",
    "State",
    "SubTracker",
    "SubTrackingAnalyzer",
    "SubTrackingResults",
    "Tracker",
    "TrackingComparison",
    "sub_track",
]
