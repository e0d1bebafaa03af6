"""The labelling loop on labelled data, its answers simulated."""

from shortlist.policies.simulation.economy import Comparison
from shortlist.policies.simulation.plot import write_curves
from shortlist.policies.simulation.simulate import Start

__all__ = ["Comparison", "Start", "write_curves"]
