"""What several reporters say of the columns between the same two datasets, as one."""

from collections.abc import Iterable, Sequence

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType

# A reporter that knows of a view or a copy has looked closer than one that does not.
_CLOSEST: tuple[LineageType, ...] = ("VIEW", "COPIED", "TRANSFORMED")


def closest_type(types: Iterable[LineageType]) -> LineageType:
    """The most telling of some types."""
    return min(types, key=_CLOSEST.index)


def all_mappings(said: Iterable[Sequence[ColumnMapping]]) -> tuple[ColumnMapping, ...]:
    """Every mapping once; one that only names two columns goes where another says more."""
    different = dict.fromkeys(mapping for some in said for mapping in some)
    explained = {_ends(each) for each in different if not _is_bare(each)}
    return tuple(each for each in different if not _is_bare(each) or _ends(each) not in explained)


def all_uses(said: Iterable[Sequence[ColumnUse]]) -> tuple[ColumnUse, ...]:
    """Every use once."""
    return tuple(dict.fromkeys(use for some in said for use in some))


def _ends(mapping: ColumnMapping) -> tuple[str, str]:
    return mapping.upstream, mapping.downstream


def _is_bare(mapping: ColumnMapping) -> bool:
    return mapping == ColumnMapping(upstream=mapping.upstream, downstream=mapping.downstream)
