"""Search: Lumos splits text into words, the database finds them, Lumos ranks what was found.

A query asks tier by tier: its words in the name, in name and path, anywhere. That is quick where
scoring every match is not, and it is what people mean.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, TextClause, delete, insert, select, text

from lumos.model.dataset import Dataset
from lumos.model.urn import Urn
from lumos.store import tables

_SEGMENT: Final = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)*")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")
_COLUMNS: Final = ("name", "path", "fields", "words", "facets")
_WEIGHTS: Final = {"name": "A", "path": "B", "fields": "C", "words": "D"}
# Name, then name and path, then anywhere but the facets.
_TIERS: Final = (("name",), ("name", "path"), ("name", "path", "fields", "words"))
_MOST_CANDIDATES: Final = 200
_MOST_WORDS: Final = 16


class Facets(msgspec.Struct, frozen=True, kw_only=True):
    """What hits must have beside the words."""

    platform: str | None = None
    owner: str | None = None
    tag: str | None = None
    format: str | None = None

    def tokens(self) -> list[str]:
        return [
            _facet(name, value)
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        ]


def words(text: str) -> list[str]:
    """The words of a text: parts of paths, names and camel case, and each whole name as well."""
    found: dict[str, None] = {}
    for segment in _SEGMENT.findall(_plain(text)):
        for word in _words_of_segment(segment):
            found[word] = None
    return list(found)


def query_words(query: str) -> list[str]:
    """The words that must all be found: a compound counts by its parts."""
    runs = (re.split(r"[_-]+", segment) for segment in _SEGMENT.findall(_plain(query)))
    found = dict.fromkeys(_word(run) for parts in runs for run in parts)
    return list(found)[:_MOST_WORDS]


def _plain(text: str) -> str:
    """The text without accents."""
    if text.isascii():
        return text
    marks = unicodedata.normalize("NFKD", text)
    return "".join(mark for mark in marks if not unicodedata.combining(mark))


@lru_cache(maxsize=65_536)
def _words_of_segment(segment: str) -> tuple[str, ...]:
    runs = re.split(r"[_-]+", segment)
    parts = [part for run in runs for part in (run, *_PART.findall(run))]
    return tuple(dict.fromkeys(map(_word, (*parts, "".join(runs)))))


def _word(text: str) -> str:
    """Small ASCII letters and digits alone, so that no database splits a word its own way."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(mark if mark.isascii() else f"x{ord(mark):x}x" for mark in folded)


def _facet(name: str, value: str) -> str:
    """A facet is one word that no text contains, since it holds no letter in its middle."""
    letters = "".join(mark for mark in _word(_plain(value)) if mark.isalnum())
    return f"0{name}0{letters}"


def entry_of(dataset: Dataset) -> dict[str, str]:
    """What search sees of a dataset."""
    urn = Urn.parse(dataset.urn)
    owners = dataset.ownership.owners if dataset.ownership else ()
    tags = dataset.governance.tags if dataset.governance else ()
    terms = dataset.governance.terms if dataset.governance else ()
    documented = dataset.documentation
    prose = msgspec.structs.astuple(documented) if documented else ()
    fields = dataset.schema.fields if dataset.schema else ()
    said = [field.description for field in fields if field.description]
    names = [owner.name for owner in owners]
    facets = [
        _facet("platform", dataset.platform),
        _facet("format", dataset.format or ""),
        *(_facet("owner", name) for name in names),
        *(_facet("tag", tag) for tag in tags),
    ]
    return {
        "urn": dataset.urn,
        "name": _joined([dataset.name]),
        "path": _joined([dataset.platform, *urn.path]),
        "fields": _joined(field.name for field in fields),
        "words": _joined([*filter(None, prose), *said, *names, *tags, *terms]),
        "facets": " ".join(facets),
    }


def _joined(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(word for each in texts for word in words(each)))


def remove(connection: Connection, urn: str) -> None:
    """Takes a dataset out of the index."""
    table = tables.search_entry
    row = connection.execute(select(table).where(table.c.urn == urn)).one_or_none()
    if row is None:
        return
    if connection.dialect.name == "sqlite":
        # An index over external content must be told what it forgets.
        connection.execute(_FORGET, [_indexed(row._mapping)])
    connection.execute(delete(table).where(table.c.urn == urn))


def clear(connection: Connection) -> None:
    """Empties the index."""
    connection.execute(delete(tables.search_entry))
    if connection.dialect.name == "sqlite":
        connection.execute(text("INSERT INTO search_index (search_index) VALUES ('rebuild')"))


def add(connection: Connection, datasets: Iterable[Dataset]) -> None:
    """Puts datasets that are not there yet into the index."""
    rows = [entry_of(dataset) for dataset in datasets]
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(_ADD_WITH_VECTOR, [_with_vector(row) for row in rows])
        return
    first = connection.execute(
        text("SELECT coalesce(max(id), 0) + 1 FROM search_entry")
    ).scalar_one()
    numbered = [{"id": number, **row} for number, row in enumerate(rows, start=first)]
    connection.execute(insert(tables.search_entry), numbered)
    connection.execute(_INDEX, [_indexed(row) for row in numbered])


_INDEX: Final = text(
    "INSERT INTO search_index (rowid, name, path, fields, words, facets) "
    "VALUES (:id, :name, :path, :fields, :words, :facets)"
)
_FORGET: Final = text(
    "INSERT INTO search_index (search_index, rowid, name, path, fields, words, facets) "
    "VALUES ('delete', :id, :name, :path, :fields, :words, :facets)"
)
_ADD_WITH_VECTOR: Final = text(
    "INSERT INTO search_entry (urn, name, path, fields, words, facets, vector) "
    "VALUES (:urn, :name, :path, :fields, :words, :facets, cast(:vector AS tsvector))"
)


def _indexed(row: Any) -> dict[str, Any]:
    return {"id": row["id"], **{column: row[column] for column in _COLUMNS}}


def _with_vector(row: dict[str, str]) -> dict[str, str]:
    """The row with its words as PostgreSQL weighs them; a weight hangs on a position."""
    # Facets share the weight of words; no text can contain one.
    texts = {**row, "words": f"{row['words']} {row['facets']}"}
    marked = [
        f"{word}:{position}{weight}"
        for position, (column, weight) in enumerate(_WEIGHTS.items(), start=1)
        for word in texts[column].split()
    ]
    return {**row, "vector": " ".join(marked)}


class Hits(msgspec.Struct, frozen=True):
    """The best URNs first, and how many there are in all."""

    urns: tuple[str, ...]
    total: int


def find(connection: Connection, query: str, facets: Facets, *, limit: int) -> Hits:
    """The datasets that hold every word of the query, the last letters of each left open."""
    wanted = query_words(query)
    required = facets.tokens()
    if not wanted and not required:
        return Hits((), 0)
    candidates: dict[str, tuple[int, str]] = {}
    complete = False
    for tier, columns in enumerate(_TIERS if wanted else _TIERS[-1:]):
        match = _match(connection, wanted, columns, required)
        asked = {"q": match, "most": _MOST_CANDIDATES}
        rows = connection.execute(_candidates(connection), asked).all()
        for row in rows:
            candidates.setdefault(row.urn, (tier, row.name))
        complete = len(rows) < _MOST_CANDIDATES and tier == len(_TIERS) - 1
        if len(candidates) >= max(limit, _MOST_CANDIDATES):
            break
    complete = complete or (not wanted and len(candidates) < _MOST_CANDIDATES)
    total = len(candidates) if complete else _count(connection, wanted, required)
    ranked = sorted(candidates, key=lambda urn: _rank(urn, candidates[urn], wanted))
    return Hits(tuple(ranked[:limit]), total)


def _rank(urn: str, candidate: tuple[int, str], wanted: list[str]) -> tuple[Any, ...]:
    tier, name = candidate
    whole = max(map(len, name.split()), default=1)
    covered = sum(map(len, wanted)) / whole
    return (tier, -covered, len(urn), urn)


_POSTGRES_CANDIDATES: Final = text(
    "SELECT urn, name FROM search_entry WHERE vector @@ cast(:q AS tsquery) ORDER BY id LIMIT :most"
)
_SQLITE_CANDIDATES: Final = text(
    "SELECT urn, name FROM search_entry WHERE id IN "
    "(SELECT rowid FROM search_index WHERE search_index MATCH :q LIMIT :most)"
)
_POSTGRES_COUNT: Final = text(
    "SELECT count(*) FROM search_entry WHERE vector @@ cast(:q AS tsquery)"
)
_SQLITE_COUNT: Final = text("SELECT count(*) FROM search_index WHERE search_index MATCH :q")


def _candidates(connection: Connection) -> TextClause:
    if connection.dialect.name == "postgresql":
        return _POSTGRES_CANDIDATES
    return _SQLITE_CANDIDATES


def _count(connection: Connection, wanted: list[str], required: list[str]) -> int:
    match = _match(connection, wanted, _TIERS[-1], required)
    is_postgres = connection.dialect.name == "postgresql"
    counted = connection.execute(_POSTGRES_COUNT if is_postgres else _SQLITE_COUNT, {"q": match})
    return int(counted.scalar_one())


def _match(
    connection: Connection, wanted: list[str], columns: tuple[str, ...], required: list[str]
) -> str:
    """The match expression; words are letters and digits alone, so nothing needs escaping."""
    if connection.dialect.name == "postgresql":
        marks = "".join(_WEIGHTS[column] for column in columns)
        return " & ".join(
            [*(f"'{word}':*{marks}" for word in wanted), *(f"'{facet}':D" for facet in required)]
        )
    parts = [f'facets : "{facet}"' for facet in required]
    if wanted:
        both = " AND ".join(f'"{word}"*' for word in wanted)
        parts.append(f"{{{' '.join(columns)}}} : ({both})")
    return " AND ".join(parts)
