"""Files that accompany data: checksums, manifests, descriptions, unfinished copies.

A file is judged by its own name and content, never by a word in a longer name or by the files next
to it, so that a new file cannot hide another one. docs/GROUPING.md lists what is skipped.
"""

import re
from typing import Final, NamedTuple

from lumos.discovery.grouping.columns import SchemasByFingerprint
from lumos.discovery.lake.summaries import FileSet

ENDINGS: Final = {
    "a checksum": "md5 sha1 sha256 sha512 crc crc32 checksum sig asc",
    "a marker or manifest of a writer": "manifest ctl done ok lock",
    "an unfinished or put-aside copy": "tmp temp bak swp orig part partial filepart crdownload",
    "a description": "schema ddl md rst html htm pdf",
}
_KIND_BY_EXTENSION: Final = {
    ending: what for what, extensions in ENDINGS.items() for ending in extensions.split()
}
_TEXT_FORMATS: Final = ("csv", "json")
_DESCRIPTION: Final = "a description"
_MANIFEST: Final = "a marker or manifest of a writer"


class _Kind(NamedTuple):
    """Files of one kind, by name and, if `columns` are given, by a set of columns they have.

    `columns` holds alternatives separated by `|`. Unless `has_records`, a file of several records
    is not of this kind, whatever its name and columns.
    """

    what: str
    names: re.Pattern[str]
    columns: str = ""
    formats: tuple[str, ...] = ("json",)
    max_columns: int | None = None
    has_records: bool = False

    def matches(self, name: str, columns: frozenset[str], *, is_one: bool) -> bool:
        """Whether a file is of this kind; `is_one` if it holds a single record or document."""
        return (
            (is_one or self.has_records)
            and self.names.fullmatch(name) is not None
            and (self.max_columns is None or len(columns) <= self.max_columns)
            and any(columns.issuperset(names.split()) for names in self.columns.split("|"))
        )


def _names(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_KINDS: Final = (
    _Kind(
        _DESCRIPTION,
        _names(
            r"(?:read[-_]?me|licen[cs]e|copying|copyright|disclaimer|checksums?|md5sums?|sha\d+sums?)"
            r"(?:\.(?:txt|md|rst|html))?"
        ),
        formats=_TEXT_FORMATS,
        has_records=True,
    ),
    _Kind(
        _DESCRIPTION,
        _names(
            r"(?:authors|changes|changelog|citation|contributing|notice|requirements|version)"
            r"(?:\.(?:txt|md|rst|html))?"
        ),
        formats=_TEXT_FORMATS,
        max_columns=1,
        has_records=True,
    ),
    _Kind(
        _DESCRIPTION,
        _names(
            r"(?:metadata|schema|datapackage|dataset_infos?|dataset_description|croissant)\.json"
        ),
    ),
    _Kind(_DESCRIPTION, _names(r"package(?:-lock)?\.json"), "name version"),
    # Settings of a model on Hugging Face.
    _Kind(_DESCRIPTION, _names(r"config\.json"), "model_type architectures"),
    # Descriptions by CSV on the Web, mongodump, Azure Synapse, the Common Data Model, elasticdump.
    _Kind(_DESCRIPTION, _names(r".*metadata\.json"), "@context"),
    _Kind(_DESCRIPTION, _names(r".+\.metadata\.json"), "indexes"),
    _Kind(_DESCRIPTION, _names(r".+-EntityMetadata\.json"), "EntityName Attributes"),
    _Kind(_DESCRIPTION, _names(r"model\.json(?:@snapshot=.*)?"), "name entities"),
    _Kind(_DESCRIPTION, _names(r".+\.cdm\.json"), "jsonSchemaSemanticVersion"),
    _Kind(
        _DESCRIPTION,
        _names(r".+\.(?:mapping|settings|analyzer)\.json"),
        "properties|mappings|index|settings|analysis",
    ),
    # MySQL Shell.
    _Kind(_DESCRIPTION, _names(r"@\.(?:done\.)?json")),
    _Kind(_DESCRIPTION, _names(r".+\.json"), "includesDdl includesData"),
    # Iceberg: metadata, manifest lists and manifests.
    _Kind(_DESCRIPTION, _names(r".+\.metadata\.json"), "format-version table-uuid"),
    _Kind(
        _MANIFEST,
        _names(r".+\.avro"),
        "manifest_path manifest_length partition_spec_id|status snapshot_id data_file",
        formats=("avro",),
        has_records=True,
    ),
    # S3 Inventory, Redshift UNLOAD, cost and usage reports, web applications.
    _Kind(_MANIFEST, _names(r"manifest(?:\.json)?"), "files|entries|account columns|name version"),
    _Kind(_MANIFEST, _names(r".+manifest"), "entries"),
    _Kind(_MANIFEST, _names(r".+-manifest\.json"), "account columns"),
    # Exports of DynamoDB and RDS; query results of Athena.
    _Kind(_MANIFEST, _names(r"manifest-files\.json"), "itemCount md5Checksum", has_records=True),
    _Kind(_MANIFEST, _names(r"manifest-summary\.json"), "exportArn"),
    _Kind(_MANIFEST, _names(r"export_info_.+\.json"), "exportTaskIdentifier"),
    _Kind(_MANIFEST, _names(r"export_tables_info_.+\.json"), "perTableStatus"),
    _Kind(
        _MANIFEST,
        _names(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-manifest\.csv"),
        formats=("csv",),
        max_columns=1,
        has_records=True,
    ),
    # dbt, Snowplow, and the identifier of a Spark stream in its checkpoint.
    _Kind(
        _MANIFEST,
        _names(r"(?:manifest|catalog|sources|run_results)\.json"),
        "metadata nodes|metadata results|metadata args",
    ),
    _Kind(_MANIFEST, _names(r"semantic_manifest\.json"), "semantic_models"),
    _Kind(_MANIFEST, _names(r"shredding_complete\.json"), "schema data"),
    _Kind(_MANIFEST, _names(r"metadata"), "id", max_columns=1),
)
_KINDS_BY_FORMAT: Final = {
    format: tuple(kind for kind in _KINDS if format in kind.formats)
    for format in ("avro", *_TEXT_FORMATS)
}


def describe_sidecar(file_set: FileSet, schemas: SchemasByFingerprint) -> str | None:
    """What the files of a file set are if they only accompany data, such as `a checksum`."""
    name = file_set.first_path.rpartition("/")[2]
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _KIND_BY_EXTENSION:
        return _KIND_BY_EXTENSION[ending]
    if name.endswith("~"):
        return "an unfinished or put-aside copy"
    kinds = _KINDS_BY_FORMAT.get(file_set.format)
    if kinds is None:
        return None
    columns = frozenset(field.name for field in schemas[file_set.full].fields)
    # A document that is too long to be read in full has no row count.
    is_one = file_set.row_count is None or file_set.row_count <= file_set.file_count
    return next((kind.what for kind in kinds if kind.matches(name, columns, is_one=is_one)), None)
