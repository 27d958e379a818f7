"""Groups files into datasets, on rows that already stand for many files each."""

from lumos.pipeline.grouping.decision import Group, Grouping, Settled, group
from lumos.pipeline.grouping.units import Rule

__all__ = ["Group", "Grouping", "Rule", "Settled", "group"]
