"""Groups files into datasets, on rows that already stand for many files each."""

from lumos.pipeline.grouping.decision import Group, Grouping, group
from lumos.pipeline.grouping.settlement import NOTHING_SETTLED, Settled, Settlement
from lumos.pipeline.grouping.units import Rule

__all__ = ["NOTHING_SETTLED", "Group", "Grouping", "Rule", "Settled", "Settlement", "group"]
