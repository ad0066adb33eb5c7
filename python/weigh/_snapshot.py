"""A run at this moment as a flat dict of floats, for loggers.

Names are stable. What is not known has no name: a logger would draw a 0 as a measurement, and some
refuse NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What each GPU has in a summary, and its key.
_GPU = (
    ("utilization_mean_ratio", "utilization_mean"),
    ("utilization_peak_ratio", "utilization_peak"),
    ("memory_peak_bytes", "memory_peak_bytes"),
    ("power_mean_watts", "power_mean_watts"),
    ("energy_joules", "energy_joules"),
    ("temperature_peak_celsius", "temperature_peak_celsius"),
)


def flat(summary: dict[str, Any], now: Mapping[str, float | None]) -> dict[str, float]:
    """Current values as ``now/cpu_cores``, and figures so far by names like ``cpu/time_seconds``."""
    values: dict[str, float | None] = {f"now/{key}": value for key, value in now.items()}
    values["duration_seconds"] = summary["run"]["duration_seconds"]
    for key, figure in summary["figures"].items():
        values[_slash(key)] = figure["value"]
    for key, figure in summary["parts"]["system"]["figures"].items():
        values[f"system/{_slash(key)}"] = figure["value"]
    for number, gpu in enumerate(summary["gpus"]):
        for key, name in _GPU:
            values[f"gpu/{number}/{name}"] = gpu.get(key)
    host = summary["host"]
    values["limit/cores"] = host["cores_allowed"]
    # Without a cgroup's limit the machine is one.
    values["limit/memory_bytes"] = host["memory_limit_bytes"] or host["memory_bytes"]
    values["monitor/cpu_seconds"] = summary["monitor"]["cpu_seconds"]
    return {key: float(value) for key, value in values.items() if value is not None}


def _slash(key: str) -> str:
    family, _, rest = key.partition("_")
    return f"{family}/{rest}" if rest else key
