"""The tools that ``weigh.compat`` stands for, as they are on PyPI.

They are installed into the environment of the tests, and nothing of them is in this repository.
``cargo xtask setup`` also fetches the source package of gpu-tracker, which has its tests and its
tutorial; without that, it is fetched here.
"""

from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import pytest
from compat_support import has

SOURCES = "WEIGH_TEST_SOURCES"
_PACKAGE = "gpu-tracker==5.0.1"
_ARCHIVE = "gpu_tracker-5.0.1.tar.gz"


def need(*modules: str) -> None:
    """Skips a test where one of the tools is not installed."""
    if missing := has(*modules):
        pytest.skip(f"not installed: {' '.join(missing)}; cargo xtask setup installs it")


def gpu_tracker_sources(directory: pathlib.Path) -> pathlib.Path:
    """A fresh copy of the source package of gpu-tracker."""
    archive = _archive()
    if archive is None:
        pytest.skip(f"the source package of {_PACKAGE} cannot be downloaded")
    with tarfile.open(archive) as files:
        files.extractall(directory, filter="data")
    return directory / _ARCHIVE.removesuffix(".tar.gz")


@functools.cache
def _archive() -> pathlib.Path | None:
    if fetched := os.environ.get(SOURCES):
        return pathlib.Path(fetched) / _ARCHIVE
    directory = pathlib.Path(tempfile.mkdtemp(prefix="weigh-test-sources-"))
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    fetch += ["--no-binary", "gpu-tracker", "--dest", os.fspath(directory), _PACKAGE]
    done = subprocess.run(fetch, capture_output=True)
    return directory / _ARCHIVE if done.returncode == 0 else None
