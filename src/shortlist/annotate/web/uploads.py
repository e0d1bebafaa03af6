"""Files that an owner uploads: read in beside the requests, so that a browser can show how far it is."""

import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shortlist.annotate.problems import NotFound
from shortlist.annotate.project.additions import Additions, add_to_project, preview
from shortlist.annotate.project.importing import ImportOutcome
from shortlist.annotate.project.project import Project
from shortlist.annotate.web.logs import log_fault
from shortlist.errors import InputError

What = Literal["items", "classes", "gold", "known", "scores", "instructions"]
KEEP = 20


@dataclass
class Upload:
    """One file on its way into the project."""

    id: int
    state: Literal["running", "done", "failed"] = "running"
    done: int = 0
    total: int = 0
    outcome: ImportOutcome = field(default_factory=ImportOutcome)
    message: str = ""


class Uploads:
    """The latest uploads of this server."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._numbers = itertools.count(1)
        self._kept: dict[int, Upload] = {}

    def look(self, what: What, name: str, content: bytes, **options: Any) -> ImportOutcome:
        """What the file would do; `options` are those of `Additions`."""
        with _stored(name, content) as path:
            return _plainly(path, lambda: preview(self.project, Additions(**{what: path, **options})))

    def begin(self, what: What, name: str, content: bytes, **options: Any) -> Upload:
        """Read the file in, in a thread of its own."""
        upload = Upload(next(self._numbers))
        self._kept[upload.id] = upload
        for old in list(self._kept)[:-KEEP]:
            del self._kept[old]
        threading.Thread(target=self._run, args=(upload, what, name, content, options), daemon=True).start()
        return upload

    def get(self, number: int) -> Upload:
        """How far an upload is."""
        if number not in self._kept:
            raise NotFound("no_upload", f"there is no upload {number} (any more)")
        return self._kept[number]

    def _run(self, upload: Upload, what: What, name: str, content: bytes, options: dict[str, Any]) -> None:
        def progress(done: int, total: int) -> None:
            upload.done, upload.total = done, total

        try:
            with _stored(name, content) as path:
                additions = Additions(**{what: path, **options})
                upload.outcome = _plainly(path, lambda: add_to_project(self.project, additions, progress))
            upload.state = "done"
        except InputError as error:
            upload.state, upload.message = "failed", str(error)
        except Exception as error:  # whatever it is: the browser must hear of it
            log_fault(error, "upload", what)
            upload.state, upload.message = "failed", "the server has a problem: nothing more was read in"


@contextmanager
def _stored(name: str, content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="shortlist-upload-") as folder:
        path = Path(folder) / f"upload{Path(name).suffix.lower()[:10]}"
        path.write_bytes(content)
        yield path


def _plainly(path: Path, act: Callable[[], ImportOutcome]) -> ImportOutcome:
    """Refusals without the path: whoever uploaded the file does not know where it lies here."""
    try:
        return act()
    except InputError as error:
        raise InputError(
            str(error).replace(f"{path}: ", "").replace(str(path), "the file").replace(": give --text-column", "")
        ) from error
