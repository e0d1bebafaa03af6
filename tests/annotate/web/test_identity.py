"""Owners, reviewers and annotators: what each may do, their sessions, and the log of what owners did."""

import pytest

from shortlist.annotate.project.audit import read_audit

API = "/api/v1"


@pytest.fixture
def site(make_site):
    return make_site(items=3)


def test_a_reviewer_looks_and_does_not_change(site):
    reviewer = site.signed_in(site.people.admin_link("rita", "reviewer"))
    assert reviewer.get(f"{API}/session").json()["role"] == "reviewer"
    for path in ("status", "classes", "classes/counts", "items"):
        assert reviewer.get(f"{API}/{path}").status_code == 200, path
    for path in ("audit", "people/sessions", "tokens", "export/answers.csv"):
        assert reviewer.get(f"{API}/{path}").json()["code"] == "owners_only", path
    for path, body in (("annotators", {"name": "eve"}), ("classes", {"names": ["x"]}), ("tokens", {"label": "x"})):
        assert reviewer.post(f"{API}/{path}", json=body).json()["code"] == "owners_only", path
    assert reviewer.post(f"{API}/admin-links", json={"name": "eve"}).status_code == 403
    ada = site.annotator("ada")
    assert ada.get(f"{API}/status").json()["code"] == "reviewers_only"


def test_everybody_sees_and_ends_their_own_sessions(site):
    invited = site.people.invite("ada")[1]
    ada, elsewhere, ben = site.signed_in(invited), site.signed_in(invited), site.annotator("ben")
    mine = ada.get(f"{API}/sessions").json()
    assert [row["name"] for row in mine] == ["ada", "ada"]
    assert [row["this"] for row in mine] == [False, True], "the newest first"
    theirs = ben.get(f"{API}/sessions").json()[0]["id"]
    assert ada.delete(f"{API}/sessions/{theirs}").status_code == 404
    assert ben.get(f"{API}/session").status_code == 200
    assert ada.delete(f"{API}/sessions/{mine[0]['id']}").status_code == 204
    assert elsewhere.get(f"{API}/session").status_code == 401
    assert ada.get(f"{API}/session").status_code == 200


def test_owners_by_one_name_share_sessions_and_nobody_else_sees_them(site):
    olga, again = (site.signed_in(site.people.admin_link("olga")) for _ in range(2))
    site.signed_in(site.people.admin_link("otto"))
    program = site.people.make_token("olga", None)
    assert len(olga.get(f"{API}/sessions").json()) == 2
    assert {row["name"] for row in olga.get(f"{API}/people/sessions").json()} == {"olga", "otto"}
    assert olga.delete(f"{API}/admins/otto").status_code == 204
    assert [row["name"] for row in olga.get(f"{API}/people/sessions").json()] == ["olga", "olga"]
    assert olga.delete(f"{API}/admins/otto").status_code == 404
    last = again.get(f"{API}/sessions").json()[0]["id"]
    assert olga.delete(f"{API}/people/sessions/{last}").status_code == 204
    assert again.get(f"{API}/session").status_code == 401
    assert site.client(headers={"Authorization": f"Bearer {program}"}).get(f"{API}/status").status_code == 200


def test_a_link_carries_name_and_role(site):
    olga = site.signed_in(site.people.admin_link("olga"))
    link = olga.post(f"{API}/admin-links", json={"name": "rita", "role": "reviewer"}).json()["link"]
    rita = site.signed_in(link.split("#")[1])
    assert (rita.get(f"{API}/session").json()["name"], rita.get(f"{API}/session").json()["role"]) == (
        "rita",
        "reviewer",
    )
    assert olga.post(f"{API}/admin-links", json={"name": "x", "role": "annotator"}).status_code == 422
    again = site.signed_in(olga.post(f"{API}/admin-links").json()["link"].split("#")[1])
    assert again.get(f"{API}/session").json()["name"] == "olga"


WRITES = {
    ("PUT", "/instructions"): {"json": {"text": "look"}},
    ("POST", "/annotators"): {"json": {"name": "new"}},
    ("POST", "/annotators/{annotator}/invite"): {},
    ("DELETE", "/annotators/{annotator}"): {},
    ("DELETE", "/annotators/{annotator}/answers"): {},
    ("POST", "/tokens"): {"json": {"label": "t"}},
    ("DELETE", "/tokens/{token}"): {},
    ("POST", "/classes"): {"json": {"names": ["more"]}},
    ("PATCH", "/classes/{class_id}"): {"json": {"name": "other"}},
    ("POST", "/classes/{class_id}/retire"): {},
    ("POST", "/classes/{class_id}/restore"): {},
    ("POST", "/classes/{class_id}/merge"): {"json": {"into": 0}},
    ("PATCH", "/settings"): {"json": {"title": "another"}},
    ("POST", "/backups"): {},
    ("POST", "/uploads"): {"params": {"what": "items", "name": "more.csv"}, "content": "text\nmore\n"},
    ("POST", "/review/items/{item}/correction"): {"json": {"answer": 0, "seen": 0}},
    ("POST", "/review/items/{item}/undo"): {"json": {"seen": 1}},
    ("POST", "/review/items/{item}/flags/close"): {},
    ("POST", "/items"): {"json": {"items": [{"name": "n", "text": "t"}]}},
    ("POST", "/items/gold"): {"json": {"items": [{"item": "item 0", "gold": "class 0"}]}},
    ("POST", "/import/label-studio"): {"content": "[]"},
    ("POST", "/admin-links"): {"json": {"name": "otto"}},
    ("DELETE", "/admins/{name}"): {},
    ("DELETE", "/people/sessions/{session}"): {},
    ("DELETE", "/items/{item}"): {},
    ("DELETE", "/people/{annotator}/data"): {},
}
LAST = ("/admins/{name}", "/people/{annotator}/data")
NOT_NOTED = {
    ("POST", "/measures"): "a program's figures",
    ("POST", "/items/media"): "as /items, with bytes of a picture",
    ("POST", "/uploads/preview"): "changes nothing",
    ("POST", "/review/items/{item}/notes"): "kept with its author and time",
}


def test_whatever_an_owner_changes_is_noted(site):
    owner = site.signed_in(site.people.admin_link("olga"))
    ada, _ = site.people.invite("ada")
    site.people.make_token("old", None)
    site.signed_in(site.people.admin_link("otto"))
    names = {"annotator": ada, "token": site.people.tokens()[0]["id"], "class_id": 1, "name": "otto", "item": 2}
    names["session"] = owner.get(f"{API}/people/sessions").json()[0]["id"]
    for (method, path), options in sorted(WRITES.items(), key=lambda one: one[0][1] in LAST):
        before = len(read_audit(site.project.store))
        reply = owner.request(method, API + path.format(**names), **options)
        assert reply.status_code < 300, (path, reply.text)
        after = read_audit(site.project.store)
        assert len(after) == before + 1, path
        assert (after[0]["actor"], after[0]["role"]) == ("olga", "owner")
        if path == "/annotators":
            assert "new" not in str({**after[0], "called": None}), "people by their ids: a name may have to go"


def test_no_writing_route_of_owners_is_left_out():
    from fastapi.routing import APIRoute

    from shortlist.annotate.web.api.access import owner, reviewer
    from shortlist.annotate.web.app import ROUTES

    routes = [route for module in ROUTES for route in module.router.routes if isinstance(route, APIRoute)]
    writing = {
        (method, route.path)
        for route in routes
        if {owner, reviewer} & {one.call for one in route.dependant.dependencies}
        for method in route.methods - {"GET"}
    }
    assert writing == {*WRITES, *NOT_NOTED}, "is each of them noted in the audit log?"


def test_the_log_is_read_page_by_page(site):
    owner = site.signed_in(site.people.admin_link("olga"))
    for k in range(5):
        owner.post(f"{API}/annotators", json={"name": f"p{k}"})
    first = owner.get(f"{API}/audit", params={"limit": 2}).json()
    assert [row["subject"] for row in first] == ["annotator 5", "annotator 4"]
    rest = owner.get(f"{API}/audit", params={"before": first[-1]["id"]}).json()
    assert [row["subject"] for row in rest] == ["annotator 3", "annotator 2", "annotator 1"]
    assert rest[0]["action"] == "invite"
