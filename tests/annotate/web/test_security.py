"""Security: what requests and imported data must not be able to do; who comes in: test_sign_in.py."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from sqlalchemy import text

from shortlist.annotate.project.classes import add_classes
from shortlist.annotate.project.importing import add_items
from shortlist.annotate.project.sources import Source, find_sources
from shortlist.annotate.web.limits import Limits

PACKAGE = Path(__file__).parents[3] / "src" / "shortlist" / "annotate"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def png(path: Path | None = None, **options) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (9, 7), "red").save(out, options.pop("format", "PNG"), **options)
    if path is not None:
        path.write_bytes(out.getvalue())
    return out.getvalue()


# -- XSS through imported choices, labels, HTML, SVG, file names


def test_names_and_texts_stay_text(make_site):
    site = make_site(items=0, classes=0, size=1)
    add_classes(site.project, [EVIL, "b"])
    add_items(site.project, [Source(EVIL, EVIL, text=EVIL)])
    admin, ada = site.admin(), site.annotator("ada <b>")
    answer = ada.post("/api/v1/next", json={})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["questions"][0]["item"]["text"] == EVIL, "kept as it is, and escaped by whoever shows it"
    for path in ("/", "/join", "/admin"):
        assert EVIL not in admin.get(path).text
    for module in (PACKAGE / "web" / "pages" / "static").glob("*.js"):
        content = module.read_text()
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval("):
            assert way not in content, f"{module.name} turns text into HTML"
    for template in (PACKAGE / "web" / "pages").glob("*.html"):
        assert "|safe" not in template.read_text().replace(" ", "")


def test_images_are_decoded_and_written_anew(make_project, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x010E] = "SECRET PLACE"
    png(folder / "photo.jpg", format="JPEG", exif=exif)
    (folder / "two-in-one.png").write_bytes(png() + b"<script>alert(1)</script>")
    (folder / "fake.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    (folder / "page.png").write_bytes(b"<!doctype html><script>alert(1)</script>")
    (folder / "drawing.svg").write_text("<svg/>")
    (folder / "page.html").write_text("<script>alert(1)</script>")
    project = make_project(items=0)
    report = add_items(project, find_sources(folder))
    assert report.added == 2
    assert sorted(name for name, _ in report.skipped) == ["drawing.svg", "fake.png", "page.html", "page.png"]
    stored = [path for path in project.media.rglob("*") if path.is_file()]
    assert sorted(path.suffix for path in stored) == [".jpg", ".png"]
    for path in stored:
        assert b"SECRET" not in path.read_bytes()
        assert b"script" not in path.read_bytes()


def test_a_picture_that_was_erased_is_not_shown_in_the_place_of_another(make_site):
    """Browsers keep pictures by their addresses for a day."""
    site = make_site(items=0)
    admin, ada = site.admin(), site.annotator("ada")
    raw = {"content-type": "application/octet-stream"}
    for name in ("p", "q"):
        admin.post(f"/api/v1/items/media?name={name}", content=png(), headers=raw)
    held = [ada.post("/api/v1/next", json={}).json()["questions"][0] for _ in range(2)]
    assert held[0]["item"] == held[1]["item"], "kept while it is the same question"
    assert admin.delete("/api/v1/items/1").status_code == 200
    (other,) = ada.post("/api/v1/next", json={}).json()["questions"]
    assert other["item"]["media"] != held[0]["item"]["media"]
    assert ada.get(other["item"]["media"]).status_code == 200


def test_reviewers_see_the_picture_that_an_item_has_now(make_site):
    """A browser asks whether what it has is still it."""
    site = make_site(items=0)
    admin, raw = site.admin(), {"content-type": "application/octet-stream"}
    admin.post("/api/v1/items/media?name=p", content=png(), headers=raw)
    first = admin.get("/api/v1/items/1/media")
    assert first.headers["cache-control"] == "private, no-cache"
    mine = {"if-none-match": first.headers["etag"]}
    again = admin.get("/api/v1/items/1/media", headers=mine)
    assert (again.status_code, again.content) == (304, b"")
    admin.delete("/api/v1/items/1")
    assert admin.get("/api/v1/items/1/media", headers=mine).status_code == 404
    admin.post("/api/v1/items/media?name=q", content=png(), headers=raw)
    assert admin.get("/api/v1/items/2/media", headers=mine).status_code == 200


def test_media_comes_with_its_type_and_no_sniffing(make_site):
    site = make_site(items=0)
    admin, ada = site.admin(), site.annotator("ada")
    raw = {"content-type": "application/octet-stream"}
    admin.post("/api/v1/items/media?name=p", content=png(), headers=raw)
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    got = ada.get(q["item"]["media"])
    assert got.headers["content-type"] == "image/png"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in got.headers["content-security-policy"]


# -- CSP only reported


@pytest.mark.parametrize("path", ["/", "/admin", "/static/annotate.js", "/api/v1/session", "/nowhere", "/static/../x"])
def test_the_policy_is_enforced_everywhere(make_site, path):
    headers = make_site().client().get(path).headers
    policy = headers["content-security-policy"]
    for rule in (
        "default-src 'self'",
        "script-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    assert "content-security-policy-report-only" not in headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_pages_need_nothing_the_policy_forbids():
    handler = re.compile(r"<[^>]*\son\w+\s*=")
    assert handler.search('<p class="a"\n  onclick="go()">')
    templates = list((PACKAGE / "web" / "pages").glob("*.html"))
    assert len(templates) > 4
    for template in templates:
        content = template.read_text()
        assert "style=" not in content
        assert not handler.search(content), "a handler in the page"
        assert content.count("<script") == content.count('<script type="module" src="{{ static }}/')


# -- SSRF by URL import


def test_the_server_fetches_no_url(make_site):
    """Nothing that the server loads can open a connection, and an address is just a text."""
    clients = {"robots.py", "demo.py"}  # the demo's other processes, which talk to the server
    for module in PACKAGE.rglob("*.py"):
        content = module.read_text()
        if module.name in clients or module == PACKAGE / "__init__.py":  # the facade names what it loads on demand
            continue
        assert not any(f"annotate.{Path(name).stem}" in content for name in clients), module.name
        for client in (
            "urllib.request",
            "import httpx",
            "import requests",
            "http.client",
            "create_connection",
            "urlopen",
        ):
            assert client not in content, f"{module.name} could fetch a URL"
    site = make_site(items=0)
    body = {"items": [{"name": "http://169.254.169.254/", "text": "http://169.254.169.254/latest"}]}
    assert site.admin().post("/api/v1/items", json=body).json()["added"] == 1
    refused = site.admin().post("/api/v1/items", json={"items": [{"name": "x", "url": "http://localhost/"}]})
    assert refused.status_code == 422


# -- path traversal


def test_media_is_served_by_id_from_below_one_root(make_site, tmp_path):
    site = make_site(items=0)
    admin, ada = site.admin(), site.annotator("ada")
    raw = {"content-type": "application/octet-stream"}
    for name in ("a", "b", "c"):
        admin.post(f"/api/v1/items/media?name={name}", content=png(), headers=raw)
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"SECRET")
    rows = {}
    with site.project.store.write() as connection:
        for item, file in connection.execute(text("SELECT id, file FROM items ORDER BY id")).all():
            rows[item] = site.project.media / file
        first, second, third = rows
        outside = {first: "../secret.key", second: str(secret)}
        for item, path in outside.items():
            connection.execute(text("UPDATE items SET file = :path WHERE id = :item"), {"path": path, "item": item})
    rows[third].unlink()
    rows[third].symlink_to(secret)
    for item in rows:
        refused = admin.get(f"/api/v1/items/{item}/media")
        assert refused.status_code == 404
        assert b"SECRET" not in refused.content
    for path in (
        "/static/../../app.py",
        "/static/%2e%2e/app.py",
        "/api/v1/media/..%2f..%2fsecret.key",
        "/static//etc/passwd",
    ):
        assert ada.get(path).status_code in (404, 422)


def test_links_are_not_followed_at_import(make_project, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    png(tmp_path / "private.png")
    (folder / "link.png").symlink_to(tmp_path / "private.png")
    (folder / "loop").symlink_to(folder)
    project = make_project(items=0)
    report = add_items(project, find_sources(folder))
    assert report.added == 0
    assert dict(report.skipped)["link.png"] == "a link: links are not followed"


def test_an_annotator_sees_only_media_they_were_asked_about(make_site):
    site = make_site(items=0)
    admin, ada, bob = site.admin(), site.annotator("ada"), site.annotator("bob")
    raw = {"content-type": "application/octet-stream"}
    admin.post("/api/v1/items/media?name=p", content=png(), headers=raw)
    (q,) = ada.post("/api/v1/next", json={}).json()["questions"]
    assert ada.get(q["item"]["media"]).status_code == 200
    assert bob.get(q["item"]["media"]).status_code == 404
    assert site.client().get(q["item"]["media"]).status_code == 401


# -- pickle


def test_nothing_is_unpickled(tmp_path):
    for module in PACKAGE.rglob("*.py"):
        content = module.read_text()
        for way in ("import pickle", "joblib", "torch.load", "allow_pickle", "yaml.load", "marshal"):
            assert way not in content
    script = (
        "import sys, shortlist.annotate.web.app, shortlist.annotate.web.serve\n"
        "import shortlist.annotate.formats.label_studio_answers\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ})


# -- no limits


def test_bodies_are_limited(make_site):
    site = make_site(options={"limits": Limits(body_bytes=1000, upload_bytes=5000)})
    admin = site.admin()
    assert admin.post("/api/v1/classes", json={"names": ["x" * 400] * 5}).status_code == 413

    def drip():
        for _ in range(100):
            yield b"x" * 100

    assert admin.post("/api/v1/classes", content=drip()).status_code == 413, "also when the length is not stated"
    raw = {"content-type": "application/octet-stream"}
    assert admin.post("/api/v1/items/media?name=x", content=b"x" * 6000, headers=raw).status_code == 413


def test_a_bomb_of_an_image_is_refused(make_project, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("1", (8_000, 8_000)).save(folder / "bomb.png")
    report = add_items(make_project(items=0), find_sources(folder))
    assert report.added == 0
    assert "pixels" in report.skipped[0][1] or "Bomb" in report.skipped[0][1]
