"""Builds the wheel: maturin makes the module, this adds the native command ``weigh``.

The command is no console script: that would start an interpreter around the measured command.
WEIGH_WHEEL_PROFILE chooses cargo's profile; ``dev`` is quick to build.
"""

import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import *  # noqa: F401,F403 (the hooks of PEP 517)

_ROOT = Path(__file__).resolve().parent.parent
_SCRIPTS = _ROOT / "target" / "wheel-data" / "scripts"
_PROFILE = os.environ.get("WEIGH_WHEEL_PROFILE", "release")

# maturin reads the data directory already when it is asked for the metadata.
_SCRIPTS.mkdir(parents=True, exist_ok=True)
os.environ["MATURIN_PEP517_ARGS"] = (
    f"--profile {_PROFILE} {os.environ.get('MATURIN_PEP517_ARGS', '')}")


def _add_program() -> None:
    command = ["cargo", "build", "--locked", "--package", "weigh-cli", "--profile", _PROFILE]
    subprocess.run(command, cwd=_ROOT, check=True)
    target = _ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    built = target / ("debug" if _PROFILE == "dev" else _PROFILE) / "weigh"
    shutil.copy2(built, _SCRIPTS / "weigh")


def build_wheel(directory, config_settings=None, metadata_directory=None):
    """The wheel that people install."""
    _add_program()
    return maturin.build_wheel(directory, config_settings, metadata_directory)


def build_editable(directory, config_settings=None, metadata_directory=None):
    """What ``pip install -e .`` installs."""
    _add_program()
    return maturin.build_editable(directory, config_settings, metadata_directory)
