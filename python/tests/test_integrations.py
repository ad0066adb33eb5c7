"""pytest, notebooks and loggers, each where it is installed."""

import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
import types

import pytest
import weigh

HEAVY = """
import pytest

def test_light(): pass

@pytest.mark.weigh(max_memory="20MiB")
def test_heavy():
    held = bytearray(b"x") * (64 << 20)
    import time; time.sleep(0.1)
"""


def test_pytest_fails_a_test_that_uses_more_memory_than_allowed(pytester):
    pytester.makepyfile(HEAVY)
    result = pytester.runpytest_subprocess("--weigh")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*used 6* MiB of memory*the limit is 20.0 MiB*", "*heaviest tests*"])


def test_pytest_default_limit_is_in_the_ini_file(pytester):
    pytester.makeini("[pytest]\nweigh_max_memory = 1TiB\n")
    pytester.makepyfile("def test_one(): pass")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_pytest_sums_over_workers(pytester):
    pytest.importorskip("xdist")
    pytester.makepyfile("import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test_one(n): pass")
    result = pytester.runpytest_subprocess("--weigh", "-n", "2")
    result.assert_outcomes(passed=4)
    result.stdout.re_match_lines([
        r"4 tests used [0-9.]+ s of CPU time; 2 workers with their heaviest tests at once: [0-9.]+ MiB"])


def test_pytest_sum_with_an_unknown_part_is_a_lower_bound():
    from weigh.integrations.pytest import _sums, _Used

    tests = [_Used("a", "gw0", 2 << 20, 1.0), _Used("b", "gw1", None, None)]
    assert _sums(tests) == (
        "2 tests used at least 1.00 s of CPU time; "
        "2 workers with their heaviest tests at once: at least 2.0 MiB")
    assert _sums(tests[:1]) == "1 tests used 1.00 s of CPU time"


def test_pytest_limit_that_cannot_be_checked_is_a_warning(pytester):
    pytester.makepyfile(HEAVY)
    pytester.makeconftest("""
import weigh

made = weigh.track
weigh.track = lambda *name, **settings: made(*name, **settings, skip=["process"])
""")
    result = pytester.runpytest_subprocess("--weigh")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*the limit of memory is not checked:*", "*not known*test_heavy*"])


def test_cell_magic_shows_figures_and_has_them_in_the_metadata():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "weigh")
    with capture_output() as captured:
        shell.run_cell_magic("weigh", "cell", "x = 1 + 1")
    assert shell.user_ns["x"] == 2
    (shown,) = captured.outputs
    assert shown.metadata["weigh"]["figures"]["cpu_time_seconds"]["value"] >= 0
    with pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("weigh", "", "1 / 0")


MEGABYTES = 150
_held = []

#: Shares of memory are read at once, whatever that costs.
MEMORY = {"record": False, "budget": 1.0}


def hold(started):
    """In a worker: touches memory, and keeps it until the pool ends."""
    started.wait()
    _held.append(bytearray(b"x") * (MEGABYTES << 20))


@contextlib.contextmanager
def pool_with_memory():
    """Two workers; a call makes each of them hold memory."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(2) as pool:
        # Both take part: none begins its second task before the other has its first.
        started = manager.Barrier(2)
        yield lambda: pool.map(hold, [started] * 2, chunksize=1)


def test_mlflow_gets_the_memory_of_workers_that_its_own_metrics_do_not_tell_apart(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    psutil = pytest.importorskip("psutil")
    from weigh.integrations.mlflow import logger

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_system_metrics_sampling_interval(0.1)
    mlflow.set_system_metrics_samples_before_logging(1)
    with mlflow.start_run(log_system_metrics=True) as active, weigh.track(**MEMORY) as run:
        with logger(run) as log, pool_with_memory() as fill:
            before = run.snapshot()["now/memory_bytes"]
            fill()
            log.send()

            def logged():
                return mlflow.get_run(active.info.run_id).data.metrics

            while "system/system_memory_usage_megabytes" not in logged():
                time.sleep(0.05)
            theirs, ours = logged(), logged()["weigh/now/memory_bytes"]
            machine = psutil.virtual_memory()
    assert ours - before > 2 * MEGABYTES << 20
    # All that MLflow knows of memory is that of the machine, whoever uses it.
    own = {key for key in theirs if key.startswith("system/") and "memory" in key}
    assert own == {"system/system_memory_usage_megabytes", "system/system_memory_usage_percentage"}
    assert theirs["system/system_memory_usage_megabytes"] == pytest.approx(machine.used / 1e6, rel=0.5)
    assert theirs["weigh/limit/memory_bytes"] <= machine.total


def test_wandb_gets_the_memory_of_workers_that_its_own_metrics_miss():
    wandb = pytest.importorskip("wandb")
    from weigh.integrations.wandb import logger

    # The shortest interval, and values that can be read back without a server.
    settings = wandb.Settings(x_stats_sampling_interval=0.1, x_stats_buffer_size=1000)

    def newest(to, count):
        """What W&B measured as the memory of the program, once it has more than so many values."""
        while len(values := to._system_metrics.get("proc.memory.rssMB", [])) <= count:
            time.sleep(0.05)
        return len(values), values[-1][1] * 1e6

    with wandb.init(mode="offline", dir=".", project="p", settings=settings) as to:
        with weigh.track(**MEMORY) as run, logger(run, to) as log, pool_with_memory() as fill:
            before = run.snapshot()["now/memory_bytes"]
            count, their_before = newest(to, 0)
            fill()
            log.send()
            # Two more: one of them may have begun before.
            theirs = newest(to, count + 2)[1]
            ours = to.summary["weigh/now/memory_bytes"]
        assert to.summary["weigh/memory/peak_bytes"] >= ours
    assert ours - before > 2 * MEGABYTES << 20
    assert theirs - their_before < MEGABYTES << 20, "W&B sees the workers now"


LIGHTNING = """
class Callback:
    pass
"""


def test_lightning_callback_measures_from_fit_start_to_its_end(tmp_path, monkeypatch):
    """Beside a stand-in where Lightning is not installed: its hooks in the order of its documentation."""
    try:
        import lightning.pytorch.callbacks  # noqa: F401
    except ImportError:
        package = tmp_path / "stand-in" / "lightning" / "pytorch"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").touch()
        (package / "__init__.py").touch()
        (package / "callbacks.py").write_text(LIGHTNING)
        monkeypatch.syspath_prepend(os.fspath(tmp_path / "stand-in"))
    from weigh.integrations.lightning import callback

    logged = []
    logger = types.SimpleNamespace(log_metrics=lambda values, step: logged.append((step, values)))
    trainer = types.SimpleNamespace(loggers=[logger], global_step=0, current_epoch=0)
    measured = callback(every_steps=2)
    measured.on_fit_start(trainer, None)
    for trainer.current_epoch in range(2):
        measured.on_train_epoch_start(trainer, None)
        for batch in range(3):
            trainer.global_step += 1
            measured.on_train_batch_end(trainer, None, None, None, batch)
        measured.on_train_epoch_end(trainer, None)
    measured.on_fit_end(trainer, None)
    assert [step for step, _ in logged] == [2, 4, 6, 6]
    assert all(values["weigh/now/memory_bytes"] > 1 << 20 for _, values in logged)
    assert [phase.name for phase in measured.run.phases] == ["epoch", "epoch"]
    assert not measured.run.is_running
    for name in [name for name in sys.modules if name.partition(".")[0] == "lightning"]:
        monkeypatch.delitem(sys.modules, name)


def test_tensorboard_gets_the_figures(tmp_path):
    tensorboardX = pytest.importorskip("tensorboardX")
    from weigh.integrations.tensorboard import logger

    with tensorboardX.SummaryWriter(str(tmp_path / "tb")) as writer:
        with weigh.track(record=False) as run, logger(run, writer):
            pass
    (file,) = (tmp_path / "tb").iterdir()
    assert b"weigh/memory/peak_bytes" in file.read_bytes()


def test_package_needs_no_other_package():
    script = "import weigh, sys; weigh.track(record=False).start().stop().figures; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(weigh.__file__))!r}); {script}"]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    others = {"numpy", "pandas", "pyarrow", "pytest", "inspect", "dataclasses", "pathlib"}
    assert not others & set(loaded)
