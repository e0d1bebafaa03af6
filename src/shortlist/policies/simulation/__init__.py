"""The labelling loop on labelled data with simulated answers: what each way to label would have cost."""

from shortlist.policies.simulation.economy import Comparison
from shortlist.policies.simulation.plot import write_curves
from shortlist.policies.simulation.projecting import project_cost
from shortlist.policies.simulation.simulate import Start

__all__ = ["Comparison", "Start", "project_cost", "write_curves"]
