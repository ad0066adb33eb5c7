"""pytest, notebooks and loggers, each where it is installed."""

import os
import subprocess
import sys

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
    result.stdout.fnmatch_lines(["4 tests used * s of CPU time"])


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


def test_mlflow_gets_the_figures(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    from weigh.integrations.mlflow import logger

    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as active, weigh.track(record=False) as run, logger(run):
        pass
    metrics = mlflow.get_run(active.info.run_id).data.metrics
    assert metrics["weigh/memory/peak_bytes"] > 1 << 20


def test_wandb_gets_the_figures():
    wandb = pytest.importorskip("wandb")
    from weigh.integrations.wandb import logger

    with wandb.init(mode="offline", dir=".", project="p") as to:
        with weigh.track(record=False) as run, logger(run, to):
            pass
        assert to.summary["weigh/memory/peak_bytes"] > 1 << 20


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
