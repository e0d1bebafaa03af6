"""The page of results in the docs: ours, and nobody else's."""

import re
import shutil
from pathlib import Path

import pytest

from shortlist.study.report.page import MARKS, RESULTS_PAGE, write_report

from .conftest import write


def results_page(root: Path) -> Path:
    page = root / RESULTS_PAGE
    page.parent.mkdir()
    return page


def test_the_results_page_shows_what_the_ledger_holds(fashion, tmp_path):
    page, folder = results_page(tmp_path), tmp_path / "results"
    page.write_text("before\n" + "old".join(MARKS) + "\nafter\n")
    report = write_report(write(folder, fashion[:200]))
    text = page.read_text()
    assert text.startswith(f"before\n{MARKS[0]}\n\n| Fashion | l = 8 |")
    assert text.endswith(f"\n\n{MARKS[1]}\nafter\n")
    assert text.count("| SL, ours |") == 1
    row = next(line for line in text.splitlines() if line.startswith("| SL, ours |"))
    assert row in report.text.read_text()
    write_report(folder)
    assert page.read_text() == text
    page.write_text("nothing to fill in")
    write_report(folder)
    assert page.read_text() == "nothing to fill in"


def test_a_folder_of_ones_own_leaves_the_results_page_alone(fashion, tmp_path):
    page, said = results_page(tmp_path), []
    page.write_text("old".join(MARKS))
    for name in ("mine", "results-quick"):
        write_report(write(tmp_path / name, fashion[:5]), said.append)
    assert (page.read_text(), said) == ("old".join(MARKS), [])
    for _ in range(2):  # the second time nothing changes
        write_report(write(tmp_path / "results", fashion[:5]), said.append)
    (line,) = said
    assert str(RESULTS_PAGE) in line
    assert "renewed" in line


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("mine", "--recipes mine --results rerun"),
        ("rerun", "--recipes rerun --results rerun-again"),
        ("my runs", "--recipes &#39;my runs&#39; --results rerun"),
    ],
)
def test_commands_name_the_folder_they_are_of(fashion, tmp_path, monkeypatch, folder, words):
    monkeypatch.chdir(tmp_path)
    page = write_report(write(Path(folder), fashion[:1])).page.read_text()
    assert re.findall(r"--trials 1 (--recipes [^<]*)<", page) == [words] * page.count("--recipes")
    assert f"settings chosen in <code>{folder}</code>" in page


def test_our_results_page_is_up_to_date(tmp_path):
    """What stands between its marks is what `shortlist report results` would put there."""
    root = Path(__file__).parents[3]
    text = (root / RESULTS_PAGE).read_text()
    assert all(text.count(mark) == 1 for mark in MARKS)
    page = results_page(tmp_path)
    page.write_text("".join(MARKS))
    (tmp_path / "results").mkdir()
    ledger = root / "results" / "ledger"
    if ledger.is_dir():
        shutil.copytree(ledger, tmp_path / "results" / "ledger")
    else:
        (tmp_path / "results" / "ledger").mkdir()
    write_report(tmp_path / "results")
    assert page.read_text() in text
