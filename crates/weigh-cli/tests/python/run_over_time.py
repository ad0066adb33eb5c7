"""Runs the Python of the guide where `out/run.parquet` lies, and prints what it finds.

    python run_over_time.py GUIDE
"""

import json
import re
import sys

blocks = re.findall(r"```python\n(.*?)```", open(sys.argv[1]).read(), re.DOTALL)
found = {}
exec("\n".join(blocks), found)
run = found["run"]
peak = int(run["memory_used_bytes"].max())
assert found["peak"].item() == found["at_peak"][0][1] == peak
assert found["memory"]["memory_high_water_bytes"].max() * 2**20 >= peak
assert (found["cores"].dropna() >= 0).all()
print(json.dumps({
    "memory": peak,
    "cpu": float(run["usage_cpu_seconds"].iloc[-1]),
    "processes": int(run["processes_alive"].max()),
}))
