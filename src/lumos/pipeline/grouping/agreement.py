"""How far columns of several units agree, and whether that says anything."""

from collections.abc import Sequence
from typing import Final

from lumos.pipeline.grouping.units import Unit, clusters
from lumos.pipeline.grouping.words import OF_LOOKUPS

# So many columns without names are evidence, and so many names with columns of their own.
_FEWEST_UNNAMED: Final = 3
_FEWEST_TABLES: Final = 3
_OF_MEASURES: Final = frozenset({"value", "val", "v", "measurement", "metric_value", "obs_value"})


def have_columns(units: Sequence[Unit]) -> bool:
    """Whether there are columns that may be the same: more than one."""
    return all(len(columns.families) > 1 for unit in units for columns in unit.columns)


def share_columns(units: Sequence[Unit]) -> bool:
    """Whether names do not go along with columns: some have the same ones, and more than one."""
    if not have_columns(units):
        return False
    return len(clusters(units, lambda pair: pair.same)) < len(units)


def are_evidence(units: Sequence[Unit]) -> bool:
    """Whether equal columns say anything: more than a code's name, or a few without names."""
    return have_columns(units) and not any(
        OF_LOOKUPS.issuperset(columns.families)
        or (not columns.are_named and len(columns.families) < _FEWEST_UNNAMED)
        for unit in units
        for columns in unit.columns
    )


def hold_measures(units: Sequence[Unit]) -> bool:
    """Whether a name may tell what is measured, since the columns do not."""
    return any(_OF_MEASURES & columns.families.keys() for unit in units for columns in unit.columns)


def have_same_columns(units: Sequence[Unit]) -> bool:
    """Whether columns are evidence at all, and as good as equal."""
    return are_evidence(units) and len(clusters(units, lambda pair: pair.same)) == 1


def have_own_columns(units: Sequence[Unit]) -> bool:
    """Whether most have columns that none of the others has, as tables of one publisher do."""
    if len(units) < _FEWEST_TABLES:
        return False
    return 2 * len(clusters(units, lambda pair: pair.grown)) > len(units)
