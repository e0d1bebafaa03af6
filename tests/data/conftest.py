import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Every test has a cache of its own, and none reaches the network by mistake."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SHORTLIST_OFFLINE", "1")
    return tmp_path / "cache" / "shortlist"


def real_folder(source):
    stated = os.environ.get("SHORTLIST_DATA")
    if not stated or not (Path(stated) / source).is_dir():
        pytest.skip(f"needs the real {source} under SHORTLIST_DATA")
    return Path(stated) / source
