import io
import sys
import threading

from shortlist.cli import progress as progress_module
from shortlist.cli.progress import progress


class Stream(io.StringIO):
    """What is written, and a signal for each line of it."""

    def __init__(self):
        super().__init__()
        self.line = threading.Semaphore(0)

    def flush(self):
        self.line.release()

    def wait_for(self, text):
        while text not in self.getvalue():
            assert self.line.acquire(timeout=60)


def captured(monkeypatch):
    """In the test itself: pytest sets its own stream after the fixtures are made."""
    made = Stream()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_without_a_terminal_a_line_says_now_and_then_how_far_it_is(monkeypatch):
    stream = captured(monkeypatch)
    assert progress_module.EVERY == 30
    monkeypatch.setattr(progress_module, "EVERY", 0.01)
    with progress(8, "training", lines=True) as bar:
        bar.advance(2)
        bar.note = "risk 0.5"
        stream.wait_for(" s: training 25%, risk 0.5\n")
        bar.look = lambda: 6
        stream.wait_for(" s: training 75%, risk 0.5\n")


def test_no_line_where_nobody_asked_for_lines_or_it_is_soon_over(monkeypatch):
    stream = captured(monkeypatch)
    with progress(8, "training", lines=True) as bar:  # the first line would come after half a minute
        bar.advance(8)
    monkeypatch.setattr(progress_module, "EVERY", 0.001)
    for quiet, lines in ((True, True), (False, False)):
        with progress(8, "training", quiet=quiet, lines=lines):
            assert not stream.line.acquire(timeout=0.05)
    assert stream.getvalue() == ""
