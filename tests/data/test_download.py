"""Downloads from a real HTTP server in this process that breaks off, lies, or goes away."""

import hashlib
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from shortlist.data import fetch as fetch_module
from shortlist.data.download import DownloadError, download
from shortlist.data.fetch import fetch
from shortlist.data.source import RemoteFile
from shortlist.errors import InputError

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server:
    """Serves `content` at any path and counts the requests.

    breaks: after how many bytes each coming answer breaks off.
    """

    def __init__(self, content=CONTENT, breaks=(), status=200):
        self.content, self.breaks, self.status = content, list(breaks), status
        self.requests = 0

    @contextmanager
    def running(self):
        state = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                state.requests += 1
                if state.status != 200:
                    return self.send_error(state.status)
                self.send_response(200)
                self.send_header("Content-Length", str(len(state.content)))
                self.end_headers()
                self.wfile.write(state.content[: state.breaks.pop(0)] if state.breaks else state.content)
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
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # pooch waits before it tries again


@pytest.fixture
def target(tmp_path):
    return tmp_path / "place" / "file.bin"


def test_a_whole_file(target, capsys):
    server = Server()
    with server.running() as url:
        download(remote(url), target)
        assert target.read_bytes() == CONTENT
        assert list(target.parent.iterdir()) == [target]
        download(remote(url), target)  # it is there: nothing is asked again
    assert server.requests == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("downloading file.bin\n")


def test_a_broken_connection_is_tried_again(target):
    server = Server(breaks=[100_000, 50_000])
    with server.running() as url:
        download(remote(url), target)
    assert server.requests == 3
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_of_a_connection_that_keeps_breaking_nothing_is_kept(target):
    with Server(breaks=[100_000] * 9).running() as url, pytest.raises(DownloadError, match=r"127.0.0.1:.*Incomplete"):
        download(remote(url), target)
    assert list(target.parent.iterdir()) == []


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(target):
    with (
        Server(content=b"something else").running() as url,
        pytest.raises(DownloadError, match=r"127.0.0.1:.*wrong checksum"),
    ):
        download(remote(url), target)
    assert list(target.parent.iterdir()) == []


def test_the_next_address_is_tried(target):
    with (
        Server(status=403).running() as refusing,
        Server(content=b"no").running() as wrong,
        Server().running() as right,
    ):
        download(remote(refusing, wrong, right), target)
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


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
    assert server.requests == 0


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(fetch_module, "cache_folder", lambda: tmp_path / "file")
    with Server().running() as url, pytest.raises(InputError, match=r"cannot be written to .*Not a directory"):
        fetch("things", [remote(url)])


def test_several_at_once_do_no_harm(target):
    with Server().running() as url:
        threads = [threading.Thread(target=download, args=(remote(url), target)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert target.read_bytes() == CONTENT
    assert list(target.parent.iterdir()) == [target]


def test_the_bar_of_a_terminal(target, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with Server(breaks=[100_000]).running() as url:
        download(remote(url), target)
    err = capsys.readouterr().err
    assert "downloading file.bin" in err
    assert "300.0/300.0 kB" in err
