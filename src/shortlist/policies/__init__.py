"""Which items to ask next, and which shortlists: policies, the labelling loop, its snapshots and its cost.

Importing this loads numpy only; training loads scipy, features of items scikit-learn, when they are used.
"""

from shortlist.policies.choose import Policy, choose_one
from shortlist.policies.experts import Expert, experts_from_scores
from shortlist.policies.features.loop_data import loop_data
from shortlist.policies.features.words import make_features
from shortlist.policies.given import read_known
from shortlist.policies.loop import Loop
from shortlist.policies.names import clarity, names_expert
from shortlist.policies.noise import Log, Mistakes, rectangle
from shortlist.policies.plan import plan_labelling, plan_limits
from shortlist.policies.saved.snapshot import Snapshot
from shortlist.policies.scores import read_scores
from shortlist.policies.settings import LoopSettings
from shortlist.policies.time_model import TimeModel

__all__ = [
    "Expert",
    "Log",
    "Loop",
    "LoopSettings",
    "Mistakes",
    "Policy",
    "Snapshot",
    "TimeModel",
    "choose_one",
    "clarity",
    "experts_from_scores",
    "loop_data",
    "make_features",
    "names_expert",
    "plan_labelling",
    "plan_limits",
    "read_known",
    "read_scores",
    "rectangle",
]
