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


@pytest.fixture(scope="session")
def cifar10_batches(tmp_path_factory):
    """The published binary batches, unpacked once a session from the packed planes (about 15 s)."""
    from shortlist.data.sources import cifar10

    folder = real_folder("cifar10")
    if not (folder / "green.xz").is_file():
        pytest.skip("needs the packed planes of CIFAR-10 under SHORTLIST_DATA")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        dataset = cifar10.read()
        return cifar10.folders("cifar10")[-1] / "cifar-10-batches-bin", dataset
