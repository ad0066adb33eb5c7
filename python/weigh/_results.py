"""What a run used: figures, tables, reports and charts of a recording or of a run that goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_UNITS = ("bytes", "seconds", "ratio", "joules")


class Figure(NamedTuple):
    """A value, how it was measured, and the bounds of the true value.

    What is not known is None, never 0, and ``reason`` says why.
    """

    name: str
    """Its key in ``summary.json``, which ends with its unit."""
    value: float | None
    method: str | None
    """``exact``, ``sampled`` or ``estimated``."""
    lower: float | None
    upper: float | None
    source: str
    reason: str | None
    at_seconds: float | None
    """When it was reached, in seconds since the run began."""

    @property
    def unit(self) -> str | None:
        """``bytes``, ``seconds``, ``ratio``, ``joules``; None for plain numbers."""
        last = self.name.rpartition("_")[2]
        return last if last in _UNITS else None

    def __float__(self) -> float:
        if self.value is None:
            raise ValueError(f"{self.name} is not known: {self.reason}")
        return float(self.value)

    def __str__(self) -> str:
        if self.value is None:
            return f"not known: {self.reason}"
        return f"{_readable(self.value, self.unit)} ({self.method})"


def _readable(value: float, unit: str | None) -> str:
    if unit == "bytes":
        for name in ("B", "KiB", "MiB", "GiB"):
            if abs(value) < 1024:
                break
            value /= 1024
        else:
            name = "TiB"
        return f"{value:.0f} B" if name == "B" else f"{value:.1f} {name}"
    if unit == "ratio":
        return f"{value * 100:.1f} %"
    suffix = {"seconds": " s", "joules": " J"}.get(unit or "", "")
    return (f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}") + suffix


class Figures(Mapping[str, Figure]):
    """Figures by name: ``figures.memory_peak``, ``figures["memory_peak_bytes"]``.

    The unit at the end of a name may be left out.
    """

    def __init__(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        self._figures = {key: _figure(key, one) for key, one in figures.items()}

    def __getitem__(self, name: str) -> Figure:
        for key in (name, *(f"{name}_{unit}" for unit in _UNITS)):
            if key in self._figures:
                return self._figures[key]
        raise KeyError(name)

    def __getattr__(self, name: str) -> Figure:
        try:
            # Not while an object is copied, which has no attributes yet.
            return self[name] if not name.startswith("_") else self.__dict__[name]
        except KeyError:
            raise AttributeError(f"there is no figure {name}; there are {', '.join(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._figures, *(_bare(key) for key in self._figures)]

    def __repr__(self) -> str:
        return "\n".join(f"{key}: {figure}" for key, figure in self._figures.items())


def _bare(key: str) -> str:
    first, _, last = key.rpartition("_")
    return first if last in _UNITS else key


def _figure(name: str, one: Mapping[str, Any]) -> Figure:
    keys = ("value", "method", "lower", "upper")
    values = (one.get(key) for key in keys)
    return Figure(name, *values, one.get("source", ""), one.get("reason"), one.get("at_seconds"))


class PhaseSummary(NamedTuple):
    """What a phase used."""

    name: str
    start_seconds: float
    duration_seconds: float | None
    figures: Figures


class Table:
    """A table of a recording, for every library that reads Arrow, without a copy.

        pyarrow.table(run.table("process"))
        polars.DataFrame(run.table("process"))
        run.table("process").to_pandas()
    """

    def __init__(self, stream: _native.ArrowStream) -> None:
        self._stream = stream

    @property
    def name(self) -> str:
        """Its name."""
        return self._stream.name

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""
        return self._stream.__arrow_c_stream__(requested_schema)

    def to_pyarrow(self) -> pyarrow.Table:
        """As a ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a ``pandas.DataFrame``; pandas reads Arrow through pyarrow."""
        return self.to_pyarrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<weigh.Table {self.name}>"


class Results:
    """What a run used: of a run that goes on up to now, of one that has ended all of it."""

    def _summary_text(self) -> str:
        raise NotImplementedError

    def _recording(self) -> _native.Recording:
        raise NotImplementedError

    @property
    def summary(self) -> dict[str, Any]:
        """The summary, as ``summary.json`` has it."""
        summary: dict[str, Any] = json.loads(self._summary_text())
        return summary

    @property
    def figures(self) -> Figures:
        """The figures of the run as a whole.

        >>> run.figures.memory_peak.value  # doctest: +SKIP
        536870912
        """
        return Figures(self.summary["figures"])

    @property
    def phases(self) -> list[PhaseSummary]:
        """Its phases, the first 1,000 of them."""
        return [
            PhaseSummary(
                phase["name"],
                phase["start_seconds"],
                phase["duration_seconds"],
                Figures(phase["figures"]),
            )
            for phase in self.summary["phases"]
        ]

    @property
    def tables(self) -> list[str]:
        """The names of the tables that were recorded."""
        return self._recording().tables()

    def table(self, name: str) -> Table:
        """A table: ``process``, ``run``, ``node``, ``gpu``, ``phases``, ``marks``, …"""
        return Table(self._recording().table(name))

    def report(
        self, format: Literal["html", "md", "pdf"] = "html", path: str | os.PathLike[str] | None = None
    ) -> bytes:
        """A report; written to a file, too, when a path is given."""
        made = self._recording().report(format)
        if path is not None:
            with open(path, "wb") as file:
                file.write(made)
        return made

    def plot(self, metric: str | None = None) -> Plot:
        """A chart: of memory, or of any name that ``weigh plot --list`` prints."""
        return Plot(self._recording().plot(metric))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = "".join(
            f"<tr><td>{_escape(_bare(name).replace('_', ' '))}</td>"
            f"<td style='text-align:right'>{_escape(_readable(figure.value, figure.unit))}</td>"
            f"<td>{figure.method}</td></tr>"
            for name, figure in self.figures.items()
            if name in _SHOWN and figure.value is not None
        )
        name = _escape(str(self.summary["run"]["name"]))
        table = f"<table><caption>{name}</caption><tbody>{rows}</tbody></table>"
        try:
            return table + self.plot().svg
        except (_native.Error, OSError):
            # It is not recorded, or too short for a chart.
            return table


_SHOWN = (
    "cpu_time_seconds",
    "cpu_cores_mean",
    "memory_peak_bytes",
    "gpu_memory_peak_bytes",
    "gpu_utilization_mean_ratio",
    "io_read_bytes",
    "io_written_bytes",
)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Plot:
    """A chart as SVG, which a notebook draws."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg


class Recording(Results):
    """A recorded run; :func:`weigh.open` opens it."""

    def __init__(self, recording: _native.Recording) -> None:
        self._opened = recording

    @property
    def directory(self) -> str:
        """Where it is."""
        return os.fspath(self._opened.directory)

    @property
    def warnings(self) -> list[str]:
        """What of it is missing."""
        return self._opened.losses()

    def _summary_text(self) -> str:
        return self._opened.summary()

    def _recording(self) -> _native.Recording:
        return self._opened

    def __repr__(self) -> str:
        return f"<weigh.Recording {self.directory}>"
