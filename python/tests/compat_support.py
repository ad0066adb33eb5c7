"""Scripts in an interpreter of their own, and loads whose truth is known."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

#: The checkout.
ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Loads for scripts: memory is touched, CPU time is counted by the kernel.
LOADS = """
import os, time

def touch(megabytes):
    block = bytearray(megabytes * 1_000_000)
    for place in range(0, len(block), 4096):
        block[place] = 1
    return block

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def waiting_fork():
    # It shares all memory of the script until the function that is returned ends it.
    asked, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(asked, 1)
        os._exit(0)

    def end():
        os.write(told, b'x')
        os.waitpid(child, 0)

    return end
"""


def python(script: str, directory: pathlib.Path, *arguments: str) -> str:
    """The output of a script; it has no file of its own, so that children do not run it again."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS + script, *arguments], cwd=directory, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python_json(script: str, directory: pathlib.Path, *arguments: str) -> Any:
    """The last line of a script's output, as JSON."""
    return json.loads(python(script, directory, *arguments).splitlines()[-1])


def environment() -> dict[str, str]:
    """The environment of scripts: this interpreter's path, wherever they run."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path}


def has(*modules: str) -> list[str]:
    """Those of these modules that are not installed."""
    from importlib.util import find_spec

    return [module for module in modules if find_spec(module) is None]
