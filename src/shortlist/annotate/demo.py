"""The demo: scikit-learn's digits as pictures, a model that chooses the shortlists, and, if wanted, a crowd of robots.

Three processes: the server (this one), its trainer, and the crowd, which sees only the API.
"""

import multiprocessing
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People, join_link
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import find_sources
from shortlist.annotate.robots import Manner, reader, run_crowd
from shortlist.annotate.web.serve import Address, admin_url, announcing_address, listen, serve

# spelt out, so that a class is not taken for the key beside it
CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Digits:
    """The pictures to ask about, and others, of known class, to score on."""

    x: NDArray[np.uint8]
    y: NDArray[np.int64]
    test_x: NDArray[np.uint8]
    test_y: NDArray[np.int64]

    @property
    def names(self) -> list[str]:
        """The names of the pictures' files, those to ask about first; they do not give the class away."""
        return [f"{i:04}.png" for i in range(len(self.y) + len(self.test_y))]


def load_digits() -> Digits:
    """1,437 pictures to ask about and 360 to score on."""
    from shortlist.data import load

    data = load("digits")
    assert data.train.y is not None  # all digits are labelled
    assert data.test is not None
    assert data.test.y is not None
    return Digits(np.asarray(data.train.x)[:, 0], data.train.y, np.asarray(data.test.x)[:, 0], data.test.y)


def make_demo(folder: Path, size: int = 5) -> Project:
    """A project of the digits. Those to score on are gold, so that slips and misses are measured as well."""
    from PIL import Image

    digits = load_digits()
    live = LivePlan(size=size, l2=0.03)
    project = Project.create(folder, Settings("Digits (demo)", size, live=live.to_dict()))
    with tempfile.TemporaryDirectory(prefix="shortlist-digits-") as made:
        for name, picture in zip(digits.names, (*digits.x, *digits.test_x), strict=True):
            Image.fromarray(picture).save(Path(made) / name)
        gold = {name: CLASSES[k] for name, k in zip(digits.names[len(digits.y) :], digits.test_y, strict=True)}
        add_items(project, find_sources(Path(made)), gold=gold, classes=CLASSES, strict=True)
    return project


def crowd(url: str, tokens: list[str], manner: Manner) -> None:
    """The process of the robots."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group: the server ends them
    digits = load_digits()
    sides = ((digits.x, digits.y), (digits.test_x, digits.test_y))
    pictures = {picture.tobytes(): CLASSES[k] for x, y in sides for picture, k in zip(x, y, strict=True)}
    run_crowd(url, tokens, reader(pictures), manner)


def run_demo(
    say: Callable[[str], None],
    *,
    robots: int = 0,
    size: int = 5,
    port: int = 8080,
    think: float = 2.5,
    folder: Path | None = None,
) -> None:
    """Make the project, unless `folder` holds one already, serve it until Ctrl-C, and let the robots work."""
    listener, address = listen(Address(port=port))
    with _place(folder) as where, _open(where, size) as project, announcing_address(project, address):
        people = People(project)
        say(f"Owner (works once): {admin_url(project, address)}")
        say(f"Answer yourself:    {join_link(address.url, people.renew_invite(people.ensure('you')))}")
        if robots:
            say(f"{robots} robots answer as well; the admin page shows the accuracy. Press Ctrl-C to end.")
        tokens = [people.make_token("robot", people.ensure(f"robot {i + 1}")) for i in range(robots)]
        with _crowd(address.url, tokens, Manner(think)):
            serve(project, address, listener, live_plan(project.settings))


@contextmanager
def _crowd(url: str, tokens: list[str], manner: Manner) -> Iterator[None]:
    """The robots at work, in a process of their own."""
    if not tokens:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=crowd, args=(url, tokens, manner), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    made = Path(tempfile.mkdtemp(prefix="shortlist-demo-"))
    try:
        yield made / "digits"
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _open(folder: Path, size: int) -> Project:
    return Project.open(folder) if (folder / "project.json").exists() else make_demo(folder, size)
