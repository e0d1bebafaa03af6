"""Scripts and styles, from memory and packed once.

Pages name them below an address that changes whenever one of them does, so browsers keep them for good. Under any other
address they are checked each time, so that a page that was open during an upgrade finds them, too.
"""

import gzip
import hashlib
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

FOLDER = Path(__file__).parent / "pages" / "static"
PLACE = "/static"
KEPT = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
SMALL = 500
"""Bytes: packing less is not worth it."""


class StaticFiles:
    """ASGI app for the files of one folder, to be mounted at `PLACE`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {path.name: _File(path) for path in sorted(folder.iterdir())}
        tags = "".join(file.tag for file in self._files.values())
        self.address = f"{PLACE}/{hashlib.sha256(tags.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One file, packed for those who can unpack it."""
        before, _, name = scope["path"].rpartition("/")
        file = self._files.get(name) if before == PLACE or before.rpartition("/")[0] == PLACE else None
        if file is None:
            raise HTTPException(404)
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"allow": "GET, HEAD"})
        response = file.answer(dict(scope["headers"]), kept=before == self.address)
        await response(scope, receive, send)


class _File:
    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        packed = gzip.compress(self.content, mtime=0) if len(self.content) >= SMALL else self.content
        self.packed = packed if len(packed) < len(self.content) else None
        self.tag = f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'
        self.type = TYPES[path.suffix]

    def answer(self, asked: dict[bytes, bytes], kept: bool) -> Response:
        headers = {"etag": self.tag, "vary": "accept-encoding"} | ({"cache-control": KEPT} if kept else {})
        if self.tag.encode() in asked.get(b"if-none-match", b""):
            return Response(status_code=304, headers=headers)
        if self.packed is None or b"gzip" not in asked.get(b"accept-encoding", b""):
            return Response(self.content, headers=headers, media_type=self.type)
        return Response(self.packed, headers={**headers, "content-encoding": "gzip"}, media_type=self.type)


@cache
def static_files() -> StaticFiles:
    """Those of all pages."""
    return StaticFiles()
