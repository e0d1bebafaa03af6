"""A real Chromium in front of a real server process."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shortlist.annotate.project.project import Project

from .forked import ForkedServer, prepare
from .person import Person
from .projects import make_project

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync", "--autoplay-policy=no-user-gesture-required"]


def arguments() -> list[str]:
    """How Chromium is started."""
    return [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    prepare()
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments())
        yield browser
        browser.close()


class Running:
    """A project and the server in front of it, which can be killed and started again on the same port."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.port = 0  # any free one; after a kill the same again
        self.server: ForkedServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.server = ForkedServer(self.project.folder, self.port)
        said = self.server.stdout.readline()
        self.port = self.port or int(said.partition("http://127.0.0.1:")[2].partition("/")[0])
        self.admin_link = said.split()[-1]

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()
        self.server = None


@pytest.fixture
def run_project(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def run(**settings: Any) -> Running:
        made.append(Running(make_project(tmp_path / f"project{len(made)}", **settings)))
        return made[-1]

    yield run
    for running in made:
        running.kill()
        running.project.close()


@pytest.fixture
def person(chromium: Any) -> Iterator[Callable[..., Person]]:
    """Somebody with a browser of their own (an own context: cookies, storage)."""
    made: list[Person] = []

    def come(**options: Any) -> Person:
        made.append(Person(chromium.new_context(**options)))
        return made[-1]

    yield come
    for who in made:
        who.context.close()
    for who in made:
        assert who.complaints == [], "the browser's console"
