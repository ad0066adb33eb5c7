"""A summary as a flat dict of floats, for loggers."""

from __future__ import annotations

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


def flat(summary: dict[str, Any]) -> dict[str, float]:
    """The figures by names with slashes: ``cpu/time_seconds``, ``gpu/0/utilization``.

    What is not known has no key.
    """
    values: dict[str, float | None] = {"duration_seconds": summary["run"]["duration_seconds"]}
    for key, figure in summary["figures"].items():
        values[_slash(key)] = figure["value"]
    for key, figure in summary["parts"]["system"]["figures"].items():
        values[f"system/{_slash(key)}"] = figure["value"]
    for number, gpu in enumerate(summary["gpus"]):
        for key, name in _GPU:
            values[f"gpu/{number}/{name}"] = gpu.get(key)
    values.update(_now(summary.get("now") or {}))
    values["monitor/cpu_seconds"] = summary["monitor"]["cpu_seconds"]
    return {key: float(value) for key, value in values.items() if value is not None}


def _slash(key: str) -> str:
    family, _, rest = key.partition("_")
    return f"{family}/{rest}" if rest else key


def _now(now: dict[str, Any]) -> dict[str, float | None]:
    values: dict[str, float | None] = {_slash(k): v for k, v in now.items() if k != "gpus"}
    for number, gpu in enumerate(now.get("gpus", [])):
        values.update({f"gpu/{number}/{key}": value for key, value in gpu.items()})
    return values
