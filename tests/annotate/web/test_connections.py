"""What strangers do to a real server by its sockets: half-sent bodies, slow headers, floods, silence at the end."""

import contextlib
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shortlist.annotate.project.people import People
from shortlist.annotate.web import connections, guard
from shortlist.annotate.web.app import create_app
from shortlist.annotate.web.limits import Limits
from shortlist.annotate.web.serve import Address, listen, make_server

from ..running import Caller, Server, free_port

QUICK = 0.4


class Running:
    """The app behind its real server, in a thread."""

    def __init__(self, project: Any, **options: Any) -> None:
        proxy = options.pop("proxy", None)
        self.app = create_app(project, limits=Limits(**{"body_seconds": QUICK, **options}))
        listener, self.address = listen(Address(port=0, proxy=proxy))
        self.server = make_server(self.app, self.address)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]})
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.address.port), timeout=10)

    def stop(self) -> float:
        begun = time.monotonic()
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()
        return time.monotonic() - begun


@pytest.fixture
def running(make_project: Callable[..., Any]) -> Iterator[Callable[..., Running]]:
    with contextlib.ExitStack() as stack:

        def run(**options: Any) -> Running:
            made = Running(make_project(), **options)
            stack.callback(lambda: made.thread.is_alive() and made.stop())
            return made

        yield run


def head(path: str, length: int, *lines: str) -> bytes:
    given = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "X-Shortlist: 1", f"Content-Length: {length}", *lines]
    return "\r\n".join([*given, "", ""]).encode()


def hear(sock: socket.socket) -> tuple[int, dict[str, Any]]:
    """The status and body of a reply, up to the end of the connection."""
    content = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(1 << 16):
            content += piece
    top, _, body = content.partition(b"\r\n\r\n")
    return (int(top.split()[1]), json.loads(body)) if top else (0, {})


def cut_after(sock: socket.socket) -> float:
    begun = time.monotonic()
    hear(sock)
    return time.monotonic() - begun


def test_a_large_body_without_credentials_is_refused_by_its_headers(running, monkeypatch):
    """Nothing of it is read, let alone parsed."""
    monkeypatch.setattr(guard, "LINGER_SECONDS", QUICK)
    run = running()
    for path in ("/api/v1/items", "/api/v1/import/label-studio", "/api/v1/items-of-mine", "/nowhere"):
        with run.connect() as sock:
            sock.sendall(head(path, 60_000_000))
            status, body = hear(sock)
        assert (status, body["code"]) == (401, "signed_out")


def test_somebody_who_sends_on_still_hears_the_refusal(running):
    """Closing at once would reset the connection before the reply is read."""
    data = head("/api/v1/items", 8_000_000) + b"[" * 8_000_000
    for line, status in ((b"X-Shortlist: 1", 401), (b"Sec-Fetch-Site: cross-site", 403)):
        with running().connect() as sock:
            sock.sendall(data.replace(b"X-Shortlist: 1", line, 1))
            assert hear(sock)[0] == status


def test_an_unstated_length_does_not_help(running):
    pieces = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    top = b"POST /api/v1/items HTTP/1.1\r\nHost: a\r\nX-Shortlist: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
    with running().connect() as sock:
        sock.sendall(top + 2 * pieces)
        assert hear(sock)[0] == 401


def test_only_admins_send_uploads_and_only_to_their_addresses(running):
    run = running(body_bytes=100_000, upload_bytes=200_000)
    people = People(run.app.state.services.project)
    admin, ada = people.make_token("program", None), people.make_token("robot", people.invite("ada")[0])
    for token, path, status in (
        (admin, "/items", 422),
        (admin, "/items/", 413),
        (admin, "/items-of-mine", 413),
        (admin, "/classes", 413),
        (ada, "/items", 413),
        ("nobody's", "/items", 401),
    ):
        with run.connect() as sock:
            lines = (f"Authorization: Bearer {token}", "Content-Type: application/json", "Connection: close")
            sock.sendall(head(f"/api/v1{path}", 150_000, *lines) + b'{"items": []}' + b" " * 149_987)
            assert hear(sock)[0] == status, (path, status)


def test_half_sent_bodies_are_cut(running):
    run = running()
    held = [run.connect() for _ in range(20)]
    for sock in held:
        sock.sendall(head("/api/v1/session", 500) + b'{"secret":')
    begun = time.monotonic()
    for sock in held:
        status, body = hear(sock)
        assert (status, body["code"]) == (408, "too_slow")
        sock.close()
    assert time.monotonic() - begun < 10 * QUICK


def test_a_slow_body_that_goes_on_coming_is_read(running):
    """What came buys time: an upload over a slow line is not a stalled one."""
    run = running(body_bytes_per_second=10)
    with run.connect() as sock:
        body = json.dumps({"secret": "x" * 40}).encode()
        sock.sendall(head("/api/v1/session", len(body), "Content-Type: application/json", "Connection: close"))
        for start in range(0, len(body), 10):
            sock.sendall(body[start : start + 10])
            time.sleep(QUICK / 3)
        assert hear(sock)[1]["code"] == "bad_link"


def test_slow_headers_are_cut(running, monkeypatch):
    """Also the second request of a connection, and one that sends a byte now and then."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", QUICK)
    run = running()
    silent, begun, again = (run.connect() for _ in range(3))
    begun.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-")
    again.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: a\r\n\r\n")
    reply = b""
    while not reply.endswith(b"</svg>\n"):
        reply += again.recv(1 << 16)
    again.sendall(b"GET / HT")
    for sock in (silent, begun, again):
        assert cut_after(sock) < 8 * QUICK + 3
        sock.close()


def test_idle_connections_are_kept_for_the_next_answer(running, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.01)
    run = running()
    caller = Caller(run.address.port, "")
    caller.connection.request("GET", "/static/icon.svg")
    caller.connection.getresponse().read()
    sock = caller.connection.sock
    time.sleep(1.3)  # the server has looked at its connections meanwhile
    caller.connection.request("GET", "/static/icon.svg")
    assert caller.connection.getresponse().status == 200
    assert caller.connection.sock is sock
    caller.close()


def test_the_number_of_connections_is_bounded(running, monkeypatch):
    """A flood of idle ones goes first; whoever comes is answered."""
    run = running()
    monkeypatch.setattr(connections.Connection, "most", 5)
    flood = [run.connect() for _ in range(30)]
    with run.connect() as sock:
        sock.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert sock.recv(20).startswith(b"HTTP/1.1 200")
    assert len(run.server.server_state.connections) <= 6
    for sock in flood:
        sock.close()


def test_it_stops_whatever_clients_do(running):
    """Half a header, half a body, and somebody who does not read."""
    run = running(body_seconds=60)
    socks = [run.connect() for _ in range(3)]
    socks[0].sendall(b"GET / HT")
    socks[1].sendall(head("/api/v1/session", 500) + b"{")
    socks[2].sendall(b"GET /static/app.css HTTP/1.1\r\nHost: a\r\n\r\n" * 2000)
    assert run.stop() < 8
    for sock in socks:
        sock.close()


def test_sigterm_ends_the_process_though_a_body_is_half_sent(make_project):
    project = make_project()
    server = Server(project.folder, free_port())
    try:
        server.wait()
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(b"GET /static/icon.svg HTTP/1.1\r\nHost: a\r\n\r\n")
            sock.recv(1)
            sock.sendall(head("/api/v1/session", 500) + b"{")
            begun = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(10)
            assert time.monotonic() - begun < 10
    finally:
        server.kill()
    assert server.process.returncode == 128 + signal.SIGTERM, "in good order: what it opened was closed"


# -- guessing links


def sign_in(run: Running, secret: str, *lines: str) -> int:
    body = json.dumps({"secret": secret}).encode()
    with run.connect() as sock:
        sock.sendall(
            head("/api/v1/session", len(body), "Content-Type: application/json", "Connection: close", *lines) + body
        )
        return hear(sock)[0]


def test_a_guesser_behind_a_proxy_locks_nobody_out(running):
    run = running(failed_sign_ins_per_minute=3)
    people = People(run.app.state.services.project)
    assert [sign_in(run, f"guess {i}") for i in range(5)] == [401, 401, 401, 429, 429]
    assert sign_in(run, people.invite("ada")[1]) == 200, "a valid link does not wait for those who guess"
    assert sign_in(run, people.admin_link()) == 200
    old = people.invite("ben")[1]
    people.renew_invite(2)
    assert sign_in(run, old) == 429, "a link that has ended is a failure like any other"


def test_failures_count_by_the_address_that_a_trusted_proxy_names(running):
    for proxy, last in (("127.0.0.1", 401), (None, 429)):
        run = running(failed_sign_ins_per_minute=2, proxy=proxy)
        assert [sign_in(run, "guess", "X-Forwarded-For: 10.0.0.1") for _ in range(3)] == [401, 401, 429]
        assert sign_in(run, "guess", "X-Forwarded-For: 10.0.0.2") == last, "nobody else's header is believed"
