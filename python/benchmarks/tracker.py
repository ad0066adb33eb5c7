"""What a tracker costs the program that it measures: weigh beside gpu-tracker and beside none.

    python python/benchmarks/tracker.py slowdown ROUNDS SECONDS
    python python/benchmarks/tracker.py memory TRACKER

Prints JSON. The slowdown is that of a tight loop of a fixed amount of work, in one process and in
turns, so that all of them meet the same machine. Start and stop of a tracker are not in it.
"""

from __future__ import annotations

import gc
import json
import os
import random
import sys
import time
from contextlib import nullcontext
from typing import Any

INTERVAL = 0.1


def tracker(name: str) -> Any:
    """A tracker that samples ten times a second."""
    if name == "weigh":
        import weigh

        return weigh.track(interval=INTERVAL, output=fresh())
    if name == "gpu_tracker":
        import gpu_tracker

        return gpu_tracker.Tracker(sleep_time=INTERVAL, disable_logs=True)
    return nullcontext()


def fresh() -> str:
    """A directory that does not exist yet."""
    fresh.count += 1
    return f"recording-{os.getpid()}-{fresh.count}"


fresh.count = 0


def loop(turns: int) -> int:
    """The load: bytecode and nothing else."""
    total = 0
    for number in range(turns):
        total += number & 7
    return total


def turns_of(seconds: float) -> int:
    """How many turns take so long here."""
    turns = 1_000_000
    began = time.perf_counter()
    loop(turns)
    return int(turns * seconds / (time.perf_counter() - began))


def timed(name: str, turns: int) -> dict[str, float]:
    """The time of the loop under a tracker: real, CPU of its thread, CPU of all there is."""
    gc.collect()
    with tracker(name):
        # Both have begun to sample.
        time.sleep(3 * INTERVAL)
        children = live_children_cpu()
        wall, thread, process = time.perf_counter(), time.thread_time(), time.process_time()
        loop(turns)
        wall, thread = time.perf_counter() - wall, time.thread_time() - thread
        everything = time.process_time() - process + live_children_cpu() - children
    return {"wall": wall, "thread": thread, "all": everything}


def children() -> list[str]:
    return open(f"/proc/self/task/{os.getpid()}/children").read().split()


def live_children_cpu() -> float:
    """CPU time of processes that this one has started and that run still."""
    total = 0.0
    for pid in children():
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def slowdown(rounds: int, seconds: float) -> dict[str, Any]:
    names = ["none", "weigh", "gpu_tracker"]
    turns = turns_of(seconds)
    for name in names:
        timed(name, turns // 10)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in random.sample(names, len(names)):
            found[name].append(timed(name, turns))
    return found


def memory(name: str) -> dict[str, float]:
    """What a tracker adds to an interpreter, after two seconds: resident memory, as ``top`` shows it.

    Of a tracker that is a process of its own, its private memory is added.
    """
    before = kilobytes("self", "Rss:")
    with tracker(name):
        time.sleep(2.0)
        added = kilobytes("self", "Rss:") - before
        added += sum(kilobytes(pid, "Private_") for pid in children())
    return {"added": added * 1024}


def kilobytes(pid: str, beginning: str) -> int:
    lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(beginning))


if __name__ == "__main__":
    if sys.argv[1] == "slowdown":
        print(json.dumps(slowdown(int(sys.argv[2]), float(sys.argv[3]))))
    else:
        print(json.dumps(memory(sys.argv[2])))
