"""Who breaks when a dataset changes, where, and why."""

from lumos.analysis.impact.downstream import Downstream, Making, Reasoner
from lumos.analysis.impact.propagation import impact_of
from lumos.analysis.impact.removal import impact_of_removal
from lumos.analysis.impact.values import (
    ColumnImpact,
    Coverage,
    DatasetImpact,
    Impact,
    Reason,
)

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
