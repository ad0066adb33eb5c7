"""``python -m weigh.compat.gpu_tracker``: the program ``weigh`` under the name gpu-tracker.

This process is replaced by the program, so no interpreter stays around the tracked command.
"""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    """Runs weigh with the options of gpu-tracker."""
    scripts = sysconfig.get_path("scripts")
    program = shutil.which("weigh", path=scripts) or shutil.which("weigh")
    if program is None:
        sys.exit("gpu-tracker: the program weigh is neither in " + scripts + " nor on PATH")
    os.execv(program, ["gpu-tracker", *sys.argv[1:]])


if __name__ == "__main__":
    main()
