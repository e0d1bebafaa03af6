"""The labelling loop on labelled data, its answers simulated."""

from shortlist.policies.simulation.curves import curves_csv
from shortlist.policies.simulation.economy import Comparison, compare, report, ways
from shortlist.policies.simulation.plot import draw_curves
from shortlist.policies.simulation.simulate import Start

__all__ = ["Comparison", "Start", "compare", "curves_csv", "draw_curves", "report", "ways"]
