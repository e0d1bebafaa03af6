import io
import re
import time

import pytest
from PIL import Image

from shortlist.annotate.project.score import write_score
from shortlist.annotate.web.limits import Limits


def test_the_whole_way_of_an_annotator(make_site, database):
    site = make_site(database, items=4)
    ada = site.annotator("ada")
    who = ada.get("/api/v1/session").json()
    assert (who["role"], who["name"], who["title"]) == ("annotator", "ada", "t")
    assert who["outbox"] != site.annotator("ben").get("/api/v1/session").json()["outbox"]
    held = ada.post("/api/v1/next", json={"hold": 2}).json()["questions"]
    assert len(held) == 2
    assert held[0]["item"]["kind"] == "text"
    assert {choice["name"] for choice in held[0]["shortlist"]} <= {f"class {k}" for k in range(6)}
    assert "item 0" not in str(held), "a name may give the class away"
    body = {"question": held[0]["id"], "answer": None, "seconds": 1.25, "hold": 2}
    saved = ada.post("/api/v1/answers", json=body)
    assert saved.status_code == 200
    assert saved.json()["saved"]["answer"] is None
    assert saved.json()["questions"][0]["id"] == held[1]["id"]
    assert ada.post("/api/v1/answers", json=body).json()["saved"] == saved.json()["saved"]
    refused = ada.post("/api/v1/answers", json={**body, "answer": held[0]["shortlist"][0]["class"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "answered_differently")
    undone = ada.post("/api/v1/undos", json={"hold": 2}).json()
    assert (undone["saved"]["kind"], undone["questions"][0]["id"]) == ("undo", held[0]["id"])
    assert undone["questions"][0]["attempt"] == 1
    skipped = ada.post("/api/v1/skips", json={"question": held[0]["id"], "attempt": 1}).json()
    assert skipped["saved"]["kind"] == "skip"
    assert ada.delete("/api/v1/session").status_code == 204
    assert ada.post("/api/v1/next", json={}).status_code == 401


def test_progress_knows_of_the_answer_just_given(make_site, database):
    site = make_site(database, items=4)
    ada, bob = site.annotator("ada"), site.annotator("bob")
    assert ada.post("/api/v1/next", json={}).json()["progress"] == {"done": 0, "total": 4}
    for done, who in enumerate((ada, bob, ada, bob), start=1):
        (q,) = who.post("/api/v1/next", json={}).json()["questions"]
        reply = who.post("/api/v1/answers", json={"question": q["id"], "answer": None, "hold": 0}).json()
        assert reply["progress"] == {"done": done, "total": 4}, "not as it was some seconds ago"
    assert bob.post("/api/v1/undos", json={}).json()["progress"] == {"done": 3, "total": 4}


def test_what_an_admin_sees_and_does(make_site, database):
    site = make_site(database, items=4)
    admin = site.admin()
    made = admin.post("/api/v1/annotators", json={"name": "ada"}).json()
    link = made["link"].split("#")[1]
    ada = site.signed_in(link)
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    ada.post("/api/v1/answers", json={"question": q["id"], "answer": None, "seconds": 2})
    admin.post("/api/v1/measures", json={"name": "accuracy", "value": 0.5})
    status = admin.get("/api/v1/status").json()
    assert status["progress"] == {"done": 1, "total": 4}
    assert status["none_share"] == 1.0
    assert status["annotators"][0]["median_seconds"] == 2
    assert status["seconds_by_size"] == [{"size": 3, "median_seconds": 2.0}]
    assert [(m["value"], m["answers"]) for m in status["measures"]] == [(0.5, 1)]
    assert status["score"] is None
    score = {"accuracy": 0.8, "low": 0.5, "high": 0.9, "items": 9, "undecided": 1, "size": 20, "corrected": True}
    score |= {"asked": 9, "answers": 100, "questions_for_a_point": None}
    site.project.live.mkdir()
    write_score(site.project.live, score)
    assert admin.get("/api/v1/status").json()["score"] == {**score, "early": True}
    write_score(site.project.live, {**score, "items": 10})
    assert admin.get("/api/v1/status").json()["score"] == {**score, "items": 10, "early": False}
    assert admin.post("/api/v1/annotators", json={"name": "ada"}).status_code == 409
    assert admin.delete(f"/api/v1/annotators/{made['id']}").status_code == 204
    assert ada.post("/api/v1/next", json={}).status_code == 401
    assert site.client().post("/api/v1/session", json={"secret": link}).status_code == 401
    renewed = admin.post(f"/api/v1/annotators/{made['id']}/invite").json()["link"]
    assert site.signed_in(renewed.split("#")[1]).post("/api/v1/next", json={}).status_code == 200


def test_links_lead_to_where_people_reach_it(make_site):
    site = make_site(options={"public_url": "https://label.example", "tls": True})
    script = site.client(headers={"Authorization": f"Bearer {site.people.make_token('script', None)}"})
    assert (
        script.post("/api/v1/annotators", json={"name": "a"}).json()["link"].startswith("https://label.example/join#")
    )
    assert make_site().admin().post("/api/v1/admin-links").json()["link"].startswith("http://127.0.0.1:8080/join#")


def test_programs_use_tokens(make_site):
    site = make_site()
    admin = site.admin()
    who = admin.post("/api/v1/annotators", json={"name": "robot"}).json()["id"]
    token = admin.post("/api/v1/tokens", json={"label": "crowd", "annotator": who}).json()["token"]
    robot = site.client(headers={"Authorization": f"Bearer {token}"})
    assert len(robot.post("/api/v1/next", json={"hold": 1}).json()["questions"]) == 1
    assert robot.get("/api/v1/status").status_code == 403
    (row,) = admin.get("/api/v1/tokens").json()
    assert token not in str(row)
    assert admin.delete(f"/api/v1/tokens/{row['id']}").status_code == 204
    assert robot.post("/api/v1/next", json={}).status_code == 401
    own = admin.post("/api/v1/tokens", json={"label": "script"}).json()["token"]
    script = site.client(headers={"Authorization": f"Bearer {own}"})
    assert script.get("/api/v1/status").status_code == 200
    assert script.post("/api/v1/next", json={}).status_code == 403, "an admin has no questions"


@pytest.mark.parametrize("path", ["/", "/admin", "/static/annotate.js", "/static/app.css"])
def test_a_browser_asks_whether_a_page_is_still_the_same(make_site, path):
    """After an upgrade scripts that it kept would meet new ones."""
    client = make_site().client()
    got = client.get(path)
    assert got.headers["cache-control"] == "no-cache"
    if path.startswith("/static/"):
        assert client.get(path, headers={"if-none-match": got.headers["etag"]}).status_code == 304
        assert client.post(path, headers={"X-Shortlist": "1"}).status_code == 405


def test_what_a_page_names_is_kept_for_good_and_packed(make_site):
    client = make_site().client()
    named = re.search(r'src="(/static/[0-9a-f]+)/annotate.js"', client.get("/").text)[1]
    packed, plain = ({"accept-encoding": way} for way in ("gzip", "identity"))
    for name in ("annotate.js", "dom.js", "icon.svg"):
        kept, other = (client.get(f"{place}/{name}", headers=packed) for place in (named, "/static/old"))
        assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert other.headers["cache-control"] == "no-cache", "that of another version, which a page open since has"
        assert kept.content == other.content == client.get(f"/static/{name}", headers=plain).content
        assert ("content-encoding" in kept.headers) == (len(kept.content) >= 500)
    for path in ("/static/a/b/dom.js", "/static/dom.txt", "/static/", "/static"):
        assert client.get(path).status_code == 404


def test_what_classes_mean_is_said_and_changed_over_the_api(make_site, database):
    site = make_site(database, items=1, classes=2, size=5)
    admin, ada = site.admin(), site.annotator("ada")

    def post(names: list[str], descriptions: list[str | None]) -> int:
        return admin.post("/api/v1/classes", json={"names": names, "descriptions": descriptions}).status_code

    assert post(["emu", "class 0", "fox"], ["a tall bird", "the first", None]) == 201
    found = admin.get("/api/v1/classes").json()
    assert found["names"] == ["class 0", "class 1", "emu", "fox"], "a known class is not added again"
    assert found["descriptions"] == ["the first", None, "a tall bird", None]
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    assert {c["name"]: c["description"] for c in q["shortlist"]} == dict(
        zip(found["names"], found["descriptions"], strict=True)
    )
    assert post(["emu", "class 0"], ["", None]) == 201
    assert admin.get("/api/v1/classes").json()["descriptions"] == ["the first", None, None, None]
    for names, descriptions in (
        *((["gnu"], ["two", "of them"]), (["gnu", "gnu"], ["one", "another"]), (["gnu"], ["two\nlines"])),
        *((["gnu"], ["x" * 501]), (["emu"], [None])),
    ):
        assert post(names, descriptions) == 422, (names, descriptions)
    assert admin.get("/api/v1/classes").json()["names"] == found["names"], "refused whole"


def test_classes_that_look_alike_are_taken_and_told(make_site):
    admin = make_site(items=1, classes=3).admin()
    told = "classes that differ by capitals, spaces or zeros only: "
    found = admin.post("/api/v1/classes", json={"names": ["Class 1", " lost", "Lo st"]}).json()
    assert found["names"][3:] == ["Class 1", "lost", "Lo st"]
    assert found["remark"] == f"{told}'class 1' and 'Class 1'; 'lost' and 'Lo st'"
    assert admin.post("/api/v1/classes", json={"names": ["other"]}).json()["remark"] == "", "told once"
    assert admin.patch("/api/v1/classes/2", json={"name": "OTHER"}).json()["remark"] == f"{told}'OTHER' and 'other'"
    assert admin.patch("/api/v1/classes/2", json={"name": "another"}).json()["remark"] == ""


def test_items_and_classes_are_added_while_it_runs(make_site, database):
    site = make_site(database, items=1, classes=3)
    admin, ada = site.admin(), site.annotator("ada")
    found = admin.post("/api/v1/classes", json={"names": ["new"]}).json()
    assert (found["names"][-1], found["remark"]) == ("new", "")
    assert admin.post("/api/v1/classes", json={"names": ["new"]}).status_code == 422
    assert admin.get("/api/v1/classes").json()["descriptions"] == [None] * 4
    body = {"items": [{"name": "x", "text": "hello"}, {"name": "x", "text": "again"}]}
    assert admin.post("/api/v1/items", json={**body, "strict": True}).status_code == 422
    added = admin.post("/api/v1/items", json=body).json()
    assert added == {"added": 1, "skipped": [{"item": "x", "reason": "a duplicate id"}]}
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    raw = {"content-type": "application/octet-stream"}
    sent = admin.post("/api/v1/items/media?name=p", content=picture.getvalue(), headers=raw)
    assert sent.json()["added"] == 1
    assert admin.post("/api/v1/items/media?name=p", content=picture.getvalue(), headers=raw).status_code == 422
    assert admin.post("/api/v1/items/media?name=q", content=b"<svg/>", headers=raw).status_code == 422
    gold = "/api/v1/items/media?name=r&gold=nothing"
    assert admin.post(gold, content=picture.getvalue(), headers=raw).status_code == 422
    page = admin.get("/api/v1/items?limit=2").json()
    assert [row["name"] for row in page["items"]] == ["item 0", "x"]
    assert [row["name"] for row in admin.get(f"/api/v1/items?after={page['after']}").json()["items"]] == ["p"]
    held = ada.post("/api/v1/next", json={"hold": 3}).json()["questions"]
    assert [q["item"]["kind"] for q in held] == ["text", "text", "image"]
    got = ada.get(held[2]["item"]["media"])
    assert (got.status_code, got.headers["content-type"]) == (200, "image/png")
    part = ada.get(held[2]["item"]["media"], headers={"range": "bytes=0-3"})
    assert (part.status_code, part.content) == (206, got.content[:4]), "sounds are played from anywhere"


def test_exports_by_the_api(make_site, database):
    site = make_site(database, items=3)
    admin, ada = site.admin(), site.annotator("ada")
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    ada.post("/api/v1/answers", json={"question": q["id"], "answer": q["shortlist"][0]["class"], "seconds": 2})
    for name in ("answers.csv", "answers.jsonl", "answers.parquet", "crowd-kit.csv", "label-studio.json"):
        got = admin.get(f"/api/v1/export/{name}")
        assert got.status_code == 200
        assert name in got.headers["content-disposition"]
        assert ada.get(f"/api/v1/export/{name}").status_code == 403
    assert "<Text" in admin.get("/api/v1/export/label-studio.xml").text
    assert admin.get("/api/v1/export/secret.key").status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {"question": 1},
        {"question": 2**63, "answer": 0},
        {"question": 0, "answer": 0},
        {"question": 1, "answer": "cat"},
        {"question": 1, "answer": 0, "seconds": -1},
        {"question": 1, "answer": 0, "seconds": 1e99},
        {"question": 1, "answer": 0, "surprise": 1},
        {"question": 1, "answer": 0, "attempt": -1},
        [],
        None,
    ],
)
def test_a_bad_body_is_named_and_refused(make_site, body):
    refused = make_site().annotator("ada").post("/api/v1/answers", json=body)
    assert refused.status_code == 422
    assert set(refused.json()) == {"code", "message"}


def test_the_rate_of_submitting_is_limited(make_site):
    site = make_site(options={"limits": Limits(submits_per_second=2)})
    ada = site.annotator("ada")
    seen = [ada.post("/api/v1/next", json={}).status_code for _ in range(10)]
    assert seen[:4] == [200] * 4
    assert 429 in seen
    time.sleep(0.6)
    assert ada.post("/api/v1/next", json={}).status_code == 200


def test_every_route_is_in_the_openapi_document(make_site):
    document = make_site().client().get("/api/v1/openapi.json").json()
    routes = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert {
        *{("post", f"/api/v1/{name}") for name in ("next", "answers", "skips", "undos", "session", "items", "classes")},
        *{("get", f"/api/v1/{name}") for name in ("status", "export/{name}", "media/{question}", "classes", "tokens")},
        ("post", "/api/v1/import/label-studio"),
    } <= routes


def test_the_pages_are_shells_without_data(make_site):
    site = make_site()
    for path in ("/", "/join", "/admin"):
        page = site.client().get(path)
        assert page.status_code == 200
        assert page.text == site.client().get(path, params={"html": "<script>"}).text
        assert "http://" not in page.text.replace("http://www.w3.org", ""), "nothing from elsewhere"
        assert "https://" not in page.text


def test_an_unknown_page_is_a_page_for_a_browser_and_json_for_a_program(make_site):
    client = make_site().client()
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = client.get("/nowhere", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "No such page" in page.text
    assert 'href="/admin"' in page.text
    for path, headers in (("/nowhere", {}), ("/api/v1/nowhere", browser), ("/api/v1/nowhere", {})):
        program = client.get(path, headers=headers)
        assert (program.status_code, program.json()) == (404, {"code": "http", "message": "Not Found"})


def test_who_ended_is_out_at_once_though_principals_are_remembered(make_site):
    site = make_site()
    admin, ada = site.admin(), site.annotator("ada")
    who = admin.post("/api/v1/annotators", json={"name": "robot"}).json()["id"]
    token = admin.post("/api/v1/tokens", json={"label": "crowd", "annotator": who}).json()["token"]
    robot = site.client(headers={"Authorization": f"Bearer {token}"})
    for client in (ada, robot):
        assert [client.post("/api/v1/next", json={}).status_code for _ in range(2)] == [200, 200]
    (row,) = admin.get("/api/v1/tokens").json()
    admin.delete(f"/api/v1/tokens/{row['id']}")
    assert robot.post("/api/v1/next", json={}).status_code == 401
    kept = dict(ada.cookies)
    ada.delete("/api/v1/session")
    ada.cookies.update(kept)
    assert ada.post("/api/v1/next", json={}).status_code == 401


def test_a_remembered_session_ends_with_its_time(make_site):
    now = [1_000_000.0]
    site = make_site(options={"clock": lambda: now[0]})
    ada = site.client()
    secret = site.app.state.services.people.invite("ada")[1]
    assert ada.post("/api/v1/session", json={"secret": secret}).status_code == 200
    assert ada.post("/api/v1/next", json={}).status_code == 200
    now[0] += 31 * 24 * 3600
    assert ada.post("/api/v1/next", json={}).status_code == 401


def test_a_class_is_searched_for_and_typed(make_site, database):
    site = make_site(database, items=2, typing=True)
    ada = site.annotator("ada")
    assert ada.get("/api/v1/session").json()["typing"]
    (question,) = ada.post("/api/v1/next", json={}).json()["questions"]
    found = ada.get("/api/v1/classes/search", params={"question": question["id"], "q": "5"}).json()["classes"]
    shown = {choice["class"] for choice in question["shortlist"]}
    assert found == [{"class": 5, "name": "class 5", "description": None, "shown": 5 in shown, "refused": False}]
    body = {"question": question["id"], "answer": 5, "typed": True, "seconds": 3}
    saved = ada.post("/api/v1/answers", json=body).json()["saved"]
    assert (saved["kind"], saved["answer"]) == ("typed", 5)
    assert ada.post("/api/v1/answers", json=body).json()["saved"] == saved
    assert ada.post("/api/v1/undos", json={}).json()["saved"]["kind"] == "undo"
    for bad in ({"answer": None}, {"answer": 6}):
        refused = ada.post("/api/v1/answers", json={**body, "attempt": 1, **bad})
        assert (refused.status_code, refused.json()["code"]) == (422, "no_class")
    missing = site.annotator("ben").get("/api/v1/classes/search", params={"question": question["id"]})
    assert missing.status_code == 404, "not a question of his"


def test_a_project_may_forbid_typing(make_site):
    ada = make_site(items=2).annotator("ada")
    assert not ada.get("/api/v1/session").json()["typing"], "lists are uniform"
    (question,) = ada.post("/api/v1/next", json={}).json()["questions"]
    body = {"question": question["id"], "answer": question["shortlist"][0]["class"], "typed": True}
    search = ada.get("/api/v1/classes/search", params={"question": question["id"]})
    for refused in (ada.post("/api/v1/answers", json=body), search):
        assert (refused.status_code, refused.json()["code"]) == (422, "no_typing")
