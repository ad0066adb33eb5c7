"""Forks, threads, exits, exceptions and full disks."""

import concurrent.futures
import gc
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import weigh

METHODS = ["fork", "spawn", "forkserver"]


def entries(directory):
    return [json.loads(line) for line in Path(directory, "events.jsonl").read_text().splitlines()]


def names(directory, kind="phase_start"):
    return sorted(one["name"] for one in entries(directory) if one["event"] == kind)


def assert_written_once(directory):
    sequence = [one["seq"] for one in entries(directory) if "seq" in one]
    assert len(sequence) == len(set(sequence))


def work(n):
    with weigh.phase("work", n=n):
        weigh.mark("done")
    return n


def exit_code(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["Pool", "ProcessPoolExecutor"])
def test_phases_of_workers_are_in_the_recording_of_the_parent(method, kind):
    context = multiprocessing.get_context(method)
    with weigh.track() as run:
        if kind == "Pool":
            with context.Pool(2) as pool:
                assert pool.map(work, range(6)) == list(range(6))
        else:
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                assert list(pool.map(work, range(6))) == list(range(6))
    assert names(run.directory) == ["work"] * 6
    assert_written_once(run.directory)
    assert run.summary["run"]["complete"]


def test_fork_server_that_is_older_than_the_run_sends_phases_to_it():
    context = multiprocessing.get_context("forkserver")

    def phases_of_a_pool():
        with context.Pool(1) as pool:
            pool.map(work, range(2))

    phases_of_a_pool()
    runs = []
    for _ in range(2):
        with weigh.track() as run:
            phases_of_a_pool()
        runs.append(run)
    phases_of_a_pool()
    assert [names(run.directory) for run in runs] == [["work"] * 2] * 2


def test_worker_with_a_run_of_its_own_belongs_to_the_parent_again_after_it():
    with weigh.track() as run:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(own_run, ["own"]) == [["of its own"]]
    assert names(run.directory) == ["after"]


def own_run(directory):
    with weigh.track(output=directory), weigh.phase("of its own"):
        pass
    with weigh.phase("after"):
        pass
    return names(directory)


# Workers of joblib import the program, so its main part is guarded.
JOBLIB = """
import json, os, sys
import joblib, weigh

def work(n):
    with weigh.phase("work", n=n):
        return os.getpid()

def main():
    with weigh.track(output="rec") as run:
        parallel = joblib.Parallel(n_jobs=2, backend=sys.argv[1])
        workers = parallel(joblib.delayed(work)(n) for n in range(4))
    seen = run.table("process").to_pyarrow()["pid"].to_pylist()
    print(json.dumps({"workers": workers, "main": os.getpid(), "seen": seen}))

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("backend", "method"), [("loky", ""), *(("multiprocessing", method) for method in METHODS)]
)
def test_joblib_workers_are_measured_and_send_their_phases(backend, method):
    pytest.importorskip("joblib")
    pytest.importorskip("pyarrow")
    Path("program.py").write_text(JOBLIB)
    done = subprocess.run(
        [sys.executable, "program.py", backend], check=True, capture_output=True, text=True,
        env={**os.environ, **({"JOBLIB_START_METHOD": method} if method else {})},
    )
    found = json.loads(done.stdout)
    assert names("rec") == ["work"] * 4
    assert found["main"] not in found["workers"]
    assert set(found["workers"]) <= set(found["seen"])


def test_child_that_leaves_the_with_statement_ends_nothing():
    with weigh.track() as run:
        with run.phase("outer"):
            pid = os.fork()
        if pid == 0:
            run.__exit__(None, None, None)
            os._exit(0 if run.stop() is run and not run.is_running else 1)
        assert exit_code(pid) == 0
        with run.phase("after"):
            pass
    assert names(run.directory) == ["after", "outer"]
    assert len([one for one in entries(run.directory) if one["event"] == "phase_end"]) == 2
    assert_written_once(run.directory)


def test_child_that_collects_its_inheritance_does_not_hang():
    run = weigh.track().start()
    pid = os.fork()
    if pid == 0:
        run._session = None
        gc.collect()
        os._exit(0)
    assert exit_code(pid) == 0
    assert run.stop().summary["run"]["complete"]


def test_child_may_have_a_run_of_its_own():
    with weigh.track() as outer:
        pid = os.fork()
        if pid == 0:
            with weigh.track(output="child") as own, weigh.phase("of the child"):
                pass
            weigh.mark("to the parent")
            os._exit(0 if own.directory.name == "child" else 1)
        assert exit_code(pid) == 0
    assert names("child") == ["of the child"] and names(outer.directory) == []
    assert [one["text"] for one in entries(outer.directory) if one["event"] == "mark"] == ["to the parent"]


def test_fork_in_a_thread():
    codes = []

    def in_thread():
        pid = os.fork()
        if pid == 0:
            work(1)
            os._exit(0)
        codes.append(exit_code(pid))

    with weigh.track(interval=0.001) as run:
        threads = [threading.Thread(target=in_thread) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert codes == [0] * 8 and names(run.directory) == ["work"] * 8
    assert_written_once(run.directory)


FORKS = 10


def test_fork_while_other_threads_and_the_sampler_hold_locks():
    over = threading.Event()

    def snapshots(run):
        while not over.is_set():
            run.snapshot()

    with weigh.track(interval=0.001) as run:
        threads = [threading.Thread(target=snapshots, args=(run,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        codes = []
        for n in range(FORKS):
            pid = os.fork()
            if pid == 0:
                # A deadlock ends the child, and the test fails.
                signal.alarm(30)
                work(n)
                run.mark("of a child")
                run.stop()
                run._session = None
                gc.collect()
                with weigh.track(record=False) as own:
                    is_own = own.snapshot()["duration_seconds"] > 0
                os._exit(0 if is_own else 1)
            codes.append(exit_code(pid))
        over.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * FORKS
    assert names(run.directory) == ["work"] * FORKS
    marks = [one["text"] for one in entries(run.directory) if one["event"] == "mark"]
    assert sorted(marks) == ["done"] * FORKS + ["of a child"] * FORKS
    assert_written_once(run.directory)


def test_program_that_replaces_itself_leaves_a_recording_and_does_not_hang():
    after = "import weigh; weigh.mark('after'); weigh.phase('after').begin(); print('done')"
    script = f"""
import os, sys, weigh
run = weigh.track(output="rec").start()
run.mark("before")
# Another thread writes it, which ends with this program.
while '"event":"mark"' not in open("rec/events.jsonl").read():
    pass
os.execv(sys.executable, [sys.executable, "-c", {after!r}])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert not weigh.open("rec").summary["run"]["complete"]
    assert [one["text"] for one in entries("rec") if one["event"] == "mark"] == ["before"]


def test_exec_in_a_child_leaves_no_descriptor_behind():
    listing = "import os; print(len(os.listdir('/proc/self/fd')))"
    command = [sys.executable, "-c", listing]

    def listed():
        # What this program has inherited is passed on, too.
        return subprocess.run(command, capture_output=True, check=True, close_fds=False).stdout

    without = listed()
    with weigh.track():
        within = listed()
    assert within == without


@pytest.mark.parametrize(
    ("end", "code"), [("pass", 0), ("raise SystemExit(3)", 3), ("1 / 0", 1), ("os._exit(4)", 4)]
)
def test_interpreter_exit_without_stop(end, code):
    script = f"import os, weigh\nrun = weigh.track(output='rec').start()\nweigh.mark('here')\n{end}\n"
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE)
    assert done.returncode == code
    # After os._exit nothing more is written; what was recorded can be read.
    assert weigh.open("rec").summary["run"]["complete"] == (end != "os._exit(4)")


def test_exception_leaves_the_results_up_to_it():
    run = weigh.track()
    with pytest.raises(KeyError):
        with run, run.phase("fails"):
            raise KeyError("secret")
    assert run.summary["run"]["complete"] and names(run.directory) == ["fails"]
    assert [one["text"] for one in entries(run.directory) if one["event"] == "mark"] == ["exception KeyError"]


def test_nested_and_concurrent_runs_are_apart():
    with weigh.track(output="outer") as outer:
        weigh.mark("one")
        with weigh.track(output="inner"):
            weigh.mark("two")
            assert os.environ["WEIGH_RUN"].endswith("inner")
        assert os.environ["WEIGH_RUN"].endswith("outer")
        weigh.mark("three")

        def in_thread(n):
            with weigh.track(output=f"thread-{n}", inherit=False) as own:
                own.mark(str(n))

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(in_thread, range(4)))
    marks = lambda d: [one["text"] for one in entries(d) if one["event"] == "mark"]
    assert marks("inner") == ["two"] and marks("outer") == ["one", "three"]
    assert [marks(f"thread-{n}") for n in range(4)] == [["0"], ["1"], ["2"], ["3"]]
    assert outer.warnings == []


def test_run_begins_once_and_may_be_stopped_twice():
    run = weigh.track(record=False)
    with pytest.raises(RuntimeError):
        run.stop()
    run.start()
    with pytest.raises(RuntimeError):
        run.start()
    assert run.stop() is run.stop()


def test_full_disk_leaves_the_figures_and_a_warning():
    script = """
import resource, signal, weigh
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
with weigh.track(interval=0.001) as run:
    for n in range(2000):
        run.mark("x" * 50)
    while run.snapshot()["duration_seconds"] < 0.3:
        pass
assert run.figures.cpu_time.value > 0
print(run.warnings, run.summary["monitor"]["faults"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout or "full" in done.stdout, done.stdout


def test_disk_that_is_full_leaves_the_figures_and_a_warning():
    script = """
import weigh
with weigh.track(interval=0.001, output="small/rec") as run:
    for n in range(4000):
        run.mark("x" * 50)
    while run.snapshot()["duration_seconds"] < 0.3:
        pass
assert run.figures.cpu_time.value > 0
print(run.warnings, run.summary["monitor"]["faults"])
"""
    os.mkdir("small")
    mount = "mount -t tmpfs -o size=64k tmpfs small"
    mounted = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    if not shutil.which("unshare") or subprocess.run([*mounted, "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: root is needed")
    done = subprocess.run([*mounted, sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No space left" in done.stdout or "full" in done.stdout, done.stdout


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def held():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def cycles(number):
    for _ in range(number):
        with weigh.track(record=False):
            pass


def test_cycles_leak_no_descriptor_and_no_thread():
    cycles(3)
    before = held()
    cycles(20)
    assert held() == before


@pytest.mark.soak
def test_thousand_cycles_leak_nothing(capsys):
    cycles(100)
    before, memory = held(), resident()
    cycles(1000)
    grown = resident() - memory
    with capsys.disabled():
        print(f"1,000 cycles: {held()} descriptors and threads, memory {grown / 1024:+.0f} KiB")
    assert held() == before and grown < 4 << 20


@pytest.mark.soak
def test_thousand_forks_leak_nothing_and_write_no_line_twice(capsys):
    with weigh.track(interval=0.001) as run:
        work(-1)
        before = held()
        for n in range(1000):
            pid = os.fork()
            if pid == 0:
                work(n)
                os._exit(0)
            assert exit_code(pid) == 0
        assert held() == before
    assert names(run.directory) == ["work"] * 1001
    assert_written_once(run.directory)
