"""Notebooks: ``%load_ext weigh``, then ``%%weigh [NAME]`` as the first line of a cell.

The figures are below the cell, and in the metadata of that output for programs.
"""

from __future__ import annotations

from typing import Any

from .._functions import track


def load_ipython_extension(shell: Any) -> None:
    """Adds the magic to a shell."""

    def weigh(line: str, cell: str) -> None:
        """Measures a cell."""
        from IPython.display import publish_display_data

        run = track(line.strip() or "cell", interval=0.1)
        with run:
            result = shell.run_cell(cell)
        figures = {name: figure._asdict() for name, figure in run.figures.items()}
        publish_display_data(
            {"text/html": run._repr_html_(), "text/plain": repr(run.figures)},
            metadata={"weigh": {"directory": run.directory, "figures": figures}},
        )
        result.raise_error()

    shell.register_magic_function(weigh, magic_kind="cell", magic_name="weigh")
