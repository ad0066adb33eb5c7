"""What oasislmf's own ResourceMonitor makes of a table: its statistics, as JSON.

The module is loaded alone, by its path: the package around it needs a great deal more.
"""

import importlib.util
import json
import pathlib
import sys

package = importlib.util.find_spec("oasislmf")
file = pathlib.Path(package.origin).parent / "execution" / "resource_monitor.py"
spec = importlib.util.spec_from_file_location("resource_monitor", file)
monitor = importlib.util.module_from_spec(spec)
spec.loader.exec_module(monitor)

rows = monitor._load_csv(sys.argv[1])
print(json.dumps({
    "header": monitor.CSV_HEADER,
    "rows": len(rows),
    "stats": monitor._compute_stats(rows),
    "peak_total_uss_mb": monitor._compute_peak_total_uss(rows),
}))
