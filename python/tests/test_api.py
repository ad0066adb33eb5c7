"""The functions and objects that people use."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import weigh

PHASES = "import weigh\nwith weigh.phase('inner', n=3): weigh.mark('here', why='x')\n"


def events(directory, kind):
    lines = Path(directory, "events.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, lines) if one["event"] == kind]


def burn(seconds):
    import time

    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_with_statement_measures_cpu_time_and_memory():
    with weigh.track("train", interval=0.05) as run:
        burn(0.3)
        held = bytearray(64 << 20)
    del held
    assert run.summary["run"]["name"] == "train"
    cpu = run.figures.cpu_time
    assert cpu.value >= 0.29 and cpu.name == "cpu_time_seconds" and cpu.unit == "seconds"
    assert run.figures["memory_peak_bytes"] == run.figures.memory_peak
    assert run.figures.memory_peak.upper is None or run.figures.memory_peak.upper >= 64 << 20
    assert Path(run.directory, "summary.json").exists()
    with pytest.raises(AttributeError, match="there is no figure nothing"):
        run.figures.nothing


def test_phases_are_nested_and_carry_data():
    with weigh.track() as run:
        with run.phase("outer"), weigh.phase("inner", n=3):
            run.mark("text", step=1)
        run.event("checkpoint", {"step": 2})
    outer, inner = events(run.directory, "phase_start")
    assert (outer["name"], inner["name"], inner["parent"]) == ("outer", "inner", outer["id"])
    assert inner["data"] == {"n": 3}
    assert [one["data"]["step"] for one in events(run.directory, "mark")] == [1, 2]
    assert len(events(run.directory, "phase_end")) == 2
    assert [phase.name for phase in run.phases] == ["outer", "inner"]


def test_functions_coroutines_and_generators_are_decorated():
    @weigh.phase
    def plain():
        return 1

    @weigh.phase("named")
    async def coroutine():
        await asyncio.sleep(0)
        return 2

    @weigh.phase
    def generator():
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"
        return 5

    @weigh.phase
    async def agenerator():
        yield 1
        yield 2

    async def collect():
        return [one async for one in agenerator()]

    with weigh.track() as run:
        assert plain() == 1
        assert asyncio.run(coroutine()) == 2
        numbers = generator()
        assert next(numbers) == 1 and numbers.send("x") == "x"
        assert numbers.throw(KeyError()) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(numbers)
        assert stop.value.value == 5
        with weigh.phase("not inside a generator"):
            pass
        assert asyncio.run(collect()) == [1, 2]
    starts = events(run.directory, "phase_start")
    assert len(starts) == len(events(run.directory, "phase_end")) == 5
    assert starts[3]["name"] == "not inside a generator" and "parent" not in starts[3]


def test_decorated_function_is_a_run_each_time():
    ended = []

    @weigh.track("work", record=False, on_stop=ended.append)
    def work(n):
        return n + 1

    assert [work(1), work(2)] == [2, 3]
    assert len({run.id for run in ended}) == 2


def test_phase_outside_a_run_does_nothing():
    with weigh.phase("nowhere"):
        weigh.mark("nothing")
    assert os.listdir() == []


def test_snapshot_is_flat_while_it_goes_on():
    with weigh.track(record=False) as run:
        burn(0.05)
        now = run.snapshot()
        assert all(isinstance(value, float) for value in now.values())
        assert now["cpu/time_seconds"] >= 0.04 and now["memory/peak_bytes"] > 1 << 20
        assert run.snapshot()["duration_seconds"] > now["duration_seconds"]
    assert not [key for key in run.snapshot() if key.startswith("now/")], "nothing is used any more"
    assert run.directory is None
    with pytest.raises(weigh.Error, match="not recorded"):
        run.table("process")


def test_snapshot_has_what_is_used_now_and_what_was_used_so_far():
    with weigh.track(record=False) as run:
        held = bytearray(b"x") * (64 << 20)
        full = run.snapshot()
        del held
        burn(0.3)
        empty = run.snapshot()
    assert full["now/memory_bytes"] - empty["now/memory_bytes"] > 60 << 20
    assert empty["memory/peak_bytes"] >= full["now/memory_bytes"]
    assert empty["now/processes"] == 1.0 and empty["now/threads"] >= 2.0
    assert 0 < empty["now/cpu_cores"] <= empty["limit/cores"] + 0.1
    assert empty["limit/memory_bytes"] > 1 << 28
    # Without a GPU nothing is known of it, and that is not 0.
    if run.figures.gpu_memory_peak.value is None:
        assert not [key for key in empty if key.startswith(("gpu/", "gpus/", "now/gpu"))]


def test_snapshot_of_what_is_not_collected_has_no_key():
    with weigh.track(record=False, skip=["process"]) as run:
        now = run.snapshot()
    assert "now/memory_bytes" not in now and "now/processes" not in now
    assert now["duration_seconds"] > 0


def test_command_is_run_and_measured():
    done = weigh.run([sys.executable, "-c", "raise SystemExit(3)"])
    assert done.exit_code == 3
    assert done.figures.cpu_time.method == "exact"
    with pytest.raises(FileNotFoundError):
        weigh.run(["./no-such-program"])


DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    while time.process_time() < 0.3:
        pass
"""


def test_daemon_of_a_command_is_counted_exactly_where_this_process_is_its_subreaper():
    done = weigh.run([sys.executable, "-c", DAEMON], subreaper=True, wait_all=True, interval=0.05)
    cpu = done.figures.cpu_time
    assert cpu.method == "exact" and cpu.value >= 0.3
    assert not [one for one in done.summary["monitor"]["faults"] if "subreaper" in one]
    done = weigh.run([sys.executable, "-c", DAEMON])
    assert [one for one in done.summary["monitor"]["faults"] if "subreaper" in one]


def test_attached_process_is_measured_until_it_exits():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        with weigh.attach(child.pid) as run:
            child.communicate(b"\n")
            assert run.wait(60)
    assert run.summary["run"]["target"] is not None
    with pytest.raises(ValueError):
        weigh.attach()


def test_script_under_weigh_run_finds_the_run():
    program = shutil.which("weigh", path=os.path.dirname(sys.executable))
    command = [program, "run", "-o", "rec", "--", sys.executable, "-c", PHASES]
    subprocess.run(command, check=True, capture_output=True)
    (phase,) = events("rec", "phase_start")
    assert (phase["name"], phase["data"]) == ("inner", {"n": 3})
    (mark,) = events("rec", "mark")
    assert (mark["text"], mark["data"]) == ("here", {"why": "x"})
    assert [one.name for one in weigh.open("rec").phases] == ["inner"]


def test_program_started_by_a_tracker_finds_the_run():
    with weigh.track() as run:
        subprocess.run([sys.executable, "-c", PHASES], check=True)
    assert [one["name"] for one in events(run.directory, "phase_start")] == ["inner"]
    assert "WEIGH_RUN" not in os.environ


def test_reports_and_charts_are_made():
    with weigh.track("a<b", interval=0.02) as run:
        burn(0.2)
    assert b"<html" in run.report("html", "r.html")[:2000]
    assert Path("r.html").stat().st_size > 10_000
    assert run.report("pdf").startswith(b"%PDF") and b"# " in run.report("md")
    assert run.plot("cpu").svg.startswith("<svg") and run.plot()._repr_svg_()
    assert "a&lt;b" in run._repr_html_()
    with pytest.raises(ValueError, match="html, md, pdf"):
        run.report("doc")
    with pytest.raises(ValueError):
        run.plot("no.such.metric")


def test_settings_are_checked():
    for wrong in ({"interval": -1.0}, {"interval": 1e-6}, {"skip": ["x"]}, {"budget": 2.0}):
        with pytest.raises(ValueError):
            weigh.track(**wrong).start()
    with pytest.raises(FileNotFoundError):
        weigh.open("no-such-run")
    assert os.listdir() == []


def test_doctor_says_what_can_be_measured():
    states = {one["name"]: one["state"] for one in weigh.doctor()["collectors"]}
    assert states["process"] == "ready"
