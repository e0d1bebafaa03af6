"""`shortlist report`: report.html, report.md and the pictures, from a folder's ledger alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from shortlist.internal.files import atomic_write
from shortlist.internal.provenance import short
from shortlist.internal.template import render
from shortlist.study.plan.variants import MethodVariant
from shortlist.study.report import markdown
from shortlist.study.report.content import Content, gather
from shortlist.study.run.ledger import Row

STUDY, RESULTS_PAGE = "results", Path("docs", "results.md")
"""The study's own folder, and the page beside it that shows its main tables between the marks."""
MARKS = ("<!-- written by `shortlist report results` -->", "<!-- to here -->")


class Written(NamedTuple):
    """The files of a report, and the numbers of its runs and cells."""

    page: Path
    text: Path
    runs: int
    cells: int
    missing: int


def write_report(results: Path, say: Callable[[str], None] = lambda line: None) -> Written:
    """Read the ledger under `results` and write the report beside it."""
    content = gather(results, say)
    page, text = results / "report.html", results / "report.md"
    (results / "figures").mkdir(exist_ok=True)
    for name, svg in (content.sizes | content.curves).items():
        atomic_write(results / "figures" / name, svg + "\n")
    atomic_write(text, markdown.report_text(content))
    if _into_results_page(results, markdown.results_text(content)):
        say(f"the study's block of {RESULTS_PAGE} beside {results} was renewed")
    atomic_write(page, _page(content, results))
    return Written(page, text, len(content.runs), content.cells, sum(part.cells for part in content.not_run))


def _into_results_page(results: Path, text: str) -> bool:
    """Write the main tables between the marks of the page beside the study's own folder; True if that changed it."""
    folder = results.resolve()
    path = folder.parent / RESULTS_PAGE
    if folder.name != STUDY or not path.is_file():  # runs of one's own, in another folder, do not belong there
        return False
    old = path.read_text()
    before, begin, rest = old.partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    new = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    if not (begin and end) or new == old:
        return False
    atomic_write(path, new)
    return True


def _page(content: Content, folder: Path) -> str:
    return render(
        "shortlist.study.report",
        {
            "number": _number,
            "signed": markdown.signed,
            "percent": _percent,
            "plain": _plain,
            "short": short,
            "variant": _variant,
        },
        content=content,
        folder=folder,
        sizes=[Markup(svg) for svg in content.sizes.values()],
        curves=[Markup(svg) for svg in content.curves.values()],
        searches=sorted(path.name for path in folder.glob("search-*.md")) if content.searched else [],
        explanation=markdown.EXPLANATION,
        beyond_explanation=markdown.BEYOND,
        epochs_explanation=markdown.EPOCHS,
    )


def _number(figure: Any, bold: bool = False) -> Markup:
    return Markup("–" if figure is None else figure.text("<strong>{}</strong>" if bold else "{}"))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def _variant(row: Row) -> str:
    """The method of a row with its additions, as on the command line."""
    return MethodVariant.from_row(row).text


def _plain(options: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items())
