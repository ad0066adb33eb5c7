"""Results in a file: a pickle of ours, JSON, or a recording.

gpu-tracker keeps results as pickles, and reading a pickle executes what is in it. Results of ours
are pickled as their JSON and the name of :func:`restore`, so the JSON can be taken out of the file
without unpickling it: :func:`read` never does that, whoever wrote the file.
"""

from __future__ import annotations

import json
import os
import pickletools
from typing import TYPE_CHECKING

from weigh import _native

if TYPE_CHECKING:
    from .sub_tracker import SubTrackingResults

#: What the pickle of ``restore(json)`` may contain, by any protocol: nothing else can be called.
_HARMLESS = frozenset({
    "PROTO", "FRAME", "GLOBAL", "STACK_GLOBAL", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "MARK", "TUPLE", "TUPLE1", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "REDUCE",
    "STOP",
})


def restore(results: str) -> SubTrackingResults:
    """Results from their JSON."""
    from .sub_tracker import SubTrackingResults

    return SubTrackingResults(json.loads(results))


def read(path: str) -> str:
    """The JSON of stored results."""
    if os.path.isdir(path):
        return _native.gpu_tracker_analyze(path, path)
    with open(path, "rb") as file:
        stored = file.read()
    if stored.lstrip().startswith(b"{"):
        return stored.decode()
    text = _json_of_pickle(stored)
    if text is None:
        raise ValueError(
            f"{path}: it holds no results of weigh. A pickle of another program is not read, "
            "because that executes what is in it; write results as JSON: "
            "json.dump(results.to_json(), file)")
    return text


def _json_of_pickle(stored: bytes) -> str | None:
    texts: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(stored):
            if opcode.name not in _HARMLESS:
                return None
            if isinstance(argument, str):
                # GLOBAL has module and name in one.
                texts.extend(argument.split(" ", 1) if opcode.name == "GLOBAL" else [argument])
    except ValueError:
        return None
    if texts[:2] != [restore.__module__, restore.__name__] or len(texts) != 3:
        return None
    return texts[2]
