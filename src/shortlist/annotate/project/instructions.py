"""What annotators read before they begin: a file beside the settings, which may change while people work."""

from shortlist.annotate.project.project import INSTRUCTIONS, Project, private_file
from shortlist.annotate.project.sources import check_instructions


def instructions_of(project: Project) -> str:
    """The text; empty if there is none."""
    try:
        # edited by hand, it may hold anything; that must not keep people from signing in
        return (project.folder / INSTRUCTIONS).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def set_instructions(project: Project, text: str) -> None:
    """Replace the text; an empty one removes it."""
    path, text = project.folder / INSTRUCTIONS, check_instructions(text)
    if not text:
        path.unlink(missing_ok=True)
        return
    with private_file(path) as file:
        file.write(text.encode())
