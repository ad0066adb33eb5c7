"""What gpu-tracker itself makes of numbers and files, for the tests to compare with.

usage: gpu_tracker_golden.py usage RESULT.json       its text and JSON of these numbers
       gpu_tracker_golden.py make DIRECTORY          tracking and sub-tracking files of its own
       gpu_tracker_golden.py analyze TF STF OUT      OUT.json, OUT.txt and OUT.pkl
       gpu_tracker_golden.py combine STF FILE...     one file of several
       gpu_tracker_golden.py compare STAT OUT NAME=PICKLE...
       gpu_tracker_golden.py unpickle FILE           a pickle of ours as JSON
       gpu_tracker_golden.py times TF                first, middle and last time of a file of ours
       gpu_tracker_golden.py to_sqlite CSV SQLITE    sub-tracking rows as a database of its own
"""
import dataclasses
import json
import pickle
import random
import sys

from gpu_tracker import SubTrackingAnalyzer, Tracker, TrackingComparison
from gpu_tracker import tracker as classes
from gpu_tracker._helper_classes import _DataProxy, _StaticData, _SubTrackerLog, _TimepointUsage


def built(cls, values):
    """A data class of theirs from a dict of ours, field by field."""
    nested = {
        "max_ram": classes.MaxRAM, "max_gpu_ram": classes.MaxGPURAM,
        "cpu_utilization": classes.CPUUtilization, "gpu_utilization": classes.GPUUtilization,
        "compute_time": classes.ComputeTime, "gpu_percentages": classes.ProcessingUnitPercentages,
    }
    parts = {classes.MaxRAM: classes.RSSValues, classes.CPUUtilization: classes.ProcessingUnitPercentages}
    fields = {}
    for name, value in values.items():
        if isinstance(value, dict):
            value = built(nested.get(name) or parts[cls], value)
        fields[name] = value
    return cls(**fields)


def write(path, results):
    with open(path + ".json", "w") as file:
        file.write(json.dumps(results.to_json(), indent=1))
    with open(path + ".txt", "w") as file:
        file.write(str(results))


def usage(path):
    with open(path) as file:
        values = json.load(file)
    tracker = Tracker.__new__(Tracker)
    tracker.resource_usage = built(classes.ResourceUsage, values)
    write(path + ".theirs", tracker)


def make(directory):
    chance = random.Random(5)
    for kind in (".csv", ".sqlite"):
        for session, count in (("short", 12), ("long", 150)):
            path = f"{directory}/{session}"
            tracking = _DataProxy.create(path + kind)
            tracking.write_static_data(
                _StaticData("megabytes", "gigabytes", "minutes", 25274.793984, 0.0, 2, 4, 0, 0))
            begin = end = 1794789716.0453117
            for _ in range(count):
                fields = {}
                for field in dataclasses.fields(_TimepointUsage):
                    fields[field.name] = chance.random() * chance.choice([1e-5, 1.0, 300.0])
                    if field.name.endswith("n_threads"):
                        fields[field.name] = chance.randrange(1, 9)
                    if "gpu" in field.name:
                        fields[field.name] = 0.0
                fields["timestamp"] = end
                end += 0.9 + chance.random() / 5
                tracking.write_data(_TimepointUsage(**fields))
            for process in (77, 5):
                part = _DataProxy.create(f"{path}-blocks-{process}{kind}")
                now = begin
                blocks = ["load", "train.py:7", "a, \"b\""]
                while now < end or blocks:
                    name = blocks.pop() if blocks else chance.choice(["load", "train.py:7"])
                    part.write_data(_SubTrackerLog(process, name, 0, now))
                    now += 1.2 + chance.random()
                    part.write_data(_SubTrackerLog(process, name, 1, now))
                    now += chance.random()


def analyze(tracking, sub_tracking, out):
    results = SubTrackingAnalyzer(tracking, sub_tracking).sub_tracking_results()
    write(out, results)
    with open(out + ".pkl", "wb") as file:
        pickle.dump(results, file)


def combine(out, *files):
    SubTrackingAnalyzer(None, out).combine_sub_tracking_files(list(files))


def compare(statistic, out, *sessions):
    paths = dict(session.split("=") for session in sessions)
    write(out, TrackingComparison(paths).compare(statistic))


def unpickle(path):
    with open(path, "rb") as file:
        print(json.dumps(pickle.load(file), indent=1), end="")


def times(path):
    timepoints = SubTrackingAnalyzer(path, path).load_timepoints([(0.0, 1e12)]).timestamp
    print(*(repr(float(timepoints.iloc[place])) for place in (0, len(timepoints) // 2, -1)))


def to_sqlite(path, database):
    rows = _DataProxy.create(path).timestamps
    proxy = _DataProxy.create(database)
    for row in rows.itertuples():
        proxy.write_data(_SubTrackerLog(
            int(row.process_id), row.code_block_name, int(row.position), float(row.timestamp)))


if __name__ == "__main__":
    {"usage": usage, "make": make, "analyze": analyze, "combine": combine, "compare": compare,
     "unpickle": unpickle, "times": times, "to_sqlite": to_sqlite}[sys.argv[1]](*sys.argv[2:])
