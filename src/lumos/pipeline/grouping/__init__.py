"""Groups files into datasets, on rows that already stand for many files each."""

from lumos.pipeline.grouping.datasets import Group, Grouping, Rule, group
from lumos.pipeline.grouping.state import GroupingState, LegacyGrouping
from lumos.pipeline.grouping.suggestions import suggest_joins

__all__ = [
    "Group",
    "Grouping",
    "GroupingState",
    "LegacyGrouping",
    "Rule",
    "group",
    "suggest_joins",
]
