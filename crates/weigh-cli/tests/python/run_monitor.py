"""What pytyche's own run_monitor makes of exported files, as JSON.

`read DIR` reads them; `beside DIR COMMAND…` first lets its HWMonitor
watch the machine while a command runs. The module is loaded alone, by its path: the
package around it needs a great deal more.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
from datetime import datetime

package = importlib.util.find_spec("pytyche")
file = pathlib.Path(package.origin).parent / "diagnostics" / "run_monitor.py"
spec = importlib.util.spec_from_file_location("run_monitor", file)
monitor = importlib.util.module_from_spec(spec)
sys.modules["run_monitor"] = monitor
spec.loader.exec_module(monitor)


def logged_by_them(entry):
    """The same entry, put into a RunLog and written by it."""
    log = monitor.RunLog()
    if entry["type"] == "phase":
        own = ("ts", "type", "name", "seconds")
        extra = {key: value for key, value in entry.items() if key not in own}
        log.log_phase(entry["name"], entry["seconds"], **extra)
    else:
        log.log_event(entry["event"], entry.get("data"))
    log._entries[0]["ts"] = entry["ts"]
    log.write(pathlib.Path("theirs.jsonl"))
    return pathlib.Path("theirs.jsonl").read_text()


def read(directory):
    """Their summary of the table, and whether they would write the same log."""
    table, log = directory / "cpu_metrics.csv", directory / "run_log.jsonl"
    metrics, dmon = directory / "hw_metrics.csv", directory / "hw_dmon.csv"
    summary = monitor.build_resource_summary(metrics, table, dmon)
    lines = log.read_text().splitlines(keepends=True)
    entries = [json.loads(line) for line in lines]
    return {
        "usr": summary.cpu_usr_mean_pct,
        "idle": summary.cpu_idle_mean_pct,
        "summary": summary.to_dict(),
        "entries": entries,
        "ours": lines,
        "theirs": [logged_by_them(entry) for entry in entries],
        "moments": [datetime.fromisoformat(entry["ts"]).timestamp() for entry in entries],
    }


def rows(table, begin):
    """The rows of a table: from when, until when, and the two shares."""
    for line in table.read_text().splitlines()[1:]:
        moment, usr, idle = line.split(",")
        end = datetime.fromisoformat(moment).timestamp()
        yield begin, end, float(usr), float(idle)
        begin = end


def between(rows, begin, end):
    """The two shares in a time, each row with as much of it as it has."""
    parts = [(min(to, end) - max(since, begin), usr, idle) for since, to, usr, idle in rows]
    parts = [part for part in parts if part[0] > 0]
    length = sum(part[0] for part in parts)
    return [sum(part[0] * part[which] for part in parts) / length for which in (1, 2)]


def beside(directory, command):
    """The shares that theirs and ours saw, in the time that both have rows of."""
    hardware = monitor.HWMonitor()
    begin = time.time()
    hardware.start(pathlib.Path("theirs"), interval_sec=1)
    subprocess.run(command, check=True)
    theirs = list(rows(hardware.stop()[1], begin))
    subprocess.run(["sh", "-c", '"$WEIGH" export run --as pytyche -o "$0"', directory], check=True)
    first = json.loads((directory / "run_log.jsonl").read_text().splitlines()[0])
    zero = datetime.fromisoformat(first["ts"]).timestamp()
    ours = list(rows(directory / "cpu_metrics.csv", zero))
    both = max(begin, zero), min(theirs[-1][1], ours[-1][1])
    return {
        "ours": between(ours, *both),
        "theirs": between(theirs, *both),
        "cpus": os.cpu_count(),
        "user_shares": sum((to - since) * usr / 100 for since, to, usr, _ in ours),
    }


mode, directory, command = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
print(json.dumps(read(directory) if mode == "read" else beside(directory, command)))
