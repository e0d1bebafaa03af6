"""The pages: shells without data, which ask the API for what they show; in the language of whoever reads them.

A language is one file, `pages/words/LANGUAGE.json`, with the same keys as English. What English alone has (the owner's
pages) stays English in other languages.
"""

import json
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape

from shortlist.annotate.web.static import PLACE, static_files

PAGES = Path(__file__).parent / "pages"
HOMES = {"/": "annotate.html", "/join": "join.html", "/admin": "admin.html"}
MISSING = "missing.html"
ENGLISH = "en"
OWNERS = "admin"
"""How the owner's pages begin, which are in English."""
CHOSEN = "shortlist_language"
"""The cookie of whoever chose another language than the browser's."""

Words = dict[str, str]
Rendered = dict[str, str]
"""A page, by language."""


def languages(folder: Path = PAGES / "words") -> dict[str, Words]:
    """The words of every language, English first."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    english = found.pop(ENGLISH)
    return {ENGLISH: english} | {name: {**english, **words} for name, words in found.items()}


@cache
def render(name: str) -> Rendered:
    """A page in every language; its scripts find the words in `<meta name="words">`."""
    templates = Environment(loader=FileSystemLoader(PAGES), autoescape=select_autoescape())
    all_words = languages()
    if name.startswith(OWNERS):
        all_words = {ENGLISH: all_words[ENGLISH]}
    names = {language: words["language_name"] for language, words in all_words.items()}
    return {
        language: templates.get_template(name).render(
            words={**words, "language": language},
            spoken=json.dumps({key[3:]: text for key, text in words.items() if key.startswith("js_")}),
            languages=names,
            static=static_files().address,
        )
        for language, words in all_words.items()
    }


def preferred(request: Request, known: Rendered) -> str:
    """The language that was chosen, or the first of the browser's that we have, or English."""
    wishes = [request.cookies.get(CHOSEN, "")]
    accepted = [part.partition(";q=") for part in request.headers.get("accept-language", "").split(",")[:20]]
    wishes += [tag.strip() for tag, _, weight in sorted(accepted, key=lambda part: -_weight(part[2]))]
    return next((short for wish in wishes if (short := wish.partition("-")[0].lower()) in known), ENGLISH)


def _weight(text: str) -> float:
    try:
        return float(text or 1)
    except ValueError:
        return 0.0


def page(rendered: Rendered, status: int = 200) -> Callable[[Request], Awaitable[HTMLResponse]]:
    """The route of a page."""

    async def send(request: Request) -> HTMLResponse:
        html = rendered[preferred(request, rendered)]
        return HTMLResponse(html, status_code=status, headers={"vary": "accept-language, cookie"})

    return send


def add_pages(app: FastAPI) -> None:
    """The pages and what they load."""
    for path, name in HOMES.items():
        app.add_api_route(path, page(render(name)), include_in_schema=False, response_model=None)
    app.mount(PLACE, static_files())
