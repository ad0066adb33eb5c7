"""Every test runs in a directory of its own, outside any run."""

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("WEIGH_RUN", "WEIGH_INBOX", "WEIGH_PHASE"):
        monkeypatch.delenv(name, raising=False)
