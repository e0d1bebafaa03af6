"""Backups and the search for damage, of a running project.

A backup on the server's disk is whole: whoever can read it there could read the project's folder as well. One that is
downloaded leaves out what lets people in: sessions and links can be ended, a file in somebody's hands cannot.
"""

import os
import tempfile
import threading
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from shortlist.annotate.problems import Conflict
from shortlist.annotate.project.backup import BACKUPS, back_up, write_backup
from shortlist.annotate.web.api.access import App, OffLoop, Owner, refusals
from shortlist.annotate.web.api.review_models import BackupRow, CheckOut

router = APIRouter(tags=["backups"], route_class=OffLoop, responses=refusals(401, 403, 404, 409))
_one_at_a_time = threading.Lock()


@router.get("/backups")
def backups(app: App, who: Owner) -> list[BackupRow]:
    """Those in the project's folder on the server, the newest first."""
    found = sorted((app.project.folder / BACKUPS).glob("*.zip"), reverse=True)
    return [_row(path) for path in found]


@router.post("/backups", status_code=201)
def make_backup(app: App, who: Owner) -> BackupRow:
    """Back up into the project's folder on the server, as `serve --backup-every` does. None is removed."""
    if not _one_at_a_time.acquire(blocking=False):
        raise Conflict("backing_up", "a backup is being made")
    try:
        made = _row(back_up(app.project, None))
    finally:
        _one_at_a_time.release()
    app.audit(who, "back up", made.name)
    return made


@router.get("/backup", response_class=FileResponse, responses={200: {"content": {"application/zip": {}}}})
def download(app: App, who: Owner) -> FileResponse:
    """Everything but the secret, sessions, tokens and the database's address; `restore` makes a new secret."""
    handle, temporary = tempfile.mkstemp(prefix="shortlist-backup-", suffix=".zip")
    os.close(handle)
    path = Path(temporary)
    try:
        write_backup(app.project, path, secrets=False)
    except BaseException:
        path.unlink()
        raise
    app.audit(who, "download backup")
    return FileResponse(
        path, media_type="application/zip", filename="backup.zip", background=BackgroundTask(path.unlink)
    )


@router.get("/check")
def check(app: App, who: Owner) -> CheckOut:
    """What `shortlist annotate check` finds: damage, counters that do not fit the answers, files that are gone."""
    return CheckOut(problems=app.project.check())


def _row(path: Path) -> BackupRow:
    found = path.stat()
    return BackupRow(name=path.name, bytes=found.st_size, at=found.st_mtime)
