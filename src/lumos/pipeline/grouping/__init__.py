"""Groups files into datasets, on rows that already stand for many files each."""

from lumos.pipeline.grouping.decision import Group, Grouping, group
from lumos.pipeline.grouping.settlement import NOTHING_SETTLED, Settlement, key_of
from lumos.pipeline.grouping.units import Rule

__all__ = ["NOTHING_SETTLED", "Group", "Grouping", "Rule", "Settlement", "group", "key_of"]
