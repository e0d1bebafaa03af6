"""Shortlists and answers: `StochasticLabels`, how they are drawn, checked, stored and joined to data."""

from shortlist.labels.checks import NONE
from shortlist.labels.stochastic import StochasticLabels

__all__ = ["NONE", "StochasticLabels"]
