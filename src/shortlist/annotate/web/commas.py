"""Tables as spreadsheets save them where a comma is for decimals: separated by semicolons, or by tabs."""

import csv
from pathlib import Path


def put_commas(path: Path) -> None:
    """Write such a .csv anew with commas, which everything here reads; any other file is left as it is."""
    if path.suffix.lower() != ".csv":
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            head = file.readline()
            mark = next((one for one in ";\t" if one in head), None)
            if mark is None or "," in head:
                return
            file.seek(0)
            written = path.with_suffix(".commas")
            with written.open("w", encoding="utf-8", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows(csv.reader(file, delimiter=mark))
    except (UnicodeDecodeError, csv.Error):
        return  # whoever reads it says what is wrong with it
    written.replace(path)
