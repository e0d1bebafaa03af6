"""Who comes in, from where, and what each may do: secrets, links, sessions, cookies, requests of other sites."""

import socket
import stat
from urllib.parse import urlsplit

import pytest

from shortlist.annotate.project.project import SECRET, SETTINGS, Project
from shortlist.annotate.web.serve import Address, listen
from shortlist.errors import InputError

# -- hard-coded secrets, default accounts, open sign-up


def test_secrets_are_made_at_first_start_for_the_owner_only(make_project):
    one, two = make_project(items=1), make_project(items=1)
    assert one.secret != two.secret
    assert len(one.secret) >= 32
    assert stat.S_IMODE(one.folder.stat().st_mode) == 0o700
    for name in (SECRET, SETTINGS):
        assert stat.S_IMODE((one.folder / name).stat().st_mode) == 0o600
    (one.folder / SECRET).chmod(0o644)
    with pytest.raises(InputError, match="0600"):
        Project.open(one.folder)


def test_nobody_is_in_without_a_link(make_site):
    site = make_site()
    stranger = site.client()
    document = stranger.get("/api/v1/openapi.json").json()
    tried = 0
    for path, methods in document["paths"].items():
        for method in methods:
            if (method, path) in (("post", "/api/v1/session"), ("get", "/healthz")):
                continue
            address = path.replace("{name}", "answers.csv").replace("{", "").replace("}", "")
            address = address.replace("annotators/annotator", "annotators/1").replace("tokens/token", "tokens/1")
            address = address.replace("media/question", "media/1").replace("items/item/", "items/1/")
            assert stranger.request(method, address, json={}).status_code == 401, (method, path)
            tried += 1
    assert tried >= 18
    for secret in ("", "admin", "x" * 500, site.people.invite("eve")[1][:-2] + "xx"):
        assert stranger.post("/api/v1/session", json={"secret": secret}).status_code in (401, 422)


def test_the_admins_link_works_once(make_site):
    site = make_site()
    link = site.people.admin_link()
    assert site.signed_in(link).get("/api/v1/status").status_code == 200
    assert site.client().post("/api/v1/session", json={"secret": link}).status_code == 401


def test_links_and_sessions_end(make_project):
    from shortlist.annotate.problems import Unauthorized
    from shortlist.annotate.project.people import DAY, People
    from shortlist.annotate.web.auth import Auth

    from ..conftest import Clock

    project, clock = make_project(), Clock()
    people = People(project, clock)
    auth = Auth(project, people)
    link, _ = people.admin_link(), people.invite("ada")
    session, _ = auth.sign_in(people.admin_link())
    assert auth.who(session, "session").role == "owner"
    with pytest.raises(Unauthorized):
        auth.who(session, "token")
    clock.now += 31 * DAY
    with pytest.raises(Unauthorized):
        auth.who(session, "session")
    with pytest.raises(Unauthorized):
        auth.sign_in(link)


def test_a_new_invitation_ends_the_old_link_for_good(make_site):
    """Protects the serial number that a link carries: with each new link, and with removal, all earlier ones end."""
    site = make_site()

    def works(secret):
        return site.client().post("/api/v1/session", json={"secret": secret}).status_code == 200

    ada, first = site.people.invite("ada")
    assert works(first)
    assert works(first), "on any of their devices"
    second = site.people.renew_invite(ada)
    assert (works(first), works(second)) == (False, True)
    third = site.people.renew_invite(ada)
    assert (works(first), works(second), works(third)) == (False, False, True)
    site.people.remove(ada)
    fourth = site.people.renew_invite(ada)
    assert [works(secret) for secret in (first, second, third, fourth)] == [False, False, False, True]


def test_a_link_of_another_project_does_not_work(make_site):
    one, two = make_site(), make_site()
    one.people.invite("ada")
    assert two.client().post("/api/v1/session", json={"secret": one.people.invite("bob")[1]}).status_code == 401


def test_an_annotator_is_no_admin(make_site):
    site = make_site()
    ada = site.annotator("ada")
    for method, path in (
        ("get", "/status"),
        ("post", "/annotators"),
        ("post", "/tokens"),
        ("get", "/tokens"),
        ("get", "/export/answers.csv"),
        ("post", "/items"),
        ("post", "/classes"),
        ("post", "/admin-links"),
        ("post", "/measures"),
        ("post", "/import/label-studio"),
        ("delete", "/annotators/1"),
        ("delete", "/annotators/1/answers"),
    ):
        assert ada.request(method, f"/api/v1{path}", json={}).status_code == 403, path


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_links_of_a_server_on_all_addresses_can_be_opened(everywhere):
    try:
        listener, address = listen(Address(host=everywhere, port=0, allow_plain_http=True))
    except InputError:
        pytest.skip(f"this machine cannot listen on {everywhere}")
    with listener:
        where = urlsplit(address.url)
        assert where.hostname != everywhere
        socket.create_connection((where.hostname, where.port), timeout=5).close()


def test_only_this_machine_unless_told_otherwise(tmp_path):
    assert Address().host == "127.0.0.1"
    Address(host="localhost")
    Address(host="::1")
    for public in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InputError, match="public address"):
            Address(host=public)
        Address(host=public, allow_plain_http=True)
    pem = tmp_path / "pem"
    pem.touch()
    assert Address(host="0.0.0.0", certificate=pem, key=pem).secure
    with pytest.raises(InputError):
        Address(certificate=pem)


def test_cookies_are_closed_to_scripts_and_other_sites(make_site):
    for tls in (False, True):
        site = make_site(options={"tls": tls})
        answer = site.client().post("/api/v1/session", json={"secret": site.people.admin_link()})
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert ("secure" in cookie) == tls
        assert ("strict-transport-security" in answer.headers) == tls


# -- CSRF


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Shortlist": "1", "Origin": "https://evil.example"},
        {"X-Shortlist": "1", "Origin": "null"},
        {"X-Shortlist": "1", "Origin": "http://127.0.0.1:9999"},
        {"X-Shortlist": "1", "Sec-Fetch-Site": "cross-site"},
        {"X-Shortlist": "1", "Sec-Fetch-Site": "same-site"},
        {"Authorization": "Basic eDp5"},
    ],
)
def test_a_write_from_another_site_is_refused(make_site, headers):
    site = make_site()
    ada = site.annotator("ada")
    ada.headers.pop("X-Shortlist")
    refused = ada.post("/api/v1/next", json={}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "cross_site")
    own = {"X-Shortlist": "1", "Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
    assert ada.post("/api/v1/next", json={}, headers=own).status_code == 200


def test_people_come_in_by_the_address_of_a_proxy_that_does_not_pass_it_on(make_site):
    """As nginx, unless told: the Host is the one it asks for itself."""
    site = make_site(options={"public_url": "https://label.example", "tls": True})
    _, secret = site.people.invite("ada")
    for origin, status in (("https://label.example", 200), ("https://evil.example", 403), ("null", 403)):
        sent = {"X-Shortlist": "1", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
        assert site.client().post("/api/v1/session", json={"secret": secret}, headers=sent).status_code == status


def test_no_other_origin_is_let_in(make_site):
    site = make_site()
    answer = site.client().options(
        "/api/v1/next", headers={"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    )
    assert "access-control-allow-origin" not in answer.headers


def test_guessing_links_is_slowed_down(make_site):
    site = make_site()
    guesser = site.client()
    seen = [guesser.post("/api/v1/session", json={"secret": f"guess {i}"}).status_code for i in range(15)]
    assert seen[:10] == [401] * 10
    assert seen[-1] == 429
    assert guesser.post("/api/v1/session", json={"secret": site.people.admin_link()}).status_code == 200
