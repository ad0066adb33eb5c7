"""A pytest plugin: tests of gpu-tracker find ``weigh.compat.gpu_tracker`` under the name gpu_tracker."""

import subprocess
import sys
import types

import weigh.compat.gpu_tracker as package
from weigh.compat.gpu_tracker import __main__ as program
from weigh.compat.gpu_tracker import sub_tracker, tracker

# The tests take two things from gpu-tracker's own helpers: the name of a table, and the module
# `subprocess`, whose functions they replace.
helpers = types.ModuleType("gpu_tracker._helper_classes")
helpers._SQLiteDataProxy = types.SimpleNamespace(_DATA_TABLE="data")  # type: ignore[attr-defined]
helpers.subp = subprocess  # type: ignore[attr-defined]

sys.modules.update({
    "gpu_tracker": package,
    "gpu_tracker.__main__": program,
    "gpu_tracker._helper_classes": helpers,
    "gpu_tracker.sub_tracker": sub_tracker,
    "gpu_tracker.tracker": tracker,
})
