"""Who breaks when a dataset changes, where, and why."""

from lumos.impact.rules.downstream import Downstream, Making, Reasoner
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.removal import impact_of_removal
from lumos.impact.rules.values import ColumnImpact, Coverage, DatasetImpact, Impact, Reason

__all__ = [
    "ColumnImpact",
    "Coverage",
    "DatasetImpact",
    "Downstream",
    "Impact",
    "Making",
    "Reason",
    "Reasoner",
    "impact_of",
    "impact_of_removal",
]
