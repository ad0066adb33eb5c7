"""The Python of the guides runs as it is printed."""

from __future__ import annotations

import pathlib
import re

import pytest
from compat_support import ROOT, python

GUIDES = ["python", "gpu-tracker", "oasis", "pytyche"]


def blocks(guide: str) -> list[str]:
    text = (ROOT / "docs" / "guides" / f"{guide}.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES)
def test_python_of_the_guide_runs(guide: str, tmp_path: pathlib.Path) -> None:
    found = blocks(guide)
    assert found
    for block in found:
        # A logger needs its service; test_integrations.py has them.
        if "weigh.integrations" in block:
            compile(block, guide, "exec")
        else:
            python(block, tmp_path)
