"""Downloads from a real HTTP server in this process that breaks off, lies, or goes away."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from shortlist.data import download as module
from shortlist.data import fetch as fetch_module
from shortlist.data.download import DownloadError, download
from shortlist.data.fetch import fetch
from shortlist.data.source import RemoteFile
from shortlist.errors import InputError

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server:
    """Serves `content` at any path, noting the Range of each request.

    breaks: after how many bytes each coming answer breaks off; ranges: whether it understands Range requests.
    """

    def __init__(self, content=CONTENT, ranges=True, breaks=(), status=200):
        self.content, self.ranges, self.breaks, self.status = content, ranges, list(breaks), status
        self.asked = []

    @contextmanager
    def running(self):
        state = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked = self.headers.get("Range")
                state.asked.append(asked)
                start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and state.ranges else 0
                if state.status != 200:
                    return self.send_error(state.status)
                if start >= len(state.content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(state.content)}")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                body = state.content[start:]
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: state.breaks.pop(0)] if state.breaks else body)
                return None

            def log_message(self, *args):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/file.bin"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def remote(*urls, content=CONTENT):
    return RemoteFile("file.bin", urls, "sha256:" + hashlib.sha256(content).hexdigest())


@pytest.fixture(autouse=True)
def online(monkeypatch):
    monkeypatch.delenv("SHORTLIST_OFFLINE")
    monkeypatch.delenv("SHORTLIST_DATA", raising=False)
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "place" / "file.bin"


def only_the_file(target):
    return {path.name for path in target.parent.iterdir() if path.name != ".file.bin.lock"} == {"file.bin"}


def test_a_whole_file(target, capsys):
    server = Server()
    with server.running() as url:
        download(remote(url), target)
        assert target.read_bytes() == CONTENT
        assert only_the_file(target)
        download(remote(url), target)  # it is there: nothing is asked again
    assert server.asked == [None]
    out, err = capsys.readouterr()
    assert out == ""
    assert "downloading file.bin of 0.3 MB" in err


def test_a_broken_connection_continues_in_the_same_call(target):
    server = Server(breaks=[100_000, 50_000])
    with server.running() as url:
        download(remote(url), target)
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"]
    assert target.read_bytes() == CONTENT
    assert only_the_file(target)


def test_a_part_continues_in_the_next_call(target):
    server = Server(breaks=[100_000, 0, 0])
    with server.running() as url:
        with pytest.raises(DownloadError, match="broke off after 100,000 of 300,000 bytes, what arrived is kept"):
            download(remote(url), target)
        assert not target.exists()
        assert target.with_name("file.bin.part").read_bytes() == CONTENT[:100_000]
        download(remote(url), target)
    assert server.asked[-1] == "bytes=100000-"
    assert target.read_bytes() == CONTENT
    assert only_the_file(target)


def test_a_server_without_ranges_sends_all_of_it_again(target):
    server = Server(ranges=False)
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(CONTENT[:1000])
    with server.running() as url:
        download(remote(url), target)
    assert server.asked == ["bytes=1000-"]
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    "part",
    [b"x" * 1000, CONTENT + b"more", CONTENT, b"x" * len(CONTENT)],
    ids=["other", "longer", "whole", "same size"],
)
def test_a_part_of_something_else_is_thrown_away(target, part):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(part)
    with Server().running() as url:
        download(remote(url), target)
    assert target.read_bytes() == CONTENT
    assert only_the_file(target)


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(target):
    server = Server(content=b"something else")
    with server.running() as url, pytest.raises(DownloadError, match=r"127.0.0.1:.*wrong checksum"):
        download(remote(url), target)
    assert list(target.parent.glob("file*")) == []
    assert len(server.asked) == 1


def test_the_next_address_is_tried(target):
    with (
        Server(status=403).running() as refusing,
        Server(content=b"no").running() as wrong,
        Server().running() as right,
    ):
        download(remote(refusing, wrong, right), target)
    assert target.read_bytes() == CONTENT
    assert only_the_file(target)


def test_the_server_is_gone(cache):
    with Server().running() as url:
        pass
    with pytest.raises(InputError) as caught:
        fetch("things", [remote(url)])
    message = str(caught.value)
    assert message.startswith("things: file.bin is missing and cannot be downloaded (127.0.0.1:")
    assert "Connection refused" in message
    assert f"put it into {cache / 'things'}" in message
    assert url in message
    assert "\n" not in message


def test_an_unwilling_server_is_quoted(cache):
    with Server(status=404).running() as url, pytest.raises(InputError, match="404 Not Found"):
        fetch("things", [remote(url)])


def test_fetch_downloads_what_is_missing_and_checks_what_is_there(cache):
    (cache / "things").mkdir(parents=True)
    (cache / "things" / "here.bin").write_bytes(b"here")
    here = RemoteFile("here.bin", ("http://127.0.0.1:9/never",), "md5:" + hashlib.md5(b"here").hexdigest())
    with Server().running() as url:
        assert fetch("things", [here, remote(url)]) == [cache / "things" / "here.bin", cache / "things" / "file.bin"]
    (cache / "things" / "here.bin").write_bytes(b"hexe")
    with pytest.raises(InputError, match=r"here.bin is corrupt, truncated or not the published file: md5"):
        fetch("things", [here])


def test_offline_by_wish(cache, monkeypatch):
    monkeypatch.setenv("SHORTLIST_OFFLINE", "1")
    server = Server()
    with server.running() as url, pytest.raises(InputError, match="not downloaded, as SHORTLIST_OFFLINE is set"):
        fetch("things", [remote(url)])
    assert server.asked == []


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(fetch_module, "cache_folder", lambda: tmp_path / "file")
    with Server().running() as url, pytest.raises(InputError, match=r"cannot be written to .*Not a directory"):
        fetch("things", [remote(url)])


def test_two_at_once_ask_once(target):
    server = Server()
    with server.running() as url:
        threads = [threading.Thread(target=download, args=(remote(url), target)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.asked == [None]
    assert target.read_bytes() == CONTENT


def test_the_bar_of_a_terminal(target, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Server().running() as url:
        download(remote(url), target)
    err = capsys.readouterr().err
    assert err.endswith(f"\rdownloading file.bin [{'#' * 30}] 0.3 of 0.3 MB\n")
