"""The search index of a site: rows of datasets, and the words by which the browser finds them.

Texts are split into words by the same rules as in the store. The list of words is sorted, so that
the words with the prefix that a user types are one range of it. Rows refer to words by position.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from lumos.model.report import Report
from lumos.model.schema import Field
from lumos.model.type_path import nested_parts
from lumos.model.types import parse_type, quoted_name
from lumos.model.urn import SCHEME
from lumos.store.search import compounds, words

ROWS_PER_FILE: Final = 2_000


class IndexRow(Report, frozen=True, kw_only=True, array_like=True):
    """A dataset in the index; an array in JSON, in the order of web/src/site/index.ts.

    `in_name`, `in_path` and `in_texts` are positions in `Vocabulary.words` of the words in the
    dataset's name, path and other texts; `columns` are positions in `Vocabulary.columns`.
    `compounds` are names without separators.
    """

    urn: str
    name: str
    platform: str
    format: str | None
    location: str | None
    description: str | None
    owners: tuple[str, ...]
    tags: tuple[str, ...]
    field_tags: tuple[str, ...]
    domain: str | None
    terms: tuple[str, ...]
    quality: float | None
    schema_version: str | None
    cloud_version: str | None
    modified: str | None
    updated_at: str
    in_name: tuple[int, ...]
    in_path: tuple[int, ...]
    in_texts: tuple[int, ...]
    compounds: tuple[str, ...]
    columns: tuple[int, ...]


class Vocabulary(Report, frozen=True, kw_only=True):
    """The sorted words, the paths of columns, and the numbers of files with rows and of datasets.

    `column_words` are the words of each column's own name, `path_words` those of the entire path of
    a nested column.
    """

    words: tuple[str, ...]
    columns: tuple[str, ...]
    column_words: tuple[tuple[int, ...], ...]
    path_words: tuple[tuple[int, ...], ...]
    files: int
    datasets: int


class IndexedColumn(NamedTuple):
    """The path and the own name of a column or of a field inside a column."""

    path: str
    name: str


class SearchIndex:
    """Collects the datasets of a site, as `lumos show` reports them."""

    def __init__(self, updated_at: Mapping[str, str]) -> None:
        self._updated_at = updated_at
        self._documents: list[_Document] = []

    def add(self, dataset: Mapping[str, Any]) -> None:
        """Add a live dataset."""
        self._documents.append(_Document(dataset))

    def build(self) -> tuple[Vocabulary, list[IndexRow]]:
        """The words of all datasets, and their rows by URN."""
        columns = dict.fromkeys(column for each in self._documents for column in each.columns)
        own_words = {column: words(column.name) for column in columns}
        path_words = {
            column: words(column.path) if column.path != quoted_name(column.name) else set()
            for column in columns
        }
        all_words: set[str] = set()
        for column_words in (*own_words.values(), *path_words.values()):
            all_words |= column_words
        for document in self._documents:
            all_words |= document.in_name | document.in_path | document.in_texts
        vocabulary = sorted(all_words)
        word_ids = {word: number for number, word in enumerate(vocabulary)}
        column_ids = {column: number for number, column in enumerate(columns)}

        def ids(some_words: Iterable[str]) -> tuple[int, ...]:
            return tuple(sorted(word_ids[each] for each in some_words))

        rows = [
            IndexRow(
                **each.shown,
                updated_at=self._updated_at.get(each.urn, ""),
                in_name=ids(each.in_name),
                in_path=ids(each.in_path),
                in_texts=ids(each.in_texts),
                compounds=each.compounds,
                columns=tuple(column_ids[column] for column in each.columns),
            )
            for each in sorted(self._documents, key=lambda each: each.urn)
        ]
        index = Vocabulary(
            words=tuple(vocabulary),
            columns=tuple(column.path for column in columns),
            column_words=tuple(ids(own_words[column]) for column in columns),
            path_words=tuple(ids(path_words[column]) for column in columns),
            files=-(-len(rows) // ROWS_PER_FILE),
            datasets=len(rows),
        )
        return index, rows


class _Document:
    """The searchable words of a dataset, and the values that search results show (`shown`)."""

    def __init__(self, dataset: Mapping[str, Any]) -> None:
        self.urn: str = dataset["urn"]
        documentation = dataset.get("documentation") or {}
        governance = dataset.get("governance") or {}
        fields = (dataset.get("schema") or {}).get("fields", ())
        annotated = [*fields, *(part for field in fields for part in field.get("nested") or ())]
        owners = [each["name"] for each in (dataset.get("ownership") or {}).get("owners", ())]
        field_tags = dict.fromkeys(tag for each in annotated for tag in each.get("tags") or ())
        versioning = dataset.get("versioning") or {}
        self.shown = {
            "urn": self.urn,
            "name": dataset["name"],
            "platform": dataset["platform"],
            "format": dataset.get("format"),
            "location": (dataset.get("location") or {}).get("uri"),
            "description": documentation.get("description"),
            "owners": tuple(owners),
            "tags": tuple(governance.get("tags") or ()),
            "field_tags": tuple(field_tags),
            "domain": documentation.get("domain"),
            "terms": tuple(governance.get("terms") or ()),
            "quality": (dataset.get("quality") or {}).get("score"),
            "schema_version": versioning.get("schema_version"),
            "cloud_version": versioning.get("cloud_version"),
            "modified": (dataset.get("statistics") or {}).get("last_modified"),
        }
        self.columns = tuple(
            dict.fromkeys(
                IndexedColumn(path, name) for field in fields for path, name in _named_paths(field)
            )
        )
        path = unquote(self.urn)[len(SCHEME) :]
        texts = [
            documentation.get("description"),
            documentation.get("business_context"),
            documentation.get("domain"),
            *owners,
            *(governance.get("tags") or ()),
            *(governance.get("terms") or ()),
        ]
        for each in annotated:
            texts += [
                each.get("description"),
                *(each.get("tags") or ()),
                *(each.get("terms") or ()),
            ]
        self.in_name = words(dataset["name"])
        self.in_path = words(path)
        self.in_texts = words(" ".join(filter(None, texts)))
        self.compounds = tuple(dict.fromkeys((*compounds(dataset["name"]), *compounds(path))))


def _named_paths(field: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The path and name of a column and of each field inside it."""
    yield quoted_name(field["name"]), field["name"]
    if "STRUCT" in field["type"]:
        column = Field(name=field["name"], type=parse_type(field["type"]))
        yield from (
            (part.path, part.name) for part in nested_parts(column) if part.name is not None
        )
