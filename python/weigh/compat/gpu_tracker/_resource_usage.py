"""What a run used: gpu-tracker's data classes.

A value that is not known is NaN if it is a float, so that formatting and arithmetic still work,
and ``None`` if it is a whole number. In JSON both are null. It is never a zero.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

UNKNOWN = math.nan


@dataclasses.dataclass
class RSSValues:
    """Memory of one process, or of several together."""

    #: All of it. Memory that several processes share counts once.
    total_rss: float = 0.0
    #: Memory of no other process.
    private_rss: float = 0.0
    #: Memory shared with at least one other process.
    shared_rss: float = 0.0


@dataclasses.dataclass
class MaxRAM:
    """The most memory at any time."""

    unit: str
    #: Memory of the machine.
    system_capacity: float
    #: In use on the machine, by all processes.
    system: float = 0.0
    #: The tracked process.
    main: RSSValues = dataclasses.field(default_factory=RSSValues)
    #: Its children, their children, and so on.
    descendants: RSSValues = dataclasses.field(default_factory=RSSValues)
    #: All of them together.
    combined: RSSValues = dataclasses.field(default_factory=RSSValues)


@dataclasses.dataclass
class MaxGPURAM:
    """The most GPU memory at any time."""

    unit: str
    #: Memory of all GPUs.
    system_capacity: float
    #: In use on all GPUs, by all processes.
    system: float = 0.0
    #: The tracked process.
    main: float = 0.0
    #: Its children, their children, and so on.
    descendants: float = 0.0
    #: All of them together.
    combined: float = 0.0


@dataclasses.dataclass
class ProcessingUnitPercentages:
    """Utilisation of cores or GPUs, in percent."""

    #: The highest, 100 for each unit.
    max_sum_percent: float = 0.0
    #: The highest, 100 for all expected units.
    max_hardware_percent: float = 0.0
    #: The mean, 100 for each unit.
    mean_sum_percent: float = 0.0
    #: The mean, 100 for all expected units.
    mean_hardware_percent: float = 0.0


@dataclasses.dataclass
class CPUUtilization:
    """Utilisation of cores, and numbers of threads."""

    system_core_count: int
    #: Cores that were expected to be used: 100 percent of the hardware.
    n_expected_cores: int
    #: The machine, all processes.
    system: ProcessingUnitPercentages = dataclasses.field(
        default_factory=ProcessingUnitPercentages)
    #: The tracked process.
    main: ProcessingUnitPercentages = dataclasses.field(default_factory=ProcessingUnitPercentages)
    #: Its children, their children, and so on.
    descendants: ProcessingUnitPercentages = dataclasses.field(
        default_factory=ProcessingUnitPercentages)
    #: All of them together.
    combined: ProcessingUnitPercentages = dataclasses.field(
        default_factory=ProcessingUnitPercentages)
    #: The most threads of the tracked process at once.
    main_n_threads: int | None = 0
    #: The most threads of its descendants at once.
    descendants_n_threads: int | None = 0
    #: The most threads of all of them at once.
    combined_n_threads: int | None = 0


@dataclasses.dataclass
class GPUUtilization:
    """Utilisation of GPUs, by all processes."""

    system_gpu_count: int | None
    #: GPUs whose utilisation counts.
    n_expected_gpus: int | None
    gpu_percentages: ProcessingUnitPercentages = dataclasses.field(
        default_factory=ProcessingUnitPercentages)


@dataclasses.dataclass
class ComputeTime:
    """The real time from start to stop, or to the exit of the tracked process."""

    unit: str
    time: float = 0.0


@dataclasses.dataclass
class ResourceUsage:
    """What a run used."""

    max_ram: MaxRAM
    max_gpu_ram: MaxGPURAM
    cpu_utilization: CPUUtilization
    gpu_utilization: GPUUtilization
    compute_time: ComputeTime


def resource_usage(values: dict[str, Any]) -> ResourceUsage:
    """The data classes of a result, from its JSON."""
    ram = dict(values["max_ram"])
    for part in ("main", "descendants", "combined"):
        ram[part] = RSSValues(**_floats(ram[part]))
    cpu = dict(values["cpu_utilization"])
    for part in ("system", "main", "descendants", "combined"):
        cpu[part] = ProcessingUnitPercentages(**_floats(cpu[part]))
    gpu = dict(values["gpu_utilization"])
    gpu["gpu_percentages"] = ProcessingUnitPercentages(**_floats(gpu["gpu_percentages"]))
    return ResourceUsage(
        max_ram=MaxRAM(**_floats(ram)),
        max_gpu_ram=MaxGPURAM(**_floats(values["max_gpu_ram"])),
        cpu_utilization=CPUUtilization(**cpu),
        gpu_utilization=GPUUtilization(**gpu),
        compute_time=ComputeTime(**_floats(values["compute_time"])),
    )


def unmeasured(
    ram_unit: str, gpu_ram_unit: str, time_unit: str, cores: int, n_expected_cores: int
) -> ResourceUsage:
    """The result where nothing could be measured."""
    def rss() -> RSSValues:
        return RSSValues(UNKNOWN, UNKNOWN, UNKNOWN)

    def percentages() -> ProcessingUnitPercentages:
        return ProcessingUnitPercentages(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)

    return ResourceUsage(
        max_ram=MaxRAM(ram_unit, UNKNOWN, UNKNOWN, rss(), rss(), rss()),
        max_gpu_ram=MaxGPURAM(gpu_ram_unit, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN),
        cpu_utilization=CPUUtilization(
            cores, n_expected_cores, percentages(), percentages(), percentages(), percentages(),
            None, None, None),
        gpu_utilization=GPUUtilization(None, None, percentages()),
        compute_time=ComputeTime(time_unit, UNKNOWN),
    )


def _floats(values: dict[str, Any]) -> dict[str, Any]:
    return {name: UNKNOWN if value is None else value for name, value in values.items()}


def to_json(usage: ResourceUsage) -> dict[str, Any]:
    """A result as a dict, where null is what is not known."""
    known: dict[str, Any] = _known(dataclasses.asdict(usage))
    return known


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(item) for name, item in value.items()}
    if isinstance(value, float) and math.isnan(value):
        return None
    return value
