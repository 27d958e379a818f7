"""Places as units: those together whose paths differ only in values."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

from lumos.model.schema import Schema
from lumos.pipeline.grouping.apart import apart
from lumos.pipeline.grouping.evidence import Columns
from lumos.pipeline.grouping.units import Row, Unit, has_values
from lumos.pipeline.grouping.words import (
    known_words,
)
from lumos.pipeline.placement import ANY_NAME, dissect
from lumos.pipeline.summaries import PlaceSummary
from lumos.pipeline.variables import Template


class SchemasByPrint(Protocol):
    """Schemas by their full fingerprint."""

    def __getitem__(self, full: str, /) -> Schema: ...


def units_of(places: Iterable[PlaceSummary], schemas: SchemasByPrint, *, root: str) -> list[Unit]:
    """Places of one pattern together, unless their columns show that the values name tables."""
    columns = _ColumnsOf(schemas)
    rows: dict[tuple[tuple[str, ...], str, str], list[Row]] = {}
    for place in places:
        first, ending = _taken_apart(place.first_path, place.pattern, root)
        last, _ = _taken_apart(place.last_path, place.pattern, root)
        names = tuple(template.text for template in first)
        row = Row(place, columns[place.full], first, last)
        rows.setdefault((names, ending, place.format), []).append(row)
    return _as_siblings_vary(
        [
            unit
            for (names, ending, format), some in rows.items()
            for unit in apart(Unit(names, ending, format, some))
        ]
    )


def _as_siblings_vary(units: list[Unit]) -> list[Unit]:
    """The units, with values for names of folders that vary beside another table.

    Where one table lies in Line1 to Line4 and another in Line1, the latter may come for others too.
    """
    varying: set[tuple[str, ...]] = set()
    templates = [tuple(template.text for template in unit.rows[0].first) for unit in units]
    for unit, texts in zip(units, templates, strict=True):
        for depth in range(len(unit.folders)):
            if unit.names[depth] == texts[depth] and has_values(texts[depth]):
                varying.add(texts[: depth + 1])
    for unit, texts in zip(units, templates, strict=True):
        if all(rule.name != "unrelated" for rule in unit.rules):
            folders = (
                texts[depth] if texts[: depth + 1] in varying else folder
                for depth, folder in enumerate(unit.folders)
            )
            unit.names = (*folders, unit.stem)
    return units


class _ColumnsOf:
    """Columns by a schema's fingerprint; equal ones are one object."""

    def __init__(self, schemas: SchemasByPrint) -> None:
        self._schemas = schemas
        self._known: dict[str, Columns] = {}
        self._equal: dict[tuple[str, ...], Columns] = {}

    def __getitem__(self, full: str) -> Columns:
        if full not in self._known:
            columns = Columns.of(self._schemas[full])
            key = (*columns.families, *columns.families.values())
            self._known[full] = self._equal.setdefault(key, columns)
        return self._known[full]


def _taken_apart(path: str, pattern: str, root: str) -> tuple[tuple[Template, ...], str]:
    folders, stem, ending = dissect(path, root)
    names = [*folders, stem]
    if ANY_NAME in pattern:
        # Of a crowd any name stands there, whatever the first one is.
        for index, name in enumerate(pattern.split("/")[::-1], start=1):
            if name.startswith(ANY_NAME):
                names[-index] = Template.of_one("name", names[-index].text)
    return tuple(map(_with_words, names)), ending


@lru_cache(maxsize=65536)
def _with_words(template: Template) -> Template:
    """Words of a known kind, such as months and places, become values too."""
    if template.kinds == ("hive",) or template.kinds == ("name",):
        return template
    pieces: list[str] = []
    kinds: list[str] = []
    values: list[str] = []
    known = iter(template.values)
    parts = re.split(r"(\{[a-z-]+\})", template.text)
    for index, piece in enumerate(parts):
        if index % 2:
            pieces.append(piece)
            kinds.append(piece[1:-1])
            values.append(next(known))
            continue
        end = 0
        for kind, start, stop in known_words(piece):
            # In ga4 no state is meant.
            if (index and not start) or (index + 1 < len(parts) and stop == len(piece)):
                continue
            pieces += (piece[end:start], f"{{{kind}}}")
            kinds.append(kind)
            values.append(piece[start:stop])
            end = stop
        pieces.append(piece[end:])
    return Template("".join(pieces), tuple(kinds), tuple(values))
