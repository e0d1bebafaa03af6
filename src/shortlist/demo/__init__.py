"""The demo: the idea in two minutes on scikit-learn's digits, a table and a page with two pictures.

`rows` says what is compared, `grid` trains it, `choose` chose the settings, and `report` writes the page.
"""

from shortlist.demo.report import run_demo

__all__ = ["run_demo"]
