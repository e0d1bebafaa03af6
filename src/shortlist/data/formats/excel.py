"""The first sheet of an Excel workbook (.xlsx), which is XML in a zip archive and needs no package to read."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from shortlist.errors import InputError
from shortlist.internal.reasons import reason

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
WORKBOOK, LINKS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
SHEET_LINK = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
LARGEST = 1 << 30
"""Bytes that one part may have when unpacked."""


def read_excel(path: Path) -> dict[str, list[Any]]:
    """The columns of the first sheet, named by its first row; None where a cell is empty."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            texts = _shared(_part(archive, "xl/sharedStrings.xml", path)) if "xl/sharedStrings.xml" in names else []
            rows = _rows(_part(archive, _first_sheet(archive, path), path), texts)
    except (InputError, OSError):
        raise
    except Exception as error:  # damaged bytes make zipfile and the parser raise nearly anything
        raise InputError(f"{path} is not an Excel workbook, or is damaged: {reason(error)}") from error
    rows = [row for row in rows if any(value is not None for value in row.values())]
    if not rows:
        raise InputError(f"{path} is empty, expected a row of column names")
    header = {column: str(name) for column, name in rows[0].items() if name is not None}
    if len(set(header.values())) != len(header):
        raise InputError(f"{path} names a column twice: {', '.join(header.values())}")
    return {name: [row.get(column) for row in rows[1:]] for column, name in header.items()}


def _first_sheet(archive: zipfile.ZipFile, path: Path) -> str:
    """The part with the first sheet as people see them, or with the lowest number if the workbook does not say."""
    names = archive.namelist()
    if WORKBOOK in names and LINKS in names:
        files = {link.get("Id"): link.get("Target", "") for link in _part(archive, LINKS, path)}
        for sheet in _part(archive, WORKBOOK, path).iter(f"{MAIN}sheet"):
            target = files.get(sheet.get(SHEET_LINK), "")
            part = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
            if part in names:
                return part
    sheets = sorted((n for n in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n)), key=_number)
    if not sheets:
        raise InputError(f"{path} holds no sheet")
    return sheets[0]


def _part(archive: zipfile.ZipFile, name: str, path: Path) -> ElementTree.Element:
    if archive.getinfo(name).file_size > LARGEST:
        raise InputError(f"{path}: too large for a table in Excel's form: save it as .csv")
    content = archive.read(name)
    if b"<!DOCTYPE" in content[:1000]:  # no workbook has one, and entities could make it endless
        raise InputError(f"{path}: expected a plain workbook")
    return ElementTree.fromstring(content)


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _shared(root: ElementTree.Element) -> list[str]:
    """The texts that cells refer to. A text in several styles is in pieces; phonetic readings are left out."""
    found = []
    for entry in root.findall(f"{MAIN}si"):
        pieces = [entry, *entry.findall(f"{MAIN}r")]
        found.append("".join(t.text or "" for piece in pieces for t in piece.findall(f"{MAIN}t")))
    return found


def _rows(root: ElementTree.Element, texts: list[str]) -> list[dict[str, Any]]:
    """Column letters -> value, row by row."""
    rows = []
    for line in root.iter(f"{MAIN}row"):
        cells: dict[str, Any] = {}
        for place, cell in enumerate(line.findall(f"{MAIN}c")):  # a cell may not say its column
            column = re.sub(r"\d", "", cell.get("r") or "") or f"cell {place}"
            cells[column] = _value(cell, texts)
        rows.append(cells)
    return rows


def _value(cell: ElementTree.Element, texts: list[str]) -> Any:
    kind, content = cell.get("t", "n"), cell.find(f"{MAIN}v")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(f"{MAIN}t"))
    if content is None or content.text is None:
        return None
    if kind == "b":
        return content.text == "1"
    if kind == "s":
        return texts[int(content.text)]
    if kind == "n":
        number = float(content.text)
        return int(number) if number.is_integer() else number
    return content.text
