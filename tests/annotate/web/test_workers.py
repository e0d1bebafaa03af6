"""Several processes on one port: they answer together, a dead one is replaced, all stop together."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from shortlist.annotate.db.schema import Question
from shortlist.annotate.project.people import People
from shortlist.annotate.web.serve import Address, serve_project
from shortlist.errors import InputError

from ..conftest import new_database
from ..running import Caller, Server, free_port


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(condition, seconds=180.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def ask(port: int, method: str, path: str, token: str = "", body=None, **headers) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"X-Shortlist": "1", "Content-Type": "application/json", **headers}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def test_one_process_on_sqlite(make_project):
    with pytest.raises(InputError, match="PostgreSQL"):
        serve_project(make_project(), Address(port=0), print, workers=2)


@pytest.fixture
def served(make_project, postgres):
    project = make_project(new_database(postgres), items=200)
    server = Server(project.folder, free_port(), "--workers", "3")
    try:
        server.wait()
        until(lambda: len(children(server.process.pid)) == 3)
        yield project, server
    finally:
        server.kill()


@pytest.mark.postgres
def test_workers_share_what_they_must(served):
    project, server = served
    auth = People(project)
    ada, _ = auth.invite("ada")
    token, owner = auth.make_token("program", ada), auth.make_token("metrics", None)
    # every connection is a new one, so all processes are asked; an answer is never asked for again
    seen = set()
    for _ in range(40):
        status, reply = ask(server.port, "POST", "/api/v1/next", token, {"hold": 1})
        assert status == 200
        question = json.loads(reply)["questions"][0]
        assert question["id"] not in seen
        seen.add(question["id"])
        body = {"question": question["id"], "attempt": 0, "answer": None, "seconds": 1.0}
        assert ask(server.port, "POST", "/api/v1/answers", token, body)[0] == 200
    metrics = ask(server.port, "GET", "/metrics", owner)[1].decode()
    assert 'shortlist_requests_total{route="answers",status="2xx"} 40\n' in metrics, "of all processes"
    # failed sign-ins are counted together
    found = [ask(server.port, "POST", "/api/v1/session", body={"secret": "guess"})[0] for _ in range(16)]
    assert found.count(401) <= 11
    assert found[-1] == 429
    # a removed person is out everywhere at once
    for _ in range(12):
        assert ask(server.port, "POST", "/api/v1/next", token, {"hold": 0})[0] == 200
    assert ask(server.port, "DELETE", f"/api/v1/annotators/{ada}", owner)[0] == 204
    assert [ask(server.port, "POST", "/api/v1/next", token, {"hold": 0})[0] for _ in range(12)] == [401] * 12


@pytest.mark.postgres
def test_a_worker_that_dies_is_replaced_and_all_stop_together(served):
    project, server = served
    token = People(project).make_token("program", People(project).invite("ada")[0])
    workers = children(server.process.pid)
    subprocess.run(["kill", "-9", str(workers[0])], check=True)
    until(lambda: len(set(children(server.process.pid)) - set(workers)) == 1)
    assert ask(server.port, "POST", "/api/v1/next", token, {"hold": 1})[0] == 200
    caller = Caller(server.port, token)
    assert caller.post("/next", {"hold": 1})[0] == 200
    now = children(server.process.pid)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(10) in (0, 143)
    assert not any(Path(f"/proc/{pid}").exists() for pid in now)


@pytest.mark.postgres
def test_workers_stop_when_their_parent_is_killed(served):
    _, server = served
    workers = children(server.process.pid)
    server.process.kill()
    server.process.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


@pytest.mark.postgres
def test_all_workers_choose_by_the_model_and_stop_though_bodies_are_half_sent(make_project, postgres):
    project = make_project(new_database(postgres), items=60, classes=4)
    token = People(project).make_token("program", People(project).invite("ada")[0])
    server = Server(project.folder, free_port(), "--workers", "2", "--policy", "adaptive")
    try:
        server.wait()
        until(lambda: len(workers_of(server)) == 2)
        # what was published is read where it is stored, by every worker
        until(lambda: all(str(project.live) in Path(f"/proc/{pid}/maps").read_text() for pid in workers_of(server)))
        for _ in range(8):
            assert answer_one(server.port, token)
        with project.store.read() as connection:
            lists = connection.execute(select(Question.policy, Question.policy_version)).all()
        assert {policy for policy, _ in lists} == {"adaptive"}, "from both, for each connection is a new one"
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for sock in held:
            sock.sendall(b"POST /api/v1/session HTTP/1.1\r\nHost: a\r\nX-Shortlist: 1\r\nContent-Length: 500\r\n\r\n{")
        assert answer_one(server.port, token)
        now = children(server.process.pid)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(10) in (0, 143)
        assert time.monotonic() - begun < 10
        assert not any(Path(f"/proc/{pid}").exists() for pid in now)
        for sock in held:
            sock.close()
    finally:
        server.kill()


def workers_of(server: Server) -> list[int]:
    """Without the trainer."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in children(server.process.pid)}
    return [pid for pid, command in commands.items() if "shortlist.annotate.web.worker" in command]


def answer_one(port: int, token: str) -> bool:
    """Ask and answer, on connections of their own."""
    question = json.loads(ask(port, "POST", "/api/v1/next", token, {"hold": 1})[1])["questions"][0]
    body = {"question": question["id"], "attempt": 0, "answer": question["shortlist"][0]["class"], "seconds": 1.0}
    return ask(port, "POST", "/api/v1/answers", token, body)[0] == 200


CADDY = """
{{
  admin off
  auto_https off
  storage file_system {folder}
}}
http://127.0.0.1:{port} {{
  reverse_proxy 127.0.0.1:{upstream}
}}
"""
NGINX = """
daemon off; pid {folder}/nginx.pid; error_log stderr;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 64m;
    location / {{
      proxy_pass http://127.0.0.1:{upstream};
      proxy_http_version 1.1;
      proxy_set_header Host $host:$server_port;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_request_buffering off;
    }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("program", "config", "command"),
    [("nginx", NGINX, ["nginx", "-c"]), ("caddy", CADDY, ["caddy", "run", "--adapter", "caddyfile", "--config"])],
)
def test_behind_a_proxy(make_project, tmp_path, program, config, command):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    project, port, upstream = make_project(items=3), free_port(), free_port()
    secret = People(project).invite("ada")[1]
    url = f"http://127.0.0.1:{port}"
    server = Server(project.folder, upstream, "--public-url", url, "--proxy", "127.0.0.1")
    file = tmp_path / program
    file.write_text(config.format(folder=tmp_path, port=port, upstream=upstream))
    home = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    proxy = subprocess.Popen([*command, str(file)], stderr=subprocess.DEVNULL, env=home)
    try:
        server.wait()
        until(lambda: _answers(port))
        origin = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        assert ask(port, "POST", "/api/v1/session", body={"secret": secret}, **origin)[0] == 200
        assert ask(port, "POST", "/api/v1/session", body={"secret": secret}, Origin="http://elsewhere.test")[0] == 403
        owner = People(project).make_token("owner", None)
        link = json.loads(ask(port, "POST", "/api/v1/annotators", owner, {"name": "ben"})[1])["link"]
        assert link.startswith(f"{url}/join#")
        # whoever guesses is held back by their own address, which the proxy names, and nobody else is
        for _ in range(11):
            ask(port, "POST", "/api/v1/session", body={"secret": "guess"})
        assert ask(port, "POST", "/api/v1/session", body={"secret": "guess"})[0] == 429
        assert ask(port, "POST", "/api/v1/session", body={"secret": secret})[0] == 200
    finally:
        proxy.terminate()
        proxy.wait(10)
        server.kill()


def _answers(port: int) -> bool:
    try:
        return ask(port, "GET", "/healthz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False
