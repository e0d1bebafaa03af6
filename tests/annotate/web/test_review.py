"""The owner's API: who may what, two reviewers at one item, a correction that survives kill -9, uploads."""

import csv
import io
import time

import pytest

from shortlist.annotate.formats import EXPORTS
from shortlist.annotate.live.plan import live_plan
from shortlist.annotate.live.trainer import Trainer
from shortlist.annotate.project.people import People

from ..running import Caller, Server, free_port


def test_a_reviewer_corrects_and_the_second_is_told(make_site, database):
    site = make_site(database, items=3)
    ada, ben = (site.signed_in(site.people.admin_link(name, "reviewer")) for name in ("rev ada", "rev ben"))
    assert [row["id"] for row in ada.get("/api/v1/review/items?limit=2").json()["items"]] == [1, 2]
    seen = ada.get("/api/v1/review/items/2").json()["version"]
    body = {"answer": 4, "seen": seen, "why": "wings"}
    first = ada.post("/api/v1/review/items/2/correction", json=body)
    assert (first.status_code, first.json()["known"], first.json()["version"]) == (200, 4, 1)
    second = ben.post("/api/v1/review/items/2/correction", json={**body, "answer": 3})
    assert second.status_code == 409
    assert second.json() == {
        "code": "corrected_meanwhile",
        "message": "rev ada said 'class 4' in the meantime (wings): look again",
    }
    assert ben.post("/api/v1/review/items/2/undo", json={"seen": 1}).json()["known"] is None
    events = ada.get("/api/v1/review/items/2").json()["events"]
    assert [(one["kind"], one["who"]) for one in events] == [
        ("correction", "rev ada"),
        ("correction undone", "rev ben"),
    ]
    assert ben.post("/api/v1/classes/1/retire", json={}).status_code == 403, "for owners only"
    owner = site.admin()
    assert [(row["action"], row["subject"], row["called"]) for row in owner.get("/api/v1/audit").json()][:2] == [
        ("undo correction", "item 2", "item 1"),
        ("correct", "item 2", "item 1"),
    ], "by the name that the pages show"
    assert owner.patch("/api/v1/classes/1", json={"name": "wren"}).status_code in (200, 204)
    assert owner.get("/api/v1/audit?limit=1").json()[0]["called"] == "wren"
    assert owner.delete("/api/v1/items/2").status_code == 200
    assert {row["called"] for row in owner.get("/api/v1/audit").json() if row["subject"] == "item 2"} == {None}


def test_annotators_see_none_of_it(make_site):
    ada = make_site().annotator("ada")
    for path in ("review/items", "review/items/1", "agreement", "review/classes", "review/work", "review/todo"):
        assert ada.get(f"/api/v1/{path}").status_code == 403, path
    for path in ("review/items/1/correction", "classes/0/merge", "uploads", "uploads/preview"):
        assert ada.post(f"/api/v1/{path}", json={}).status_code in (403, 422), path
    assert ada.patch("/api/v1/settings", json={}).status_code == 403


def test_notes_and_flags_are_closed_by_name(make_site):
    site = make_site()
    owner = site.admin()
    for body in ({"kind": "flag"}, {"text": "Look at the beak."}):
        assert owner.post("/api/v1/review/items/1/notes", json=body).status_code == 201
    assert owner.post("/api/v1/review/items/1/notes", json={"text": " "}).status_code == 422
    assert owner.get("/api/v1/review/todo").json()["flagged"] == 1
    found = owner.post("/api/v1/review/items/1/flags/close", json={}).json()
    assert {one["kind"]: one["stands"] for one in found["events"]} == {"flag": False, "comment": True}
    assert owner.get("/api/v1/review/items?flagged=true").json() == {"items": [], "after": None}


@pytest.mark.kill
def test_a_correction_survives_kill_9_and_reaches_the_export_and_the_model(make_project, tmp_path):
    project = make_project(items=30, live={"policy": "adaptive", "size": 3}, size=3)
    token = People(project).make_token("reviewer", None)
    port = free_port()
    server = Server(project.folder, port)
    try:
        server.wait()
        caller = Caller(port, token)
        for item in (3, 4):
            status, _ = caller.post(f"/review/items/{item}/correction", {"answer": 5, "seen": 0, "why": "sure"})
            assert status == 200
        assert caller.post("/review/items/4/undo", {"seen": 1})[0] == 200
        caller.close()
    finally:
        server.kill()
    EXPORTS["answers.csv"](project, tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open(newline="") as file:
        assert [(row["item"], row["answer"], row["policy"]) for row in csv.DictReader(file)] == [
            ("item 2", "class 5", "correction/1")
        ]
    trainer = Trainer(project, live_plan(project.settings))
    assert trainer.step()
    row = trainer.rows[3]
    state = trainer.loop.state
    assert state.known[row] or state.held[row]
    assert state.answer[row] == 5
    assert not state.known[trainer.rows[4]], "this one was taken back"


def test_uploads_say_what_they_will_do_and_do_it(make_site):
    site = make_site(items=2)
    owner = site.admin()
    table = io.StringIO()
    csv.writer(table).writerows([["item", "text"], ["new 1", "a"], ["item 0", "there already"], ["new 2", ""]])
    query = "what=items&name=more.csv"
    look = owner.post(f"/api/v1/uploads/preview?{query}", content=table.getvalue().encode()).json()
    assert (look["state"], look["added"]) == ("preview", 1)
    assert [one["reason"] for one in look["skipped"]] == ["the project has an item of this name", "an empty text"]
    assert len(owner.get("/api/v1/items").json()["items"]) == 2, "nothing was changed"
    done = finished(owner, owner.post(f"/api/v1/uploads?{query}", content=table.getvalue().encode()))
    assert (done["state"], done["added"], len(done["skipped"])) == ("done", 1, 2)
    assert len(owner.get("/api/v1/items").json()["items"]) == 3
    alike = b"CLASS 2\nnew one\n"
    remark = "classes that differ by capitals, spaces or zeros only: 'class 2' and 'CLASS 2'"
    assert owner.post("/api/v1/uploads/preview?what=classes&name=c.txt", content=alike).json()["remark"] == remark
    assert finished(owner, owner.post("/api/v1/uploads?what=classes&name=c.txt", content=alike))["remark"] == remark
    known = b"item,class\nitem 0,class 3\n"
    assert owner.post("/api/v1/uploads/preview?what=known&name=k.csv", content=known).json()["known"] == 1
    assert finished(owner, owner.post("/api/v1/uploads?what=known&name=k.csv", content=known))["known"] == 1
    gold = b"item,gold\nitem 1,class 2\nitem 9,class 2\n"
    assert owner.post("/api/v1/uploads/preview?what=gold&name=g.csv", content=gold).json()["added"] == 1
    assert finished(owner, owner.post("/api/v1/uploads?what=gold&name=g.csv", content=gold))["added"] == 1
    other = b"words,key\nhello,k1\nagain,k2\n,k3\n"
    assert "no column 'text'" in owner.post(f"/api/v1/uploads/preview?{query}", content=other).json()["message"]
    columns = f"{query}&text_column=words&item_column=key"
    assert owner.post(f"/api/v1/uploads/preview?{columns}", content=other).json()["added"] == 2
    assert finished(owner, owner.post(f"/api/v1/uploads?{columns}&strict=true", content=other))["state"] == "failed"
    assert finished(owner, owner.post(f"/api/v1/uploads?{columns}", content=other))["added"] == 2
    assert {"k1", "k2"} <= {one["name"] for one in owner.get("/api/v1/items").json()["items"]}
    bad = owner.post("/api/v1/uploads/preview?what=items&name=x.exe", content=b"?")
    assert bad.status_code == 422
    assert "/tmp" not in bad.json()["message"], "nobody needs to know where it lies"
    failed = finished(owner, owner.post("/api/v1/uploads?what=known&name=k.csv", content=b"item,class\nitem 0,nope\n"))
    assert failed["state"] == "failed"
    assert "nope" in failed["message"]
    assert owner.get("/api/v1/uploads/999").status_code == 404


def finished(owner, reply):
    assert reply.status_code == 202
    found, end = reply.json(), time.monotonic() + 60
    while found["state"] == "running" and time.monotonic() < end:
        time.sleep(0.01)
        found = owner.get(f"/api/v1/uploads/{found['id']}").json()
    return found


def test_classes_are_merged_retired_and_restored(make_site):
    site = make_site()
    owner = site.admin()
    assert owner.post("/api/v1/classes/1/merge", json={"into": 0}).status_code == 204
    assert owner.post("/api/v1/classes/1/merge", json={"into": 0}).status_code == 409
    assert owner.post("/api/v1/classes/2/retire", json={}).json() == {"answers": 0}
    rows = {row["id"]: row for row in owner.get("/api/v1/review/classes").json()}
    assert (rows[1]["merged_into"], rows[2]["merged_into"]) == (0, None)
    assert [rows[k]["ended_at"] is None for k in (0, 1, 2)] == [True, False, False]
    assert owner.post("/api/v1/classes/2/restore", json={}).status_code == 204
    assert owner.get("/api/v1/agreement").json()["alpha"] is None
