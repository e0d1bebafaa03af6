"""The figures of the paper's Tables 1-5 (Figure 2 was published without numbers)."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

METHODS = ("sl", "log", "exp", "lw", "rc", "cc", "proden")
"""The methods of Tables 1 and 3-5, by our names, in the paper's order with its own method first."""
SUBSETS = {"table3": ("1-8",), "table4": ("1-6", "5-10", "4-9"), "table5": ("1-4", "4-7", "7-10")}
"""The classes of Tables 3-5, counted from 1."""
PRINTED = {"5-10": "4-9"}
"""Our name of a set of classes -> the paper's. It counts from 1, but its column "4 ~ 9" fits the indices 4..9 counted
from 0 (docs/reproduction.md says why). Classes 4-9 counted from 1 are run as well and compared with nothing."""
UNFIT = tuple(PRINTED.values())
"""Classes as printed, where they are not those of the paper's figures."""
ALL_CLASSES = "1-10"


class Figure(NamedTuple):
    """Test accuracy in percent over trials (the paper's: 5)."""

    mean: float
    std: float | None
    """None for a single trial, which has no spread."""

    def text(self, mean: str = "{}") -> str:
        """`91.64 ± 0.25`, the mean put into a frame.

        >>> Figure(91.641, 0.25).text("**{}**"), Figure(91.641, None).text()
        ('**91.64** ± 0.25', '91.64 (1 trial)')
        """
        framed = mean.format(f"{self.mean:.2f}")
        return f"{framed} (1 trial)" if self.std is None else f"{framed} ± {self.std:.2f}"


@cache
def tables() -> dict[str, Any]:
    """Everything, as in paper_tables.json."""
    content: dict[str, Any] = json.loads((files("shortlist.study.plan") / "paper_tables.json").read_text())
    return content


def figure(title: str | None, classes: str, method: str, size: int | None) -> Figure | None:
    """What the paper reports for a cell; None where it reports nothing.

    Args:
        title: the paper's name of the dataset; None for data it did not use.
        classes: as `1-10` or `5-10`, counted from 1.
        method: our name of the method.
        size: of the shortlist; None for ordinary labels.

    >>> figure("Fashion", "1-10", "sl", 5)
    Figure(mean=90.89, std=0.26)
    """
    content = tables()
    if title is None or classes in UNFIT:
        return None
    classes = PRINTED.get(classes, classes)
    if method in ("ol", "ol-ovr"):
        found = content["table2"]["cells"]["OL"].get(title) if classes == ALL_CLASSES else None
    elif classes == ALL_CLASSES:
        found = content["table1"]["cells"].get(title, {}).get(method.upper(), {}).get(str(size))
    else:
        cells: dict[str, Any] = next((t["cells"][classes] for t in content.values() if classes in t["cells"]), {})
        found = cells.get(title, {}).get(method.upper()) if cells.get("size") == size else None
    return None if found is None else Figure(*found)


def subset_size(classes: str) -> int:
    """The size of the shortlist the paper uses on some of the classes: half of them."""
    classes = PRINTED.get(classes, classes)
    return next(int(t["cells"][classes]["size"]) for t in tables().values() if classes in t["cells"])
