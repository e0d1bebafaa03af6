"""Real parts only: a private PostgreSQL cluster, projects in temporary folders, the app behind a test client."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source

_names = itertools.count()


def _as_ordinary_user() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a private cluster, reached by a Unix socket only."""
    for program in ("initdb", "pg_ctl"):
        if shutil.which(program) is None:
            pytest.skip(f"PostgreSQL's {program} is not on the PATH")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    user = pwd.getpwuid(os.geteuid()).pw_name
    if os.geteuid() == 0:
        user = "nobody"
        shutil.chown(folder, user)
    data, prefix = folder / "data", _as_ordinary_user()
    run = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run([*prefix, "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--no-sync"], **run)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c max_connections=200"
    subprocess.run([*prefix, "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"], **run)
    try:
        yield f"postgresql://{user}@/postgres?host={folder}"
    finally:
        subprocess.run([*prefix, "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **run)
        shutil.rmtree(folder)


def new_database(server: str) -> str:
    """The URL of a fresh, empty database."""
    import psycopg

    name = f"shortlist_{next(_names)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> str | None:
    """None for SQLite in the project's folder, or the URL of a PostgreSQL database."""
    return None if request.param == "sqlite" else new_database(request.getfixturevalue("postgres"))


class Maker:
    """Makes projects and closes them afterwards."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Project] = []

    def __call__(
        self, database: str | None = None, *, items: int = 5, classes: int = 6, gold: int = 0, **settings: Any
    ) -> Project:
        folder = self.folder / f"project{len(self.made)}"
        project = Project.create(folder, Settings(**{"title": "t", "size": 3, "database": database, **settings}))
        self.made.append(project)
        add_classes(project, [f"class {k}" for k in range(classes)])
        add_items(project, [Source(f"item {i}", f"item {i}", text=f"text {i}") for i in range(items)])
        known = [Source(f"gold {i}", f"gold {i}", text="?", gold=f"class {i % classes}") for i in range(gold)]
        add_items(project, known)
        return project


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[Callable[..., Project]]:
    maker = Maker(tmp_path)
    yield maker
    for project in maker.made:
        project.close()


def people(project: Project, *names: str) -> list[int]:
    """Invite annotators; returns their ids."""
    return [People(project).invite(name)[0] for name in names]


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A running app in this process, with signed-in clients."""

    def __init__(self, project: Project, **options: Any) -> None:
        from shortlist.annotate.web.app import create_app

        self.project = project
        self.app = create_app(project, **options)
        self.people = People(project)

    def client(self, **options: Any) -> Any:
        from starlette.testclient import TestClient

        options = {"base_url": "http://127.0.0.1:8080", "headers": {"X-Shortlist": "1"}, **options}
        return TestClient(self.app, **options)

    def signed_in(self, secret: str) -> Any:
        client = self.client()
        assert client.post("/api/v1/session", json={"secret": secret}).status_code == 200
        return client

    def admin(self) -> Any:
        return self.signed_in(self.people.admin_link())

    def annotator(self, name: str) -> Any:
        return self.signed_in(self.people.invite(name)[1])


@pytest.fixture
def make_site(make_project: Callable[..., Project]) -> Callable[..., Site]:
    def make(database: str | None = None, *, options: dict[str, Any] | None = None, **settings: Any) -> Site:
        return Site(make_project(database, **settings), **(options or {}))

    return make
