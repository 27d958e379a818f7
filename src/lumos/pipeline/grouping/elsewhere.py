"""Names that were found to be values in one place are values in others too."""

from collections.abc import Iterable, Iterator, Sequence

from lumos.pipeline.grouping.union import one
from lumos.pipeline.grouping.units import Rule, Unit, clusters
from lumos.pipeline.grouping.values import PIECES
from lumos.pipeline.grouping.words import looks_like_table
from lumos.pipeline.placement import ANY_NAME

_Key = tuple[object, ...]


def told_elsewhere(units: Sequence[Unit]) -> list[Unit]:
    """The units, those as one that differ in a name which tells values of one kind elsewhere.

    Where clients/acme and clients/globex are one dataset, so are plan_acme and plan_globex.
    """
    known = [values for unit in units for values in _values(unit)]
    if not known:
        return list(units)
    families: dict[_Key, dict[str, Unit]] = {}
    for unit in units:
        for key, value in _ways_to_differ(unit):
            if any(value in values for values in known):
                families.setdefault(key, {})[value] = unit
    left = dict.fromkeys(units)
    found: list[Unit] = []
    for family in families.values():
        told = {value: unit for value, unit in family.items() if unit in left}
        if len(told) > 1 and any(told.keys() <= values for values in known):
            for cluster in clusters(list(told.values()), lambda pair: pair.similar):
                if len(cluster) > 1:
                    for unit in cluster:
                        del left[unit]
                    shown = ", ".join(sorted(told)[:3])
                    found += one(
                        cluster, Rule("values", f"elsewhere, the names are values ({shown})")
                    )
    return [*left, *found]


def _values(unit: Unit) -> Iterator[frozenset[str]]:
    """The names of files or folders that a unit was put together from, as far as they are words."""
    for index, name in enumerate(unit.names):
        if name == ANY_NAME:
            texts = {row.first[index].text for row in unit.rows if len(row.first) > index}
            words = frozenset(_word(text) for text in texts)
            if len(words) > 1 and "" not in words:
                yield words


def _word(text: str) -> str:
    is_name = len(text) > 1 and text.isalpha() and not looks_like_table(text)
    return text.lower() if is_name else ""


def _ways_to_differ(unit: Unit) -> Iterable[tuple[_Key, str]]:
    """Each word of its path that may be a value, and everything beside it."""
    for index, folder in enumerate(unit.folders):
        if word := _word(folder):
            names = (*unit.names[:index], ANY_NAME, *unit.names[index + 1 :])
            yield (names, unit.ending, unit.format), word
    pieces = PIECES.findall(unit.stem)
    for index, piece in enumerate(pieces):
        if len(pieces) > 1 and (word := _word(piece)):
            stem = (*pieces[:index], ANY_NAME, *pieces[index + 1 :])
            yield (unit.folders, stem, unit.ending, unit.format), word
