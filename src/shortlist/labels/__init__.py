"""Shortlists and answers: `StochasticLabels`, how they are drawn, checked, stored and joined to data."""

from shortlist.labels.checks import NONE
from shortlist.labels.draw import answer_shortlists
from shortlist.labels.files import LabelsFile
from shortlist.labels.joining import join
from shortlist.labels.stochastic import StochasticLabels

__all__ = ["NONE", "LabelsFile", "StochasticLabels", "answer_shortlists", "join"]
