"""Pages in the language of whoever reads them; one file a language."""

import re
from pathlib import Path

import pytest

from shortlist.annotate import queue
from shortlist.annotate.web.views import languages


@pytest.mark.parametrize("name", ["en", "de"])
def test_every_language_has_the_words_of_every_page(name):
    english, words = languages()["en"], languages()[name]
    assert words.keys() == english.keys()
    for key, text in words.items():
        assert text.strip(), key
        wanted = {part.split("}")[0] for part in english[key].split("{")[1:]}
        assert {part.split("}")[0] for part in text.split("{")[1:]} == wanted, key


def test_what_the_server_refuses_annotators_has_words_in_every_language():
    sources = "".join(path.read_text("utf-8") for path in Path(queue.__path__[0]).glob("*.py"))
    codes = set(re.findall(r'(?:Conflict|Invalid|NotFound)\("(\w+)"', sources)) - {"no_annotator"}  # an owner's request
    assert {"lease_lost", "no_skip"} <= codes
    for name in ("en", "de"):
        assert {f"js_error_{code}" for code in codes} <= languages()[name].keys()


@pytest.mark.parametrize(
    ("accepted", "cookie", "language"),
    [
        (None, None, "en"),
        ("de-AT,de;q=0.9,en;q=0.8", None, "de"),
        ("fr,en;q=0.3,de;q=0.5", None, "de"),
        ("en-GB,de;q=0.9", None, "en"),
        ("de", "en", "en"),
        ("en", "de", "de"),
        ("de;q=x,;;,", "zz", "de"),
    ],
)
def test_pages_speak_the_language_of_whoever_asks(make_site, accepted, cookie, language):
    headers = {"accept": "text/html"} | ({} if accepted is None else {"accept-language": accepted})
    headers |= {} if cookie is None else {"cookie": f"shortlist_language={cookie}"}
    client = make_site().client()
    for path, status in (("/", 200), ("/join", 200), ("/nowhere", 404)):
        got = client.get(path, headers=headers)
        assert got.status_code == status
        assert f'<html lang="{language}">' in got.text
        assert ("Diese Seite braucht JavaScript" in got.text) == (language == "de" and status == 200)
    assert got.headers["vary"] == "accept-language, cookie"


def test_the_owners_pages_say_that_they_are_in_english(make_site):
    got = make_site().client().get("/admin", headers={"accept-language": "de"})
    assert '<html lang="en">' in got.text
