"""Search: Lumos splits text into words, the database finds them, Lumos ranks what was found.

A query asks tier by tier: the whole name, words in the name, in name and path, anywhere. That is
quick where scoring every match is not, and it is what people mean. A query that finds nothing is
compared with the words of the index, for a suggestion.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec
from sqlalchemy import Connection, TextClause, bindparam, delete, select, text

from lumos.model.dataset import Documentation, Governance, Ownership
from lumos.model.schema import Field
from lumos.model.type_path import nested_parts
from lumos.model.types import parse_type, quoted_name
from lumos.model.urn import SCHEME
from lumos.store import tables

_RUN: Final = re.compile(r"[^\W_]+")
# For text in ASCII, which most names are, the same as `_RUN` in a fraction of the time.
_TO_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalnum()}
_TO_JOINED: Final = {**_TO_SPACES, ord("_"): "_", ord("-"): "_"}
_TO_NOTHING: Final = dict.fromkeys(_TO_SPACES)
_DIGIT: Final = re.compile(r"[0-9]")
_WITHOUT_JOINTS: Final = {ord(mark): None for mark in "_-"}
_COMPOUND: Final = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)+")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")
# Member names in the text of a type; the first alternative passes over the symbols of enums.
_MEMBER: Final = re.compile(r"'(?:[^']|'')*'|(`(?:[^`]|``)*`|\w+):")
_CODE_POINT: Final = re.compile(r"x([0-9a-f]{2,6})x")
_COLUMNS: Final = ("name", "path", "fields", "words", "facets")
_WEIGHTS: Final = {"name": "A", "path": "B", "fields": "C", "words": "D"}
_ANYWHERE: Final = ("name", "path", "fields", "words")
_MOST_CANDIDATES: Final = 60
_MOST_WORDS: Final = 16
_MOST_FIELDS: Final = 20
_MOST_MISSPELT: Final = 3
_SHORTEST_MISSPELT: Final = 3
_MIN_SIMILARITY: Final = 0.7
_BATCH: Final = 5000
# Nobody looks through more, and counting on would take longer than finding.
MOST_COUNTED: Final = 1000


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


def words(text: str) -> set[str]:
    """The words of a text: the parts of paths and names, of camel case each part and the whole."""
    if not text.isascii():
        return set(chain.from_iterable(map(_words_of_run, set(_RUN.findall(_plain(text))))))
    runs = set(text.translate(_TO_SPACES).split())
    if not text.islower():
        return set(chain.from_iterable(map(_words_of_run, runs)))
    mixed = _mixed(runs)
    return runs.union(*map(_words_of_run, mixed)) if mixed else runs


def compounds(text: str) -> list[str]:
    """`userclicks` for user_clicks: what people type who leave the separators out."""
    if not text.isascii():
        found = _COMPOUND.findall(_plain(text))
        return [_word(each.translate(_WITHOUT_JOINTS)) for each in found]
    if "_" not in text and "-" not in text:
        return []
    runs = text.lower().translate(_TO_JOINED).split()
    joined = [run.strip("_") for run in runs if "_" in run]
    return [run.replace("_", "") for run in joined if "_" in run]


def _whole(text: str) -> str:
    """A name as one word, by which it is found at once when it is the whole query."""
    if text.isascii():
        return text.translate(_TO_NOTHING).lower()
    return "".join(map(_word, _RUN.findall(_plain(text))))


def query_words(query: str) -> list[str]:
    """The words that must all be found: a compound counts by its parts."""
    return list(dict.fromkeys(map(_word, _RUN.findall(_plain(query)))))[:_MOST_WORDS]


def _plain(text: str) -> str:
    """The text without accents."""
    if text.isascii():
        return text
    marks = unicodedata.normalize("NFKD", text)
    return "".join(mark for mark in marks if not unicodedata.combining(mark))


@lru_cache(maxsize=262_144)
def _words_of_run(run: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_word, (run, *_PART.findall(run)))))


def _word(text: str) -> str:
    """Small ASCII letters and digits alone, so that no database splits a word its own way."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(mark if mark.isascii() else f"x{ord(mark):x}x" for mark in folded)


@lru_cache(maxsize=4096)
def _facet(name: str, value: str) -> str:
    """A facet is one word that begins as no word of a text does."""
    letters = "".join(mark for mark in _word(_plain(value)) if mark.isalnum())
    return f"0{name}0{letters}"


class SearchedNote(msgspec.Struct, frozen=True, gc=False):
    """As much of what is said of a field inside a column as search sees."""

    description: str | None = None
    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


class SearchedField(msgspec.Struct, frozen=True, gc=False):
    """As much of a field as search sees; decoding the rest of a schema would take its time."""

    name: str
    type: str = ""
    description: str | None = None
    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    nested: tuple[SearchedNote, ...] = ()


class SearchedSchema(msgspec.Struct, frozen=True):
    """As much of a schema as search sees."""

    fields: tuple[SearchedField, ...] = ()


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """As much of a dataset as search sees."""

    urn: str
    name: str
    platform: str
    format: str | None
    schema: SearchedSchema = SearchedSchema()
    documentation: Documentation = Documentation()
    ownership: Ownership = Ownership()
    governance: Governance = Governance()


decode_schema: Final = msgspec.json.Decoder(SearchedSchema).decode

ASPECTS: Final = ("documentation", "ownership", "governance")


def _entry(dataset: Searched) -> dict[str, Any]:
    urn, name, fields = dataset.urn, dataset.name, dataset.schema.fields
    path = (unquote(urn) if "%" in urn else urn)[len(SCHEME) :]
    folder, _, last = path.rpartition("/")
    prose = _prose(dataset)
    above = list(map(_segment, folder.split("/")))
    own = _joined(name)
    words_in_path = [own if last == name else _joined(last), *[each[0] for each in above]]
    compound = compounds(last if name in last else f"{name} {last}")
    for _, its_compounds in above:
        compound += its_compounds
    facets = [f"2{_whole(name)}", *[f"1{each}" for each in compound], *_facets(dataset)]
    return {
        "urn": urn,
        "name": own,
        "path": " ".join(words_in_path),
        "fields": _joined(" ".join(chain.from_iterable(map(_field_names, fields)))),
        "words": _joined(" ".join(prose)) if prose else "",
        "facets": " ".join(facets),
    }


def _field_names(field: SearchedField) -> tuple[str, ...]:
    if "STRUCT" not in field.type:
        return (field.name,)
    return (field.name, *_member_names(field.type))


@lru_cache(maxsize=4096)
def _member_names(type: str) -> tuple[str, ...]:
    """The names inside a type, at any depth, from its text: parsing it would take longer."""
    return tuple(dict.fromkeys(filter(None, _MEMBER.findall(type))))


@lru_cache(maxsize=65_536)
def _segment(text: str) -> tuple[str, list[str]]:
    """The words and the compounds of a folder's name, which many datasets share."""
    return _joined(text), compounds(text)


def _prose(dataset: Searched) -> list[str]:
    said = list(_said_of_fields(dataset.schema))
    documented = dataset.documentation
    written = (documented.description, documented.business_context, documented.domain)
    owners = [owner.name for owner in dataset.ownership.owners]
    governance = dataset.governance
    return [*filter(None, written), *said, *owners, *governance.tags, *governance.terms]


def _said_of_fields(schema: SearchedSchema) -> Iterator[str]:
    for field in schema.fields:
        spoken_of: tuple[SearchedField | SearchedNote, ...] = (field, *field.nested)
        for each in spoken_of:
            if each.description:
                yield each.description
            yield from each.tags
            yield from each.terms


def _tags(dataset: Searched) -> Iterator[str]:
    """The tags of a dataset and of its fields."""
    yield from dataset.governance.tags
    for field in dataset.schema.fields:
        yield from field.tags
        for note in field.nested:
            yield from note.tags


def _facets(dataset: Searched) -> list[str]:
    return [
        _facet("platform", dataset.platform),
        _facet("format", dataset.format or ""),
        *[_facet("owner", owner.name) for owner in dataset.ownership.owners],
        *[_facet("tag", tag) for tag in dict.fromkeys(_tags(dataset))],
    ]


def _joined(text: str) -> str:
    if not (text.isascii() and text.islower()):
        return " ".join(words(text))
    # Small letters are split by any database as Lumos splits them; only `day2` needs its parts.
    if not _DIGIT.search(text):
        return text
    mixed = _mixed(text.translate(_TO_SPACES).split())
    return " ".join([text, *chain.from_iterable(map(_words_of_run, mixed))]) if mixed else text


def _mixed(runs: Iterable[str]) -> list[str]:
    return [run for run in runs if not (run.isalpha() or run.isdigit())]


def remove(connection: Connection, urns: Sequence[str]) -> None:
    """Takes datasets out of the index."""
    table = tables.search_entry
    rows = connection.execute(select(table).where(table.c.urn.in_(urns))).all()
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        # An index over external content must be told what it forgets.
        for forget in _FORGET:
            connection.execute(forget, [_indexed(row._mapping) for row in rows])
    connection.execute(delete(table).where(table.c.urn.in_(urns)))


def add(connection: Connection, datasets: Iterable[Searched]) -> None:
    """Puts datasets that are not there yet into the index."""
    numbered = _insert(connection, map(_entry, datasets))
    if numbered and connection.dialect.name == "sqlite":
        for index in _INDEX:
            connection.execute(index, [_indexed(row) for row in numbered])


def refill(connection: Connection, datasets: Iterable[Searched]) -> int:
    """Makes the whole index anew from datasets; gives how many they were."""
    for forget in _FORGET_ALL if connection.dialect.name == "sqlite" else ():
        connection.execute(forget)
    connection.execute(delete(tables.search_entry))
    entries, count = map(_entry, datasets), 0
    pending: Future[None] | None = None
    # SQLite indexes one batch, which takes no Python, while the words of the next are split.
    with ThreadPoolExecutor(1) as indexer:
        while some := list(islice(entries, _BATCH)):
            if pending is not None:
                pending.result()
            _insert(connection, some)
            pending = indexer.submit(_index, connection, count + 1, count + len(some))
            count += len(some)
    if pending is not None:
        pending.result()
    return count


def _index(connection: Connection, first: int, last: int) -> None:
    for index in _INDEX_RANGE if connection.dialect.name == "sqlite" else ():
        connection.execute(index, {"first": first, "last": last})


def _insert(connection: Connection, entries: Iterable[dict[str, str]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = list(entries)
    if not rows:
        return []
    if connection.dialect.name == "postgresql":
        connection.execute(_ADD_WITH_VECTOR, [_with_vector(row) for row in rows])
        return rows
    first = connection.execute(_NEXT_ID).scalar_one()
    for number, row in enumerate(rows, start=first):
        row["id"] = number
    # Past SQLAlchemy, which would look at every value of the many rows.
    connection.exec_driver_sql(_ADD, rows)
    return rows


_NEXT_ID: Final = text("SELECT coalesce(max(id), 0) + 1 FROM search_entry")
_ADD: Final = (
    "INSERT INTO search_entry (id, urn, name, path, fields, words, facets) "
    "VALUES (:id, :urn, :name, :path, :fields, :words, :facets)"
)
# SQLite has two indexes: a small one over names and paths, which answers most queries, and one
# over everything.
_INDEX: Final = (
    text(
        "INSERT INTO search_names (rowid, name, path, facets) VALUES (:id, :name, :path, :facets)"
    ),
    text(
        "INSERT INTO search_index (rowid, name, path, fields, words, facets) "
        "VALUES (:id, :name, :path, :fields, :words, :facets)"
    ),
)
_FORGET: Final = (
    text(
        "INSERT INTO search_names (search_names, rowid, name, path, facets) "
        "VALUES ('delete', :id, :name, :path, :facets)"
    ),
    text(
        "INSERT INTO search_index (search_index, rowid, name, path, fields, words, facets) "
        "VALUES ('delete', :id, :name, :path, :fields, :words, :facets)"
    ),
)
_FORGET_ALL: Final = (
    text("INSERT INTO search_names (search_names) VALUES ('delete-all')"),
    text("INSERT INTO search_index (search_index) VALUES ('delete-all')"),
)
_INDEX_RANGE: Final = (
    text(
        "INSERT INTO search_names (rowid, name, path, facets) SELECT id, name, path, facets "
        "FROM search_entry WHERE id BETWEEN :first AND :last"
    ),
    text(
        "INSERT INTO search_index (rowid, name, path, fields, words, facets) "
        "SELECT id, name, path, fields, words, facets "
        "FROM search_entry WHERE id BETWEEN :first AND :last"
    ),
)
_ADD_WITH_VECTOR: Final = text(
    "INSERT INTO search_entry (urn, name, path, fields, words, facets, vector) "
    "VALUES (:urn, :name, :path, :fields, :words, :facets, cast(:vector AS tsvector))"
)


def _indexed(row: Any) -> dict[str, Any]:
    return {"id": row["id"], **{column: row[column] for column in _COLUMNS}}


def _with_vector(row: dict[str, str]) -> dict[str, str]:
    """The row with its words as PostgreSQL weighs them; a weight hangs on a position."""
    marked = [
        f"{word}:{position}{weight}"
        for position, (column, weight) in enumerate(_WEIGHTS.items(), start=1)
        for word in words(row[column])
    ]
    # Facets share the weight of words; no text can contain one.
    marked += [f"{facet}:4D" for facet in row["facets"].split()]
    return {**row, "vector": " ".join(marked)}


class Hits(msgspec.Struct, frozen=True):
    """The best URNs first, and how many there are, all of them or at least.

    Counting stops at a thousand, and where names and paths alone fill the answer, at these. With
    the matching fields of each URN that has some, and for no hits what may have been meant.
    """

    urns: tuple[str, ...]
    total: int
    all_counted: bool
    fields: Mapping[str, tuple[str, ...]] = {}
    suggestion: str | None = None


def find(connection: Connection, query: str, facets: Facets, *, limit: int) -> Hits:
    """The datasets that hold every word of the query, the last letters of each left open."""
    wanted = query_words(query)
    required = facets.tokens()
    if not wanted and not required:
        return Hits((), 0, all_counted=True)
    statements = _POSTGRES if connection.dialect.name == "postgresql" else _SQLITE
    most = max(limit, _MOST_CANDIDATES)
    candidates: dict[int, tuple[int, str, str]] = {}
    named: dict[str, Any] = {}
    if wanted:
        named = {
            "whole": _exact(connection, f"2{''.join(wanted)}", required),
            "name": _match(connection, wanted, ("name",), required),
            "path": _match(connection, wanted, ("name", "path"), required),
            "most": most,
        }
        for id, *candidate in connection.execute(statements.named, named).all():
            candidates.setdefault(id, tuple(candidate))
    if len(candidates) >= limit:
        by_name = {"q": named["path"], "most": MOST_COUNTED}
        total = connection.execute(statements.counted, by_name).scalar_one()
        all_counted = False
    else:
        most_counted = max(limit, MOST_COUNTED)
        anywhere = {"q": _match(connection, wanted, _ANYWHERE, required), "most": most_counted}
        ids = [row[0] for row in connection.execute(statements.ids, anywhere).all()]
        others = [id for id in ids if id not in candidates][:most]
        for id, *entry in connection.execute(statements.entries, {"ids": others}).all():
            candidates[id] = (_ELSEWHERE, *entry)
        total = len(ids)
        all_counted = total < most_counted
    ranked = sorted(candidates.values(), key=lambda candidate: _rank(candidate, wanted))
    best = tuple(urn for _, urn, _ in ranked[:limit])
    return Hits(best, max(total, len(candidates)), all_counted)


def matching_fields(schema: SearchedSchema, wanted: Sequence[str]) -> tuple[str, ...]:
    """The paths of the fields that hold the most words of a query, such as `meta.priority`.

    The last name of a path must hold one of the words: `meta` finds the column, not all inside it.
    """
    counted: dict[str, int] = {}
    for field in schema.fields:
        text = f"{field.name} {field.type}" if "STRUCT" in field.type else field.name
        if text.isascii():
            # Looking whether a word can be there takes less time than splitting names into words.
            folded = text.lower()
            for word in wanted:
                if word in folded:
                    break
            else:
                continue
        for path, name in _named_paths(field):
            if _held(name, wanted):
                counted[path] = _held(path, wanted)
    most = max(counted.values(), default=0)
    return tuple(path for path, count in counted.items() if count == most)[:_MOST_FIELDS]


def _named_paths(field: SearchedField) -> Iterator[tuple[str, str]]:
    """A column, and the fields inside it, each as its path and its own name."""
    yield quoted_name(field.name), field.name
    if "STRUCT" in field.type:
        column = Field(name=field.name, type=parse_type(field.type))
        yield from (
            (part.path, part.name) for part in nested_parts(column) if part.name is not None
        )


def _held(name: str, wanted: Sequence[str]) -> int:
    """How many of the wanted words a word of the name begins with."""
    have = words(name)
    return sum(any(word.startswith(each) for word in have) for each in wanted)


def suggest(connection: Connection, query: str, facets: Facets) -> str | None:
    """The query with its unknown words spelt as the nearest words of the index, if that finds any.

    For a query that found nothing; it reads the whole list of words.
    """
    wanted = query_words(query)
    misspelt = [word for word in wanted if not find(connection, word, Facets(), limit=1).total]
    if not 0 < len(misspelt) <= _MOST_MISSPELT:
        return None
    nearest: dict[str, str] = {}
    for word in misspelt:
        if (found := _nearest_word(connection, word)) is None:
            return None
        nearest[word] = found
    corrected = _RUN.sub(lambda run: nearest.get(_word(run[0]), run[0]), _plain(query))
    return corrected if find(connection, corrected, facets, limit=1).total else None


def _nearest_word(connection: Connection, misspelt: str) -> str | None:
    """The word of the index that is spelt most alike, of several the one in most datasets."""
    meant = _readable(misspelt)
    if len(meant) < _SHORTEST_MISSPELT:
        return None
    third = -(-len(misspelt) // 3)
    slack = 2 * len(misspelt) // len(meant)
    # A letter or two wrong, missing or swapped leave one of three pieces as it was.
    asked = {
        "first": misspelt[:third],
        "middle": misspelt[third:-third] or misspelt[:third],
        "last": misspelt[-third:],
        "shortest": len(misspelt) - slack,
        "longest": len(misspelt) + slack + 1,
    }
    statement = _POSTGRES_WORDS if connection.dialect.name == "postgresql" else _SQLITE_WORDS
    ranked: list[tuple[float, int, str]] = []
    compared = SequenceMatcher(autojunk=False)
    compared.set_seq2(meant)
    for token, datasets in connection.execute(statement, asked):
        word = _readable(token.removeprefix("1"))
        if not word[:1].isalpha():
            continue
        compared.set_seq1(word)
        if compared.quick_ratio() >= _MIN_SIMILARITY:
            ranked.append((-compared.ratio(), -datasets, word))
    unlikeness, _, word = min(ranked, default=(0.0, 0, ""))
    return word if -unlikeness >= _MIN_SIMILARITY else None


def _readable(word: str) -> str:
    """A word of the index as people spell it; see `_word`."""
    return _CODE_POINT.sub(lambda code: _letter(int(code[1], 16)) or code[0], word)


def _letter(code_point: int) -> str:
    return chr(code_point) if 127 < code_point < 0x110000 else ""


def _rank(candidate: tuple[int, str, str], wanted: list[str]) -> tuple[Any, ...]:
    tier, urn, name = candidate
    # A name that is the query itself comes before one that only begins with it.
    covered = sum(map(len, wanted)) / max(len(name), 1)
    return (tier, -covered, len(urn), urn)


class _Statements(NamedTuple):
    """The best by name and path, tier by tier, and their number; all that match; some entries."""

    ids: TextClause
    counted: TextClause
    named: TextClause
    entries: TextClause


# The tier of what matches neither by name nor by path.
_ELSEWHERE: Final = 3
_ENTRIES: Final = text("SELECT id, urn, name FROM search_entry WHERE id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)
# The later tiers are only looked into while the earlier ones have not filled the outer limit.
_SQLITE: Final = _Statements(
    ids=text("SELECT rowid FROM search_index WHERE search_index MATCH :q LIMIT :most"),
    counted=text(
        "SELECT count(*) FROM (SELECT 1 FROM search_names WHERE search_names MATCH :q LIMIT :most)"
    ),
    named=text(
        "SELECT entry.id, tier, urn, name FROM ("
        "SELECT rowid AS id, 0 AS tier FROM search_names WHERE search_names MATCH :whole "
        "UNION ALL SELECT rowid, 1 FROM search_names WHERE search_names MATCH :name "
        "UNION ALL SELECT rowid, 2 FROM search_names WHERE search_names MATCH :path "
        "LIMIT :most) AS best JOIN search_entry AS entry ON entry.id = best.id"
    ),
    entries=_ENTRIES,
)
_POSTGRES: Final = _Statements(
    ids=text(
        "SELECT id FROM search_entry WHERE vector @@ cast(:q AS tsquery) ORDER BY id LIMIT :most"
    ),
    counted=text(
        "SELECT count(*) FROM (SELECT 1 FROM search_entry "
        "WHERE vector @@ cast(:q AS tsquery) LIMIT :most) AS found"
    ),
    named=text(
        "SELECT id, tier, urn, name FROM ("
        "SELECT id, 0 AS tier, urn, name FROM search_entry "
        "WHERE vector @@ cast(:whole AS tsquery) "
        "UNION ALL SELECT id, 1, urn, name FROM search_entry "
        "WHERE vector @@ cast(:name AS tsquery) "
        "UNION ALL SELECT id, 2, urn, name FROM search_entry "
        "WHERE vector @@ cast(:path AS tsquery)) AS best ORDER BY tier, id LIMIT :most"
    ),
    entries=_ENTRIES,
)

# Words begin with a letter, names without their separators with a 1; other facets are passed over.
_SQLITE_WORDS: Final = text(
    "SELECT term, doc FROM search_vocabulary "
    "WHERE term >= '1a' AND length(term) BETWEEN :shortest AND :longest "
    "AND (instr(term, :first) OR instr(term, :middle) OR instr(term, :last))"
)
# PostgreSQL has no list of words and goes through the entries; the newest speak for all.
_POSTGRES_WORDS: Final = text(
    "SELECT word, ndoc FROM ts_stat("
    "'SELECT vector FROM search_entry ORDER BY id DESC LIMIT 50000') "
    "WHERE word >= '1a' AND length(word) BETWEEN :shortest AND :longest "
    "AND (strpos(word, :first) > 0 OR strpos(word, :middle) > 0 OR strpos(word, :last) > 0)"
)


def _exact(connection: Connection, facet: str, required: list[str]) -> str:
    """The match expression for facets alone."""
    if connection.dialect.name == "postgresql":
        return " & ".join(f"'{each}':D" for each in (facet, *required))
    return " AND ".join(f'facets : "{each}"' for each in (facet, *required))


def _match(
    connection: Connection, wanted: list[str], columns: tuple[str, ...], required: list[str]
) -> str:
    """The match expression; words are letters and digits alone, so nothing needs escaping."""
    if connection.dialect.name == "postgresql":
        marks = "".join(_WEIGHTS[column] for column in columns)
        found = [f"('{word}':*{marks} | '1{word}':D)" for word in wanted]
        return " & ".join([*found, *(f"'{facet}':D" for facet in required)])
    filter = " ".join(columns)
    found = [f'({{{filter}}} : "{word}"* OR facets : "1{word}")' for word in wanted]
    return " AND ".join([*found, *(f'facets : "{facet}"' for facet in required)])
