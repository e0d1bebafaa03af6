"""The demo: the idea in two minutes on scikit-learn's digits, a table and a page with two pictures.

`rows` says what is compared, `grid` trains it, `choose` chose the settings, and `report` writes the page.
"""

from shortlist.demo.report import run_demo, total_epochs
from shortlist.demo.rows import DemoRow
from shortlist.demo.table import result_table

__all__ = ["DemoRow", "result_table", "run_demo", "total_epochs"]
