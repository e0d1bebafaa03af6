"""Faults of the server: a plain refusal, one line in the log, no secrets; and small courtesies of HTTP."""

import json
import logging

import pytest
from sqlalchemy import text

from shortlist.annotate.project.people import People
from shortlist.annotate.web.limits import Limits
from shortlist.annotate.web.logs import JsonLines


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO, "shortlist.annotate")

    def lines():
        return [JsonLines().format(record) for record in caplog.records if record.name == "shortlist.annotate"]

    return lines


def test_a_database_that_fails_is_a_503_with_headers_and_one_line(make_site, log):
    site = make_site()
    ada = site.annotator("ada")
    with site.project.store.write() as connection:
        connection.execute(text("ALTER TABLE questions RENAME TO gone"))
    got = ada.post("/api/v1/next", json={})
    assert (got.status_code, got.json()["code"]) == (503, "storage")
    assert got.headers["content-security-policy"]
    assert got.headers["cache-control"] == "no-store"
    (line,) = log()
    assert "\n" not in line
    found = json.loads(line)
    assert (found["level"], found["path"]) == ("error", "/api/v1/next")
    assert "no such table" in found["error"]
    assert "SELECT" not in line, "neither the statement nor its values"


def test_our_own_mistake_is_a_500_without_its_details(make_site, log, monkeypatch):
    site = make_site()
    admin = site.admin()
    monkeypatch.setattr(site.app.state.services.stats, "status", lambda: {}["secret of ada"])
    got = admin.get("/api/v1/status?token=hidden")
    assert (got.status_code, got.json()["code"]) == (500, "fault")
    assert "ada" not in got.text
    assert got.headers["x-content-type-options"] == "nosniff"
    assert len(log()) == 1
    assert "hidden" not in log()[0]


def test_head_is_get_without_the_body(make_site):
    site = make_site()
    admin = site.admin()
    for path in ("/", "/admin", "/static/app.css", "/api/v1/status", "/api/v1/export/answers.csv"):
        got, full = admin.head(path), admin.get(path)
        assert (got.status_code, got.content) == (full.status_code, b""), path
        assert got.headers["content-type"] == full.headers["content-type"]


def test_links_do_not_lead_where_a_header_says(make_site):
    """Whoever makes an admin's program send another Host would be sent the secrets of the links."""
    site = make_site()
    token = site.people.make_token("script", None)
    script = site.client(headers={"Authorization": f"Bearer {token}"})
    for host, expected in (
        *(
            ("evil.example", "http://127.0.0.1:8080/join#"),
            ("127.0.0.1.evil.example:80", "http://127.0.0.1:8080/join#"),
        ),
        *(("192.168.1.5:8080", "http://192.168.1.5:8080/join#"), ("localhost:9000", "http://localhost:9000/join#")),
    ):
        made = script.post("/api/v1/admin-links", headers={"host": host}).json()["link"]
        assert made.startswith(expected), host


def test_nobody_becomes_somebody_else_unasked(make_site):
    site = make_site()
    vic, mallory = site.people.invite("vic")[1], site.people.invite("mallory")[1]
    browser = site.signed_in(vic)
    refused = browser.post("/api/v1/session", json={"secret": mallory})
    assert (refused.status_code, refused.json()["code"]) == (409, "somebody_else")
    assert refused.json()["message"] == "You are vic. Go on as mallory?"
    assert browser.get("/api/v1/session").json()["name"] == "vic"
    assert browser.post("/api/v1/session", json={"secret": vic}).status_code == 200, "the same person again"
    assert browser.post("/api/v1/session", json={"secret": site.people.admin_link()}).status_code == 200
    assert browser.post("/api/v1/session", json={"secret": mallory, "instead": True}).json()["name"] == "mallory"
    fresh = site.client()
    assert fresh.post("/api/v1/session", json={"secret": vic}).status_code == 200


def test_a_class_is_not_called_like_the_answer_none(make_site):
    admin = make_site().admin()
    for name in ("None of these", " none  of these", "__none__"):
        assert admin.post("/api/v1/classes", json={"names": [name]}).status_code == 422
        assert admin.patch("/api/v1/classes/0", json={"name": name}).status_code == 422
    assert admin.post("/api/v1/classes", json={"names": ["None"]}).status_code == 201


def test_large_bodies_are_parsed_in_a_thread(make_site, monkeypatch):
    """While the loop goes on; and refused with the same words."""
    import threading

    from shortlist.annotate.web.api.models import ItemsIn

    site = make_site(options={"limits": Limits()})
    admin, threads, validate = site.admin(), [], ItemsIn.model_validate_json

    def spy(data):
        threads.append(threading.current_thread().name)
        return validate(data)

    monkeypatch.setattr(ItemsIn, "model_validate_json", spy)
    body = {"items": [{"name": f"n{i}", "text": "x" * 500} for i in range(300)]}
    assert admin.post("/api/v1/items", json=body).json()["added"] == 300
    assert "AnyIO worker" in threads[0]
    refused = admin.post("/api/v1/items", json={"items": [{"name": "x", "text": ""}]})
    assert refused.status_code == 422
    assert refused.json()["message"].startswith("body.items.0.text:")
    assert admin.post("/api/v1/items", content=b"{").status_code == 422
    assert "ItemsIn" in str(admin.get("/api/v1/openapi.json").json()["paths"]["/api/v1/items"]["post"]["requestBody"])


def test_an_admins_link_is_printed_only_while_nobody_is_in(make_project):
    project = make_project()
    people = People(project)
    assert not people.has_owner()
    people.admin_link()
    assert not people.has_owner(), "a link that nobody has used"
    people.make_token("robot", people.invite("ada")[0])
    assert not people.has_owner()
    people.make_token("script", None)
    assert people.has_owner()
