"""What the owner tells people before they begin: a file beside the settings, changed while people work."""

from shortlist.annotate.project.project import INSTRUCTIONS, Project, private_file
from shortlist.annotate.project.sources import check_instructions


def instructions_of(project: Project) -> str:
    """The text; empty where there is none."""
    try:
        # edited by hand it may hold anything, and nobody could sign in
        return (project.folder / INSTRUCTIONS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def set_instructions(project: Project, text: str) -> None:
    """Put another text in its place; an empty one takes it away."""
    path, text = project.folder / INSTRUCTIONS, check_instructions(text)
    if not text:
        path.unlink(missing_ok=True)
        return
    with private_file(path) as file:
        file.write(text.encode())
