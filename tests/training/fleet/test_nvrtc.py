"""Compiled kernels in the user's cache. Compiling itself needs a GPU's compiler."""

from pathlib import Path

import pytest

from shortlist.training.fleet.kernels.nvrtc import kept, source


def test_sources_are_whole() -> None:
    """NVRTC is given one text: it would not find the files of this package."""
    for name in ("conv.cu", "conv_weight.cu", "lenet.cu"):
        text = source(name)
        assert '#include "' not in text
        assert ("int span(int pixels)" in text) == name.startswith("conv")


def test_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[str] = []

    def make(text: str) -> bytes:
        made.append(text)
        return text.encode()

    assert kept(["source", "-D A=1"], lambda: make("one")) == b"one"
    assert kept(["source", "-D A=1"], lambda: make("again")) == b"one"
    assert kept(["source", "-D A=2"], lambda: make("two")) == b"two"
    assert kept(["source-D A=1"], lambda: make("three")) == b"three"
    assert made == ["one", "two", "three"]


def test_a_failure_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail() -> bytes:
        raise RuntimeError("no such instruction")

    with pytest.raises(RuntimeError, match="instruction"):
        kept(["source"], fail)
    assert kept(["source"], lambda: b"better") == b"better"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert kept(["source"], lambda: b"one") == b"one"
    assert kept(["source"], lambda: b"two") == b"two"
