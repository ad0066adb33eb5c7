"""Know what a program costs: CPU time, memory, GPUs and I/O of this process and all it starts.

    import weigh

    with weigh.track("train") as run:
        with run.phase("load"):
            ...
        for n in range(3):
            with run.phase("epoch", n=n):
                ...

    print(run.figures.memory_peak)
    run.report("html", "report.html")

Every figure says how it was measured (``exact``, ``sampled`` or ``estimated``) and between which
bounds the true value is. Runs are recorded below ``weigh-runs/``, where ``weigh show`` and
:func:`weigh.open` find them.
"""

from ._functions import attach, doctor, event, mark, open, phase, run, track
from ._native import Error, __version__
from ._phase import Phase
from ._results import Figure, Figures, PhaseSummary, Recording, Results, Table
from ._run import Run

__all__ = [
    "Error",
    "Figure",
    "Figures",
    "Phase",
    "PhaseSummary",
    "Recording",
    "Results",
    "Run",
    "Table",
    "__version__",
    "attach",
    "doctor",
    "event",
    "mark",
    "open",
    "phase",
    "run",
    "track",
]


def load_ipython_extension(shell: object) -> None:
    """Adds ``%%weigh``: ``%load_ext weigh``."""
    from .integrations.ipython import load_ipython_extension as load

    load(shell)
