"""Full-text search: Lumos splits text into words, the database finds them, Lumos ranks the hits.

Hits are ranked in tiers: datasets whose name equals the query, then those with all words in the
name, in name and path, or anywhere. This is faster than scoring every match. For a query without
hits, similar words of the index are suggested.
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
from lumos.model.json_codec import from_json
from lumos.model.schema import Field
from lumos.model.type_path import nested_parts
from lumos.model.types import parse_type, quoted_name
from lumos.model.urn import SCHEME
from lumos.store import tables

_WORD_RUN: Final = re.compile(r"[^\W_]+")
# `str.translate` is faster than `_WORD_RUN` for ASCII text, and most names are ASCII.
_TO_SPACES: Final = {code: " " for code in range(128) if not chr(code).isalnum()}
_TO_UNDERSCORES: Final = {**_TO_SPACES, ord("_"): "_", ord("-"): "_"}
_TO_EMPTY: Final = dict.fromkeys(_TO_SPACES)
_DIGIT: Final = re.compile(r"[0-9]")
_WITHOUT_SEPARATORS: Final = {ord(separator): None for separator in "_-"}
_COMPOUND: Final = re.compile(r"[^\W_]+(?:[_-]+[^\W_]+)+")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\dA-Za-z_]+")
# Member names in the text of a type; the first alternative skips the symbols of enums.
_MEMBER: Final = re.compile(r"'(?:[^']|'')*'|(`(?:[^`]|``)*`|\w+):")
_CODE_POINT: Final = re.compile(r"x([0-9a-f]{2,6})x")
_COLUMNS: Final = ("name", "path", "fields", "words", "facets")
_WEIGHTS: Final = {"name": "A", "path": "B", "fields": "C", "words": "D"}
_ANYWHERE: Final = ("name", "path", "fields", "words")
_MAX_CANDIDATES: Final = 60
_MAX_WORDS: Final = 16
_MAX_FIELDS: Final = 20
_MAX_MISSPELT: Final = 3
_MIN_MISSPELT_LENGTH: Final = 3
_MIN_SIMILARITY: Final = 0.7
_BATCH: Final = 5000
# Counting stops here: counting more hits would take longer than finding the best ones.
MAX_COUNTED: Final = 1000


class Facets(msgspec.Struct, frozen=True, kw_only=True):
    """Filters that hits must match in addition to the words."""

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
    """The words of a text; camelCase names yield each part and the entire name."""
    if not text.isascii():
        return set(
            chain.from_iterable(map(_words_of_run, set(_WORD_RUN.findall(_without_accents(text)))))
        )
    runs = set(text.translate(_TO_SPACES).split())
    if not text.islower():
        return set(chain.from_iterable(map(_words_of_run, runs)))
    runs_to_split = _with_letters_and_digits(runs)
    return runs.union(*map(_words_of_run, runs_to_split)) if runs_to_split else runs


def compounds(text: str) -> list[str]:
    """Compound names without separators, such as `userclicks` for user_clicks."""
    if not text.isascii():
        found = _COMPOUND.findall(_without_accents(text))
        return [_to_ascii_word(each.translate(_WITHOUT_SEPARATORS)) for each in found]
    if "_" not in text and "-" not in text:
        return []
    runs = text.lower().translate(_TO_UNDERSCORES).split()
    joined = [run.strip("_") for run in runs if "_" in run]
    return [run.replace("_", "") for run in joined if "_" in run]


def _as_one_word(text: str) -> str:
    """The name as one word, to recognize names that equal the query."""
    if text.isascii():
        return text.translate(_TO_EMPTY).lower()
    return "".join(map(_to_ascii_word, _WORD_RUN.findall(_without_accents(text))))


def query_words(query: str) -> list[str]:
    """The words of a query, which must all match; a compound is split into its parts."""
    return list(dict.fromkeys(map(_to_ascii_word, _WORD_RUN.findall(_without_accents(query)))))[
        :_MAX_WORDS
    ]


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))


@lru_cache(maxsize=262_144)
def _words_of_run(run: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_to_ascii_word, (run, *_PART.findall(run)))))


def _to_ascii_word(text: str) -> str:
    """The word in lower-case ASCII letters and digits, which all databases tokenize alike."""
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(
        character if character.isascii() else f"x{ord(character):x}x" for character in folded
    )


# Tokens of the `facets` column: `0`, the name of a facet, `0` and its value; `1` and a compound; or
# `2` and the entire name of a dataset.
@lru_cache(maxsize=4096)
def _facet(name: str, value: str) -> str:
    """The facet as one token, with a prefix that no word of a text has."""
    letters = "".join(
        character for character in _to_ascii_word(_without_accents(value)) if character.isalnum()
    )
    return f"0{name}0{letters}"


class NestedSearchField(msgspec.Struct, frozen=True, gc=False):
    """The annotations of a nested field that search indexes."""

    description: str | None = None
    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


class SearchField(msgspec.Struct, frozen=True, gc=False):
    """The parts of a field that search indexes; decoding only these is faster."""

    name: str
    type: str = ""
    description: str | None = None
    tags: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    nested: tuple[NestedSearchField, ...] = ()


class SearchSchema(msgspec.Struct, frozen=True):
    """The parts of a schema that search indexes."""

    fields: tuple[SearchField, ...] = ()


class SearchDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a dataset that search indexes."""

    urn: str
    name: str
    platform: str
    format: str | None
    schema: SearchSchema = SearchSchema()
    documentation: Documentation = Documentation()
    ownership: Ownership = Ownership()
    governance: Governance = Governance()


decode_schema: Final = msgspec.json.Decoder(SearchSchema).decode

_ASPECT_TYPES: Final[dict[str, Any]] = {
    "documentation": Documentation,
    "ownership": Ownership,
    "governance": Governance,
}


def search_documents(
    connection: Connection, urns: Sequence[str] | None = None
) -> Iterator[SearchDocument]:
    """Read the indexed parts of the given live datasets, or of all live datasets."""
    dataset, aspect = tables.dataset.c, tables.aspect.c
    datasets = (
        select(
            dataset.urn, dataset.name, dataset.platform, dataset.format, tables.schema_body.c.body
        )
        .join_from(tables.dataset, tables.schema_body, isouter=True)
        .where(dataset.state == "live")
    )
    aspect_rows = select(aspect.urn, aspect.name, aspect.body).where(aspect.name.in_(_ASPECT_TYPES))
    if urns is not None:
        datasets = datasets.where(dataset.urn.in_(urns))
        aspect_rows = aspect_rows.where(aspect.urn.in_(urns))
    aspects: dict[str, dict[str, Any]] = {}
    for urn, name, body in connection.execute(aspect_rows):
        aspects.setdefault(urn, {})[name] = from_json(body, _ASPECT_TYPES[name])
    for urn, name, platform, format, body in connection.execute(datasets).all():
        yield SearchDocument(
            urn=urn,
            name=name,
            platform=platform,
            format=format,
            schema=SearchSchema() if body is None else decode_schema(body),
            **aspects.get(urn, {}),
        )


def _index_row(dataset: SearchDocument) -> dict[str, Any]:
    urn, name, fields = dataset.urn, dataset.name, dataset.schema.fields
    path = (unquote(urn) if "%" in urn else urn)[len(SCHEME) :]
    folder, _, last = path.rpartition("/")
    texts = _texts(dataset)
    folders = list(map(_folder_words, folder.split("/")))
    name_words = _to_words(name)
    words_in_path = [
        name_words if last == name else _to_words(last),
        *[each[0] for each in folders],
    ]
    compound = compounds(last if name in last else f"{name} {last}")
    for _, folder_compounds in folders:
        compound += folder_compounds
    facets = [f"2{_as_one_word(name)}", *[f"1{each}" for each in compound], *_facets(dataset)]
    return {
        "urn": urn,
        "name": name_words,
        "path": " ".join(words_in_path),
        "fields": _to_words(" ".join(chain.from_iterable(map(_field_names, fields)))),
        "words": _to_words(" ".join(texts)) if texts else "",
        "facets": " ".join(facets),
    }


def _field_names(field: SearchField) -> tuple[str, ...]:
    if "STRUCT" not in field.type:
        return (field.name,)
    return (field.name, *_member_names(field.type))


@lru_cache(maxsize=4096)
def _member_names(type: str) -> tuple[str, ...]:
    """The names inside a type at any depth, taken from its text because parsing is slower."""
    return tuple(dict.fromkeys(filter(None, _MEMBER.findall(type))))


@lru_cache(maxsize=65_536)
def _folder_words(text: str) -> tuple[str, list[str]]:
    """The words and compounds of a folder name; cached because many datasets share it."""
    return _to_words(text), compounds(text)


def _texts(dataset: SearchDocument) -> list[str]:
    """Descriptions, owners, tags and terms of the dataset and its fields."""
    documentation, governance = dataset.documentation, dataset.governance
    texts = [documentation.description, documentation.business_context, documentation.domain]
    for field in dataset.schema.fields:
        annotated_fields: tuple[SearchField | NestedSearchField, ...] = (field, *field.nested)
        for annotated in annotated_fields:
            texts += [annotated.description, *annotated.tags, *annotated.terms]
    owners = [owner.name for owner in dataset.ownership.owners]
    return [*filter(None, texts), *owners, *governance.tags, *governance.terms]


def _tags(dataset: SearchDocument) -> Iterator[str]:
    """The tags of a dataset and of its fields."""
    yield from dataset.governance.tags
    for field in dataset.schema.fields:
        yield from field.tags
        for annotated in field.nested:
            yield from annotated.tags


def _facets(dataset: SearchDocument) -> list[str]:
    return [
        _facet("platform", dataset.platform),
        _facet("format", dataset.format or ""),
        *[_facet("owner", owner.name) for owner in dataset.ownership.owners],
        *[_facet("tag", tag) for tag in dict.fromkeys(_tags(dataset))],
    ]


def _to_words(text: str) -> str:
    if not (text.isascii() and text.islower()):
        return " ".join(words(text))
    # Every database splits lower-case text as Lumos does, except that `day2` also yields `day`.
    if not _DIGIT.search(text):
        return text
    runs_to_split = _with_letters_and_digits(text.translate(_TO_SPACES).split())
    return (
        " ".join([text, *chain.from_iterable(map(_words_of_run, runs_to_split))])
        if runs_to_split
        else text
    )


def _with_letters_and_digits(runs: Iterable[str]) -> list[str]:
    return [run for run in runs if not (run.isalpha() or run.isdigit())]


def remove(connection: Connection, urns: Sequence[str]) -> None:
    """Remove datasets from the index."""
    table = tables.search_entry
    rows = connection.execute(select(table).where(table.c.urn.in_(urns))).all()
    if not rows:
        return
    if connection.dialect.name == "sqlite":
        # An FTS5 index over external content needs the old values to delete them.
        for statement in _DELETE:
            connection.execute(statement, [_index_parameters(row._mapping) for row in rows])
    connection.execute(delete(table).where(table.c.urn.in_(urns)))


def add(connection: Connection, datasets: Iterable[SearchDocument]) -> None:
    """Add datasets that are not in the index yet."""
    rows = _insert(connection, map(_index_row, datasets))
    if rows and connection.dialect.name == "sqlite":
        for index in _INDEX:
            connection.execute(index, [_index_parameters(row) for row in rows])


def rebuild(connection: Connection, datasets: Iterable[SearchDocument]) -> int:
    """Rebuild the index from all datasets; return their number."""
    for statement in _DELETE_ALL if connection.dialect.name == "sqlite" else ():
        connection.execute(statement)
    connection.execute(delete(tables.search_entry))
    entries, count = map(_index_row, datasets), 0
    pending: Future[None] | None = None
    # SQLite indexes one batch without the GIL while Python splits the words of the next one.
    with ThreadPoolExecutor(1) as indexer:
        while batch := list(islice(entries, _BATCH)):
            if pending is not None:
                pending.result()
            _insert(connection, batch)
            pending = indexer.submit(_index, connection, count + 1, count + len(batch))
            count += len(batch)
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
    # Bypasses SQLAlchemy, which would process every value of the many rows.
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
_DELETE: Final = (
    text(
        "INSERT INTO search_names (search_names, rowid, name, path, facets) "
        "VALUES ('delete', :id, :name, :path, :facets)"
    ),
    text(
        "INSERT INTO search_index (search_index, rowid, name, path, fields, words, facets) "
        "VALUES ('delete', :id, :name, :path, :fields, :words, :facets)"
    ),
)
_DELETE_ALL: Final = (
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


def _index_parameters(row: Any) -> dict[str, Any]:
    return {"id": row["id"], **{column: row[column] for column in _COLUMNS}}


def _with_vector(row: dict[str, str]) -> dict[str, str]:
    """Add a PostgreSQL text vector to a row; weights need positions, so each column has one."""
    lexemes = [
        f"{word}:{position}{weight}"
        for position, (column, weight) in enumerate(_WEIGHTS.items(), start=1)
        for word in words(row[column])
    ]
    # Facets have the weight of `words`: their prefixes keep them apart from words.
    lexemes += [f"{facet}:4D" for facet in row["facets"].split()]
    return {**row, "vector": " ".join(lexemes)}


class SearchHits(msgspec.Struct, frozen=True):
    """The URNs of the best hits, best first, and the number of hits.

    Unless `all_counted` is set, `total` is a lower bound: counting stops at MAX_COUNTED, and only
    includes matches by name and path if there are enough of these. `fields` are the matching
    fields by URN; `suggestion` is a corrected query if there are no hits.
    """

    urns: tuple[str, ...]
    total: int
    all_counted: bool
    fields: Mapping[str, tuple[str, ...]] = {}
    suggestion: str | None = None


def find(connection: Connection, query: str, facets: Facets, *, limit: int) -> SearchHits:
    """Find the datasets that have, for every word of the query, a word that starts with it."""
    query_terms = query_words(query)
    required = facets.tokens()
    if not query_terms and not required:
        return SearchHits((), 0, all_counted=True)
    statements = _POSTGRES if connection.dialect.name == "postgresql" else _SQLITE
    max_candidates = max(limit, _MAX_CANDIDATES)
    candidates: dict[int, tuple[int, str, str]] = {}
    by_name_parameters: dict[str, Any] = {}
    if query_terms:
        by_name_parameters = {
            "exact": _match(connection, [], (), [f"2{''.join(query_terms)}", *required]),
            "name": _match(connection, query_terms, ("name",), required),
            "path": _match(connection, query_terms, ("name", "path"), required),
            "limit": max_candidates,
        }
        for id, *candidate in connection.execute(statements.by_name, by_name_parameters).all():
            candidates.setdefault(id, tuple(candidate))
    if len(candidates) >= limit:
        by_name = {"q": by_name_parameters["path"], "limit": MAX_COUNTED}
        total = connection.execute(statements.counted, by_name).scalar_one()
        all_counted = False
    else:
        max_counted = max(limit, MAX_COUNTED)
        anywhere = {"q": _match(connection, query_terms, _ANYWHERE, required), "limit": max_counted}
        ids = [row[0] for row in connection.execute(statements.ids, anywhere).all()]
        others = [id for id in ids if id not in candidates][:max_candidates]
        for id, *entry in connection.execute(statements.entries, {"ids": others}).all():
            candidates[id] = (_TIER_ANYWHERE, *entry)
        total = len(ids)
        all_counted = total < max_counted
    ranked = sorted(candidates.values(), key=lambda candidate: _rank(candidate, query_terms))
    best = tuple(urn for _, urn, _ in ranked[:limit])
    return SearchHits(best, max(total, len(candidates)), all_counted)


def matching_fields(schema: SearchSchema, query_terms: Sequence[str]) -> tuple[str, ...]:
    """The paths of the fields that match the most words of a query, such as `meta.priority`.

    The last name of a path must match a word: `meta` finds the column, not the fields inside it.
    """
    counted: dict[str, int] = {}
    for field in schema.fields:
        text = f"{field.name} {field.type}" if "STRUCT" in field.type else field.name
        if text.isascii():
            # Checking for the substring is faster than splitting names into words.
            folded = text.lower()
            for word in query_terms:
                if word in folded:
                    break
            else:
                continue
        for path, name in _named_paths(field):
            if _matches(name, query_terms):
                counted[path] = _matches(path, query_terms)
    best = max(counted.values(), default=0)
    return tuple(path for path, count in counted.items() if count == best)[:_MAX_FIELDS]


def _named_paths(field: SearchField) -> Iterator[tuple[str, str]]:
    """The path and name of a column and of each field inside it."""
    yield quoted_name(field.name), field.name
    if "STRUCT" in field.type:
        column = Field(name=field.name, type=parse_type(field.type))
        yield from (
            (part.path, part.name) for part in nested_parts(column) if part.name is not None
        )


def _matches(name: str, query_terms: Sequence[str]) -> int:
    """The number of query words that are the start of a word of the name."""
    name_words = words(name)
    return sum(any(word.startswith(each) for word in name_words) for each in query_terms)


def suggest(connection: Connection, query: str, facets: Facets) -> str | None:
    """Correct the unknown words of a query without hits; None if the correction has no hits.

    Reads all words of the index.
    """
    query_terms = query_words(query)
    misspelt = [word for word in query_terms if not find(connection, word, Facets(), limit=1).total]
    if not 0 < len(misspelt) <= _MAX_MISSPELT:
        return None
    nearest: dict[str, str] = {}
    for word in misspelt:
        if (found := _nearest_word(connection, word)) is None:
            return None
        nearest[word] = found
    corrected = _WORD_RUN.sub(
        lambda run: nearest.get(_to_ascii_word(run[0]), run[0]), _without_accents(query)
    )
    return corrected if find(connection, corrected, facets, limit=1).total else None


def _nearest_word(connection: Connection, misspelt: str) -> str | None:
    """The most similar word of the index; among equally similar ones, the most frequent."""
    target = _decode_word(misspelt)
    if len(target) < _MIN_MISSPELT_LENGTH:
        return None
    third = -(-len(misspelt) // 3)
    max_length_difference = 2 * len(misspelt) // len(target)
    # With one or two wrong letters, at least one third of the word is still correct.
    parameters = {
        "first": misspelt[:third],
        "middle": misspelt[third:-third] or misspelt[:third],
        "last": misspelt[-third:],
        "shortest": len(misspelt) - max_length_difference,
        "longest": len(misspelt) + max_length_difference + 1,
    }
    statement = _POSTGRES_WORDS if connection.dialect.name == "postgresql" else _SQLITE_WORDS
    ranked: list[tuple[float, int, str]] = []
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(target)
    for token, datasets in connection.execute(statement, parameters):
        word = _decode_word(token.removeprefix("1"))
        if not word[:1].isalpha():
            continue
        matcher.set_seq1(word)
        if matcher.quick_ratio() >= _MIN_SIMILARITY:
            ranked.append((-matcher.ratio(), -datasets, word))
    negative_similarity, _, word = min(ranked, default=(0.0, 0, ""))
    return word if -negative_similarity >= _MIN_SIMILARITY else None


def _decode_word(word: str) -> str:
    """A word of the index in its original spelling; the reverse of `_to_ascii_word`."""

    def decode(code: re.Match[str]) -> str:
        code_point = int(code[1], 16)
        return chr(code_point) if 127 < code_point < 0x110000 else code[0]

    return _CODE_POINT.sub(decode, word)


def _rank(candidate: tuple[int, str, str], query_terms: list[str]) -> tuple[Any, ...]:
    tier, urn, name = candidate
    # An exact match comes before a name that only begins with the query.
    matched_share = sum(map(len, query_terms)) / max(len(name), 1)
    return (tier, -matched_share, len(urn), urn)


class _Statements(NamedTuple):
    """SQL that finds ids of all matches, counts them, finds the best by tier, and reads entries."""

    ids: TextClause
    counted: TextClause
    by_name: TextClause
    entries: TextClause


# The tier of datasets that match neither by name nor by path.
_TIER_ANYWHERE: Final = 3
_ENTRIES: Final = text("SELECT id, urn, name FROM search_entry WHERE id IN :ids").bindparams(
    bindparam("ids", expanding=True)
)
# SQLite evaluates later tiers only until the outer limit is reached.
_SQLITE: Final = _Statements(
    ids=text("SELECT rowid FROM search_index WHERE search_index MATCH :q LIMIT :limit"),
    counted=text(
        "SELECT count(*) FROM (SELECT 1 FROM search_names WHERE search_names MATCH :q LIMIT :limit)"
    ),
    by_name=text(
        "SELECT entry.id, tier, urn, name FROM ("
        "SELECT rowid AS id, 0 AS tier FROM search_names WHERE search_names MATCH :exact "
        "UNION ALL SELECT rowid, 1 FROM search_names WHERE search_names MATCH :name "
        "UNION ALL SELECT rowid, 2 FROM search_names WHERE search_names MATCH :path "
        "LIMIT :limit) AS best JOIN search_entry AS entry ON entry.id = best.id"
    ),
    entries=_ENTRIES,
)
_POSTGRES: Final = _Statements(
    ids=text(
        "SELECT id FROM search_entry WHERE vector @@ cast(:q AS tsquery) ORDER BY id LIMIT :limit"
    ),
    counted=text(
        "SELECT count(*) FROM (SELECT 1 FROM search_entry "
        "WHERE vector @@ cast(:q AS tsquery) LIMIT :limit) AS found"
    ),
    by_name=text(
        "SELECT id, tier, urn, name FROM ("
        "SELECT id, 0 AS tier, urn, name FROM search_entry "
        "WHERE vector @@ cast(:exact AS tsquery) "
        "UNION ALL SELECT id, 1, urn, name FROM search_entry "
        "WHERE vector @@ cast(:name AS tsquery) "
        "UNION ALL SELECT id, 2, urn, name FROM search_entry "
        "WHERE vector @@ cast(:path AS tsquery)) AS best ORDER BY tier, id LIMIT :limit"
    ),
    entries=_ENTRIES,
)

# Words begin with a letter and compounds with a 1; other tokens are skipped.
_SQLITE_WORDS: Final = text(
    "SELECT term, doc FROM search_vocabulary "
    "WHERE term >= '1a' AND length(term) BETWEEN :shortest AND :longest "
    "AND (instr(term, :first) OR instr(term, :middle) OR instr(term, :last))"
)
# PostgreSQL has no vocabulary table, so take the words of the newest entries.
_POSTGRES_WORDS: Final = text(
    "SELECT word, ndoc FROM ts_stat("
    "'SELECT vector FROM search_entry ORDER BY id DESC LIMIT 50000') "
    "WHERE word >= '1a' AND length(word) BETWEEN :shortest AND :longest "
    "AND (strpos(word, :first) > 0 OR strpos(word, :middle) > 0 OR strpos(word, :last) > 0)"
)


def _match(
    connection: Connection, query_terms: list[str], columns: tuple[str, ...], required: list[str]
) -> str:
    """A match expression for words in the given columns, and for `required` tokens of facets.

    Words are only letters and digits, so nothing needs escaping.
    """
    if connection.dialect.name == "postgresql":
        weights = "".join(_WEIGHTS[column] for column in columns)
        terms = [f"('{word}':*{weights} | '1{word}':D)" for word in query_terms]
        return " & ".join([*terms, *(f"'{facet}':D" for facet in required)])
    filter = " ".join(columns)
    terms = [f'({{{filter}}} : "{word}"* OR facets : "1{word}")' for word in query_terms]
    return " AND ".join([*terms, *(f'facets : "{facet}"' for facet in required)])
