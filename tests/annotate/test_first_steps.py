"""`shortlist annotate` without a project: what is found in a file, who may ask, and what is made of it."""

import csv
import http.client
import io
import json
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import quote
from zipfile import ZipFile

import pytest
from PIL import Image
from sqlalchemy import select
from starlette.testclient import TestClient

from shortlist.annotate.db.schema import Item
from shortlist.annotate.first_steps import look_at, make_project
from shortlist.annotate.project.additions import Additions, add_to_project, preview
from shortlist.annotate.project.project import Project
from shortlist.annotate.setup import export_file
from shortlist.annotate.web.api.begin_models import Wishes
from shortlist.annotate.web.begin import Beginning
from shortlist.data import read_table
from shortlist.errors import InputError

from .browser.projects import sound
from .running import COMMAND

WORDS = {"lost card": "I lost my card", "exchange rate": "what is the exchange rate", "top up": "my top up failed"}


def table(folder: Path, rows: int = 60, labelled: int = 20) -> Path:
    """Texts in a column of any name, classes in another for the first of them."""
    lines = ["message,topic"]
    for i in range(rows):
        name, text = list(WORDS.items())[i % 3]
        lines.append(f'"{text}, case {i}",{name if i < labelled else ""}')
    path = folder / "items.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_texts_and_classes_are_found_and_names_guess(tmp_path):
    found = look_at(table(tmp_path), Wishes())
    assert (found.rows, found.text_column, found.label_column, found.labelled) == (60, "message", "topic", 20)
    assert found.classes == sorted(WORDS)
    assert len(found.guesses) == 5
    for guess in found.guesses:
        assert WORDS[guess.classes[0]] in guess.text
    typed = look_at(tmp_path / "items.csv", Wishes(label_column="", classes=["top up", "other"]))
    assert (typed.label_column, typed.classes, typed.labelled) == ("", ["top up", "other"], 0)
    nothing = look_at(tmp_path / "items.csv", Wishes(label_column=""))
    assert (nothing.classes, nothing.guesses) == ([], [])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.exe", "x", "expected a table"),
        ("a.csv", "text\n", "no rows"),
        ("a.csv", "", "."),
        ("a.jsonl", "{", "."),
        ("a.parquet", "not one", "."),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        look_at(tmp_path / name, Wishes())
    assert "\n" not in str(caught.value)


def test_the_project_asks_about_what_has_no_class(tmp_path):
    path = table(tmp_path)
    folder = make_project(tmp_path, path, Wishes(title="Customer Messages: 1", size=50))
    assert folder.name == "customer-messages-1"
    with Project.open(folder) as project:
        assert project.settings.title == "Customer Messages: 1"
        assert project.settings.size == 3
        assert project.status()["progress"]["total"] == 40
    with pytest.raises(InputError, match="exists already"):
        make_project(tmp_path, path, Wishes(title="customer messages 1"))
    with pytest.raises(InputError, match="at least two"):
        make_project(tmp_path, path, Wishes(title="b", classes=["one"]))
    with pytest.raises(InputError, match="no column 'nope'"):
        make_project(tmp_path, path, Wishes(title="b", text_column="nope"))
    assert not (tmp_path / "b").exists()


def test_rows_keep_the_names_of_the_file(tmp_path):
    """As a spreadsheet saves it: semicolons, line breaks and quotes in the cells, a column of ids."""
    path = tmp_path / "items.csv"
    lines = [
        f'T-{i};2026-0{i % 9 + 1}-01;"I, ""{i}"";\nlost a card";{["lost", "found", ""][min(i, 2)]}' for i in range(12)
    ]
    path.write_text("\r\n".join(["id;received;message;intent", *lines]), encoding="utf-8-sig", newline="")
    assert look_at(path, Wishes()).item_column == "id"
    assert look_at(path, Wishes(item_column="")).item_column == ""
    for column in ("received", "intent"):
        with pytest.raises(InputError, match=f"column '{column}' cannot name the rows"):
            look_at(path, Wishes(item_column=column))
    folder = make_project(tmp_path, path, Wishes(title="a", classes=("lost", "found")))
    with Project.open(folder) as project:
        assert project.status()["progress"]["total"] == 10
        export_file(project, tmp_path / "labels.csv", "labels")
    assert [row["item"] for row in csv.DictReader((tmp_path / "labels.csv").open())] == ["T-0", "T-1"]
    by_number = make_project(tmp_path, path, Wishes(title="b", item_column="", classes=("lost", "found")))
    with Project.open(by_number) as project:
        export_file(project, tmp_path / "labels.csv", "labels")
    assert [row["item"] for row in csv.DictReader((tmp_path / "labels.csv").open())] == ["0", "1"]


def test_later_files_have_the_columns_of_the_first(tmp_path):
    """Without them the new rows were items "0" and "1", which no file has names for."""
    first, more = tmp_path / "items.csv", tmp_path / "more.csv"
    first.write_text("id,message\nT-1,I lost a card\nT-2,the card I found\n")
    more.write_text("id,message,topic\nT-3,it is lost,lost\nT-4,it was found,\n")
    with Project.open(make_project(tmp_path, first, Wishes(title="a", classes=("lost", "found")))) as project:
        assert preview(project, Additions(items=more)).added == 2
        outcome = add_to_project(project, Additions(items=more, known=more))
        assert (outcome.added, outcome.known) == (2, 1)
        with project.store.read() as connection:
            names = connection.execute(select(Item.name).order_by(Item.id)).scalars().all()
        assert names == ["T-1", "T-2", "T-3", "T-4"]
        more.write_text("id,gold\nT-4,found\n")
        assert add_to_project(project, Additions(gold=more)).added == 1
        more.write_text("message\nfound again\n")
        for act in (preview, add_to_project):
            with pytest.raises(InputError, match="has no column 'id'"):
                act(project, Additions(items=more))
        export_file(project, tmp_path / "labels.csv", "labels")
    (row,) = csv.DictReader((tmp_path / "labels.csv").open())
    assert (row["item"], row["label"], row["text"]) == ("T-3", "lost", "it is lost")


@pytest.mark.parametrize("title", ["Everything", ""])
def test_nothing_left_to_ask_is_said_before_a_project_is_made(tmp_path, title):
    path = table(tmp_path, labelled=60)
    with path.open("a") as file:
        file.write('" ",\n')  # an empty text is not asked about either
    found = look_at(path, Wishes())
    assert (found.rows, found.labelled, found.to_ask) == (61, 60, 0)
    with pytest.raises(InputError, match="nothing is left to ask: say that no column") as caught:
        make_project(tmp_path, path, Wishes(title=title))
    assert "\n" not in str(caught.value)
    assert {one.name for one in tmp_path.iterdir()} == {"items.csv"}
    asked = Wishes(title="All", label_column="", classes=tuple(found.classes))  # what the page offers
    assert look_at(path, asked).to_ask == 60
    with Project.open(make_project(tmp_path, path, asked)) as project:
        assert project.status()["progress"]["total"] == 60


def test_classes_that_differ_by_capitals_or_spaces_are_told(tmp_path):
    path = tmp_path / "items.csv"
    labels = ["Lost card", "lost card", "top up", "Top  Up", "topup", "refund"]
    path.write_text("text,label\n" + "".join(f"case {i},{labels[i % 6] if i < 20 else ''}\n" for i in range(60)))
    assert look_at(path, Wishes()).alike == [["Lost card", "lost card"], ["Top  Up", "top up", "topup"]]
    assert look_at(path, Wishes(classes=("refund", "top up"))).alike == []


PIXEL = io.BytesIO()
Image.new("RGB", (8, 8), (200, 30, 30)).save(PIXEL, "PNG")


def pictures(*names: str) -> bytes:
    """A .zip of them."""
    out = io.BytesIO()
    with ZipFile(out, "w") as zipped:
        for name in names:
            zipped.writestr(name, PIXEL.getvalue())
    return out.getvalue()


def sender(beginning: Beginning):
    client = TestClient(beginning.app(8123), base_url="http://127.0.0.1:8123")
    key = {"Authorization": f"Bearer {beginning.token}"}

    def send(path: str, content: bytes, name: str = "") -> dict:
        return client.post(f"/api/begin/{path}", content=content, headers={**key, "X-Name": quote(name)}).json()

    return send


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_table_as_spreadsheets_save_it_elsewhere(tmp_path, mark):
    """With semicolons or tabs, quotes, a byte order mark and Windows' ends of lines."""
    rows = ["Nachricht", "Thema"], ["Karte weg; was nun, bitte?", "lost card"], ['der "Kurs"\tsteht', "exchange rate"]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark).writerows([*rows, *[[f"Frage {i}, noch offen", ""] for i in range(10)]])
    beginning = Beginning(look_at, lambda path, wishes: {"made": path.read_text()}, lambda: None)
    send = sender(beginning)
    found = send("file", b"\xef\xbb\xbf" + out.getvalue().encode(), "Fragen.csv")
    assert (found["columns"], found["rows"], found["classes"]) == (
        ["Nachricht", "Thema"],
        12,
        ["exchange rate", "lost card"],
    )
    made = tmp_path / "made.csv"
    made.write_text(send("make", b"{}")["made"], newline="")
    table = read_table(made)
    assert [list(table), *([column[k] for column in table.values()] for k in range(2))] == list(rows)
    beginning.close()


def test_a_refusal_calls_the_file_as_its_owner_does():
    beginning = Beginning(look_at, lambda path, wishes: {}, lambda: None)
    send = sender(beginning)
    name = "my texts.csv"
    for content in (b"", "Größe\n".encode("cp1252")):
        message = send("file", content, name)["message"]
        assert message.startswith(name), message
        assert "/" not in message
    beginning.close()


def test_pictures_in_a_zip_and_folders_that_are_classes(tmp_path):
    made: list[Path] = []
    beginning = Beginning(
        look_at, lambda path, wishes: {"x": str(made.append(make_project(tmp_path, path, wishes)))}, int
    )
    send = sender(beginning)
    good = [f"birds/{name}/{i} ü.png" for name in ("robin", "wren") for i in range(3)]
    evil = [
        "../evil.png",
        "/tmp/evil.png",
        "birds/../../evil.png",
        "birds/.hidden.png",
        "__MACOSX/birds/x.png",
        "a.exe",
    ]
    found = send("file", pictures(*good, *evil, "birds/notes.txt"), "my birds.zip")
    assert (found["rows"], found["columns"], found["text_column"], found["label_column"]) == (
        6,
        ["folder"],
        "",
        "folder",
    )
    assert (found["classes"], found["labelled"], found["to_ask"]) == (["robin", "wren"], 6, 0)
    assert found["kind"] == "image"
    assert "nothing is left to ask" in send("make", b'{"title": "Birds"}')["message"]
    assert not list(tmp_path.rglob("evil.png"))
    typed = {"label_column": "", "classes": ["robin", "wren", "other"], "title": "Birds", "size": 2}
    assert send("look", json.dumps(typed).encode())["labelled"] == 0
    assert "no column 'color'" in send("look", b'{"label_column": "color"}')["message"]
    assert send("make", json.dumps(typed).encode()) == {"x": "None"}
    with Project.open(made[0]) as project:
        assert project.settings.live["policy"] == "adaptive"
        assert project.status()["progress"]["total"] == 6
    assert send("make", b'{"title": "Sorted", "classes": ["wren", "tit"]}') == {"x": "None"}
    with Project.open(made[1]) as project:  # what lies in the folder of a class is known
        assert project.status()["progress"]["total"] == 3
    beginning.close()


def test_pictures_and_sounds_one_by_one(tmp_path):
    beginning = Beginning(look_at, lambda path, wishes: {"made": str(make_project(tmp_path, path, wishes))}, int)
    send = sender(beginning)
    assert send("file?place=0&of=3", PIXEL.getvalue(), "a.png") == {}
    assert send("file?place=1&of=3", b"no picture", "readme.txt") == {}
    found = send("file?place=2&of=3", sound(1), "b.wav")
    assert (found["rows"], found["columns"], found["classes"], found["kind"]) == (2, [], [], "both")
    made = send("make", b'{"title": "Both", "classes": ["loud", "quiet"]}')
    with Project.open(Path(made["made"])) as project:
        assert project.settings.live is None, "no model learns from sounds"
        assert project.status()["items"] == 2
    assert send("file", PIXEL.getvalue(), "alone.png")["rows"] == 1
    assert send("file", sound(1), "alone.wav")["kind"] == "audio"
    beginning.close()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.zip", b"not one", "cannot be read"),
        ("a.zip", pictures("a.txt"), "no picture and no sound"),
        ("a.zip", pictures("a.png")[:-30], "cannot be read"),
    ],
)
def test_a_bad_zip_is_refused_in_one_line(name, content, words):
    beginning = Beginning(look_at, lambda path, wishes: {}, int)
    message = sender(beginning)("file", content, name)["message"]
    assert words in message
    assert "\n" not in message
    beginning.close()


def test_only_this_machine_with_the_token_is_answered(tmp_path):
    beginning = Beginning(look_at, lambda path, wishes: {}, lambda: None)
    app = beginning.app(8123)
    client = TestClient(app, base_url="http://127.0.0.1:8123")
    page = client.get("/begin")
    assert page.status_code == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert beginning.token not in page.text
    assert client.get("/").status_code == 404
    content, key = table(tmp_path).read_bytes(), {"Authorization": f"Bearer {beginning.token}", "X-Name": "a.csv"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": beginning.token}):
        assert (
            client.post("/api/begin/file", content=content, headers={**key, "Authorization": "", **headers}).status_code
            == 401
        )
    assert client.post("/api/begin/look", content="{}", headers=key).json()["code"] == "no_file"
    assert client.post("/api/begin/file", content=content, headers=key).json()["rows"] == 60
    assert client.post("/api/begin/look", content='{"sizes": 3}', headers=key).status_code == 422
    bad = {**key, "X-Name": "../../evil.exe"}
    assert "expected a table" in client.post("/api/begin/file", content=b"x", headers=bad).json()["message"]
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:8124", "evil.example:8123", ""):
        assert client.get("/begin", headers={"Host": host}).status_code == 403
        assert client.post("/api/begin/file", content=content, headers={**key, "Host": host}).status_code == 403
    beginning.close()


def served(connection: http.client.HTTPConnection) -> bool:
    connection.close()
    try:
        connection.request("GET", "/join")
        reply = connection.getresponse()
        return bool(reply.read()) and reply.status == 200
    except (OSError, http.client.HTTPException):
        connection.close()
        return False


def test_the_command_prints_the_address_and_goes_on_with_the_project(tmp_path):
    process = subprocess.Popen([*COMMAND, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        address, _, token = process.stdout.readline().split()[-1].partition("/begin#")
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
        headers = {"Authorization": f"Bearer {token}", "X-Name": "mine.csv"}

        def post(path: str, body: bytes) -> dict:
            connection.request("POST", f"/api/begin/{path}", body, headers)
            return json.loads(connection.getresponse().read())

        (tmp_path / "up").mkdir()
        assert post("file", table(tmp_path / "up").read_bytes())["labelled"] == 20
        made = post("make", b'{"title": "Mine"}')
        assert made["again"] == f"shortlist annotate serve {tmp_path / 'mine'}"
        assert (tmp_path / "mine").is_dir()
        assert made["left_out"] == []
        end = time.monotonic() + 90
        while not served(connection):  # the project's own server takes the place of the first one
            assert time.monotonic() < end
            time.sleep(0.05)
        connection.request(
            "POST",
            "/api/v1/session",
            json.dumps({"secret": made["admin"].partition("#")[2]}),
            {"X-Shortlist": "1", "Content-Type": "application/json"},
        )
        who = json.loads(connection.getresponse().read())
        assert who["title"] == "Mine"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
        process.stdout.close()
