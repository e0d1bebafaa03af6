"""What annotate_crash.py and annotate_load.py share: projects, server processes, a private PostgreSQL, provenance.

Everything is on this machine: the server on 127.0.0.1, PostgreSQL behind a Unix socket, with its usual durability.
"""

import http.client
import json
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.people import People
from shortlist.annotate.project.project import Project, Settings
from shortlist.annotate.project.sources import Source
from shortlist.internal.provenance import provenance

CLASSES = 20
ROOT = Path(__file__).parents[1]
# compiled once, as where it is installed
COMPILED = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"shortlist-pycache-{os.getuid()}")}


def make_project(folder: Path, database: str | None, items: int, overlap: int = 1) -> Project:
    """Texts, 20 classes, shortlists of 5."""
    project = Project.create(folder, Settings("benchmark", 5, overlap, database=database))
    add_classes(project, [f"class {k}" for k in range(CLASSES)])
    add_items(project, [Source(f"item {i}", f"item {i}", text=f"The text of item {i}.") for i in range(items)])
    return project


def make_tokens(project: Project, count: int) -> list[str]:
    """One annotator each."""
    auth = People(project)
    return [auth.make_token("client", auth.invite(f"client {i}")[0]) for i in range(count)]


MAKE = """
import json, sys
from pathlib import Path
from annotate_servers import make_project, make_tokens
folder, database, items, overlap, people = sys.argv[1:]
project = make_project(Path(folder), database or None, int(items), int(overlap))
print(json.dumps(make_tokens(project, int(people))))
project.close()
"""
# what an installation of an older version did not have
BARE = "import sys; sys.modules['uvloop'] = sys.modules['httptools'] = None; from shortlist.cli import main; main()"


class Version:
    """A checkout whose code is run; the environment's packages are the same for all."""

    def __init__(self, root: Path = ROOT, bare: bool = False) -> None:
        paths = [str(root / "src"), str(root / "benchmarks")]
        self.environment = {**os.environ, **COMPILED, "PYTHONPATH": os.pathsep.join(paths)}
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.command = [sys.executable, *(["-c", BARE] if bare else ["-m", "shortlist"])]

    def make(self, folder: Path, database: str | None, items: int, overlap: int, people: int) -> list[str]:
        """A project made by this version; returns the tokens of its annotators."""
        words = [sys.executable, "-c", MAKE, str(folder), database or "", str(items), str(overlap), str(people)]
        tokens: list[str] = json.loads(subprocess.check_output(words, env=self.environment))
        return tokens


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of another commit."""
    with tempfile.TemporaryDirectory(prefix="shortlist-") as folder:
        packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=packed, check=True)
        yield Path(folder)


class Server:
    """`shortlist annotate serve` in a process of its own."""

    def __init__(
        self, folder: Path, port: int, quiet: bool = False, version: Version | None = None, workers: int = 1
    ) -> None:
        self.port, self.begun = port, time.monotonic()
        version = version or Version()
        command = [*version.command, "annotate", "serve", str(folder), "--port", str(port)]
        command += ["--workers", str(workers)] if workers > 1 else []
        errors = subprocess.DEVNULL if quiet else None
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=version.environment)

    def wait(self, seconds: float = 60) -> None:
        """Until it listens."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError("the server ended by itself") from None
                time.sleep(0.01)
        raise RuntimeError("the server did not start")

    def megabytes(self) -> float:
        """Resident memory now, of the workers as well."""
        return sum(_megabytes(pid) for pid in family(self.process.pid))

    def cpu_seconds(self) -> float:
        """Processor time so far, of the workers as well."""
        return sum(cpu_seconds(pid) for pid in family(self.process.pid))

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


def family(pid: int) -> list[int]:
    """A process and all that it started."""
    children = _read(pid, f"task/{pid}/children").split()
    return [pid, *(one for child in children for one in family(int(child)))]


def _megabytes(pid: int) -> float:
    lines = _read(pid, "status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0) / 1024


def _read(pid: int, name: str) -> str:
    """Empty where the process has just ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cpu_seconds(pid: int) -> float:
    """Processor time of one process so far, and of its children that have ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


class Caller:
    """One client with a token on one kept connection."""

    def __init__(self, port: int, token: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.connection.request("POST", f"/api/v1{path}", json.dumps(body), self.headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self.connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A private cluster; PostgreSQL refuses to run as root, so root runs it as nobody."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        root = os.geteuid() == 0
        self.user = "nobody" if root else pwd.getpwuid(os.geteuid()).pw_name
        self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if root else []
        if root:
            shutil.chown(folder, "nobody")
        self._run("initdb", "-D", folder / "data", "-A", "trust", "-E", "UTF8")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=100"
        self._run("pg_ctl", "-D", self.folder / "data", "-o", options, "-l", self.folder / "log", "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash: what was not on the disk is lost, and the next start recovers."""
        self._run("pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """kill -9 of all its processes. The postmaster is stopped first, so that it starts no more."""
        postmaster = self.postmaster()
        os.kill(postmaster, signal.SIGSTOP)
        for pid in family(postmaster):
            os.kill(pid, signal.SIGKILL)

    def forget(self) -> None:
        """Remove what a killed postmaster left: its number counts as running until waited for."""
        for left in (self.folder / "data" / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            left.unlink(missing_ok=True)

    def cpu_seconds(self) -> float:
        """Processor time of the whole cluster so far."""
        return sum(cpu_seconds(pid) for pid in family(self.postmaster()))

    def postmaster(self) -> int:
        """The process that started all others of the cluster."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def new_database(self) -> str:
        import psycopg

        self.count += 1
        url = f"postgresql://{self.user}@/{{}}?host={self.folder}"
        with psycopg.connect(url.format("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE bench_{self.count}".encode())
        return url.format(f"bench_{self.count}")

    def _run(self, *command: object) -> None:
        words = [*self.prefix, *map(str, command)]
        subprocess.run(words, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)


@contextmanager
def postgres() -> Iterator[Postgres | None]:
    """None where PostgreSQL is not installed."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        print("PostgreSQL's initdb and pg_ctl are not on the PATH: SQLite only", file=sys.stderr)
        yield None
        return
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # a socket's path must be short
    try:
        cluster = Postgres(folder)
        try:
            yield cluster
        finally:
            cluster.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def about() -> dict[str, Any]:
    """Hardware, versions, commit, and how busy the machine was."""
    found = provenance("cpu")
    names = ("fastapi", "uvicorn", "sqlalchemy", "psycopg", "pydantic")
    versions = {"shortlist": found["versions"]["shortlist"], "python": platform.python_version()}
    versions |= {name: version(name) for name in names}
    import sqlite3

    versions["sqlite"] = sqlite3.sqlite_version
    if shutil.which("postgres"):
        versions["postgresql"] = subprocess.check_output(["postgres", "--version"], text=True).split()[2]
    load = [round(value, 2) for value in os.getloadavg()]
    return {**found, "versions": versions, "load_average_at_start": load}
