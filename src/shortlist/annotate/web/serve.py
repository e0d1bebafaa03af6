"""Running the server: where it may listen, and uvicorn's settings."""

import gc
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from shortlist.annotate.live.items import check_live
from shortlist.annotate.live.plan import LivePlan, live_plan
from shortlist.annotate.live.supervisor import supervising
from shortlist.annotate.project.alone import alone, announced, announcing
from shortlist.annotate.project.backup import Schedule, backing_up, read_period
from shortlist.annotate.project.people import People, join_link
from shortlist.annotate.project.project import Project
from shortlist.annotate.project.review.class_changes import ask_about_retired
from shortlist.annotate.web.app import create_app
from shortlist.annotate.web.board import Board
from shortlist.annotate.web.damage import DamageSearch
from shortlist.annotate.web.limits import is_address
from shortlist.annotate.web.logs import start_logging
from shortlist.annotate.web.tuning import Live, Tuning, watching
from shortlist.annotate.web.workers import Workers, told_of
from shortlist.errors import InputError

if TYPE_CHECKING:
    from shortlist.annotate.web.connections import Server

SERVING, ADDRESS = "serve.lock", "serve.address"


@dataclass(frozen=True)
class Address:
    """Where to listen; `public_url` is how people reach it if that differs (a proxy in front).

    `proxy` is the address from which a proxy asks, whose X-Forwarded-For is believed.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    certificate: Path | None = None
    key: Path | None = None
    allow_plain_http: bool = False
    public_url: str | None = None
    proxy: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both a certificate and a key")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise InputError(f"{path}: no such file")
        if self.proxy is not None and not is_address(self.proxy):
            raise InputError(f"the proxy {self.proxy!r}: expected the IP address from which it asks, such as 127.0.0.1")
        if not (self.tls or self.allow_plain_http or is_local(self.host)):
            raise InputError(
                f"{self.host} is a public address: give --certificate and --key, or say --allow-plain-http "
                "(behind a proxy that does TLS, or on a network you trust)"
            )

    @property
    def tls(self) -> bool:
        """Whether the server itself speaks TLS."""
        return self.certificate is not None

    @property
    def secure(self) -> bool:
        """Whether people reach it by TLS, so that cookies may require it."""
        return self.tls or (self.public_url or "").startswith("https://")

    @property
    def url(self) -> str:
        """What people open."""
        host = _reached_at(self.host)
        host = f"[{host}]" if ":" in host else host
        return (self.public_url or f"{'https' if self.tls else 'http'}://{host}:{self.port}").rstrip("/")


def _reached_at(host: str) -> str:
    """Where others reach a server that listens on `host`: all addresses of this machine are none that can be opened."""
    if not is_address(host) or not (bound := ipaddress.ip_address(host)).is_unspecified:
        return host
    family, elsewhere = (socket.AF_INET, "192.0.2.1") if bound.version == 4 else (socket.AF_INET6, "2001:db8::1")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as way_out:
            way_out.connect((elsewhere, 9))  # chooses the network, and sends nothing
            return str(way_out.getsockname()[0])
    except OSError:  # no network: a name that may be known there
        return socket.gethostname()


def is_local(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def opens_here_only(url: str) -> bool:
    """Whether only this machine can open the address."""
    return is_local(urlsplit(url).hostname or "")


def admin_url(project: Project, address: Address) -> str:
    """A fresh one-time link for an owner."""
    return join_link(address.url, People(project).admin_link())


def listen(address: Address) -> tuple[socket.socket, Address]:
    """Take the port before anything is promised; port 0 takes any free one, and the address returned says which."""
    try:
        family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((address.host, address.port), family=family, backlog=2048)
        # asyncio sets this only on sockets that say they are TCP, which create_server's do not; without it every reply
        # waits 40 ms for the client to acknowledge its first half
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise InputError(f"cannot listen on {address.host} port {address.port}: {error.strerror}") from error
    return listener, replace(address, port=listener.getsockname()[1])


def serve_project(
    project: Project,
    address: Address,
    say: Callable[[str], None],
    *,
    listener: socket.socket | None = None,
    policy: str | None = None,
    epsilon: float | None = None,
    test: str | None = None,
    features: str | None = None,
    workers: int = 1,
    backup_every: str | None = None,
    keep: int = 24,
) -> None:
    """Serve until told to stop; `say` is given the owner's one-time link.

    Args:
        project: what to serve.
        address: where.
        say: is told how to get in.
        listener: the socket, if the port is taken already.
        policy: who chooses the lists, as for `live_plan`.
        epsilon: the share of uniform lists, as for `live_plan`.
        test: labelled data to score the model on, as for `live_plan`.
        features: what the model sees of the items, as for `live_plan`.
        workers: processes that answer; more than one on PostgreSQL only.
        backup_every: a time such as 30m, 1h or 1d between backups, kept in the project's folder.
        keep: how many of these backups.
    """
    live = live_plan(project.settings, policy, epsilon, test, features=features)
    check_live(project, live)
    if workers > 1 and project.store.is_sqlite:
        raise InputError("--workers: SQLite has one writer, so more than one process needs PostgreSQL")
    backups = None if backup_every is None else Schedule(read_period(backup_every), keep)
    damage = DamageSearch(project.store)
    with _sole_server(project):
        damage.wait()
        ask_about_retired(project)
        if listener is None:
            listener, address = listen(address)
        with announcing_address(project, address):
            _say_how_to_get_in(project, address, say)
            if live is not None:
                say(
                    "The model is being prepared: until its first training, lists come from class names or from chance."
                )
            try:
                serve(project, address, listener, live, workers, backups)
            finally:
                damage.refuse()


def _say_how_to_get_in(project: Project, address: Address, say: Callable[[str], None]) -> None:
    """A link at the first start only: it does not belong in a log. Later ones are made on demand."""
    if People(project).has_owner():
        link = f"for an owner's link: shortlist annotate invite {project.folder} --url {address.url}"
        say(f"Serving {address.url} ({link})")
    else:
        say(f"Owner (works once): {admin_url(project, address)}")


def _sole_server(project: Project) -> AbstractContextManager[None]:
    """SQLite has one writer at a time, and this server's memory must be right: a second one is refused."""
    if not project.store.is_sqlite:
        return nullcontext()
    return alone(project.folder / SERVING, f"{project.folder} is being served already")


def serve(
    project: Project,
    address: Address,
    listener: socket.socket,
    live: LivePlan | None = None,
    workers: int = 1,
    backups: Schedule | None = None,
) -> None:
    """Serve until told to stop; with `live`, a model that is trained alongside chooses the shortlists."""
    if threading.current_thread() is threading.main_thread():
        # uvicorn stops in good order and then raises the signal once more, which must not end us before our own end
        signal.signal(signal.SIGTERM, _end)
    start_logging()
    gc.freeze()  # what is here by now stays: modules, routes, statements
    gc.enable()
    with supervising(project, live) as supervisor, backing_up(project, backups):
        supervisor.start()
        if workers > 1:
            with watching(Tuning(project, supervisor).look):
                Workers(project, listener, workers, told_of(address, supervisor)).run()
        else:
            run_app(project, address, listener, supervisor)


def announcing_address(project: Project, address: Address) -> AbstractContextManager[None]:
    """While it is served, `served_at` says where."""
    return announcing(project.folder / ADDRESS, address.url)


def served_at(project: Project) -> list[str]:
    """Where people open the project while it is served from this machine: on PostgreSQL maybe at several addresses."""
    return announced(project.folder / ADDRESS)


def run_app(
    project: Project,
    address: Address,
    listener: socket.socket,
    live: Live,
    board: Board | None = None,
) -> None:
    """Answer on `listener` in this process until told to stop."""
    start_logging()
    app = create_app(project, tls=address.secure, public_url=address.public_url, board=board, live=live)
    with watching(app.state.services.tuning.look):
        make_server(app, address).run(sockets=[listener])


def _end(signum: int, frame: object) -> None:
    raise SystemExit(128 + signum)


def make_server(app: ASGIApp, address: Address) -> "Server":
    """The server of `app`, to be run on a listening socket."""
    import uvicorn

    from shortlist.annotate.web import connections

    connections.allow_files()
    config = uvicorn.Config(
        app,
        http=connections.Connection,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.key,
        log_config=None,
        log_level="warning",
        server_header=False,
        # the limits must not count people by a header that anybody can send
        proxy_headers=address.proxy is not None,
        forwarded_allow_ips=address.proxy,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=connections.STOP_SECONDS,
    )
    return connections.Server(config)
