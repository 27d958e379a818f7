"""Recognises files that accompany data: checksums, manifests, descriptions, unfinished copies.

The decision depends only on the name and content of a file. If it depended on other files, a new
file could hide an old one. docs/GROUPING.md lists the files that are skipped.
"""

import re
from typing import Final, NamedTuple

from lumos.discovery.grouping.columns import SchemasByFingerprint
from lumos.discovery.lake.summaries import FileSet

EXTENSIONS: Final = {
    "a checksum": "md5 sha1 sha256 sha512 crc crc32 checksum sig asc",
    "a marker or manifest written by a job": "manifest ctl done ok lock",
    "a temporary, partial or backup copy": "tmp temp bak swp orig part partial filepart crdownload",
    "a description": "schema ddl md rst html htm pdf",
}
_KIND_BY_EXTENSION: Final = {
    extension: description
    for description, extensions in EXTENSIONS.items()
    for extension in extensions.split()
}
_TEXT_FORMATS: Final = ("csv", "json")
_DESCRIPTION: Final = "a description"
_MANIFEST: Final = "a marker or manifest written by a job"


class _SidecarKind(NamedTuple):
    """A kind of sidecar files, by name and, if given, by columns.

    `columns` are required columns, with alternatives separated by `|`. Files with several records
    are only of this kind if `allows_multiple_records` is set.
    """

    description: str
    names: re.Pattern[str]
    columns: str = ""
    formats: tuple[str, ...] = ("json",)
    max_columns: int | None = None
    allows_multiple_records: bool = False

    def matches(self, name: str, columns: frozenset[str], *, is_single_record: bool) -> bool:
        """Whether a file is of this kind; a document that is not a table is a single record."""
        return (
            (is_single_record or self.allows_multiple_records)
            and self.names.fullmatch(name) is not None
            and (self.max_columns is None or len(columns) <= self.max_columns)
            and any(columns.issuperset(required.split()) for required in self.columns.split("|"))
        )


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_KINDS: Final = (
    _SidecarKind(
        _DESCRIPTION,
        _regex(
            r"(?:read[-_]?me|licen[cs]e|copying|copyright|disclaimer|checksums?|md5sums?|sha\d+sums?)"
            r"(?:\.(?:txt|md|rst|html))?"
        ),
        formats=_TEXT_FORMATS,
        allows_multiple_records=True,
    ),
    _SidecarKind(
        _DESCRIPTION,
        _regex(
            r"(?:authors|changes|changelog|citation|contributing|notice|requirements|version)"
            r"(?:\.(?:txt|md|rst|html))?"
        ),
        formats=_TEXT_FORMATS,
        max_columns=1,
        allows_multiple_records=True,
    ),
    _SidecarKind(
        _DESCRIPTION,
        _regex(
            r"(?:metadata|schema|datapackage|dataset_infos?|dataset_description|croissant)\.json"
        ),
    ),
    _SidecarKind(_DESCRIPTION, _regex(r"package(?:-lock)?\.json"), "name version"),
    # Settings of a model on Hugging Face.
    _SidecarKind(_DESCRIPTION, _regex(r"config\.json"), "model_type architectures"),
    # Descriptions by CSV on the Web, mongodump, Azure Synapse, the Common Data Model, elasticdump.
    _SidecarKind(_DESCRIPTION, _regex(r".*metadata\.json"), "@context"),
    _SidecarKind(_DESCRIPTION, _regex(r".+\.metadata\.json"), "indexes"),
    _SidecarKind(_DESCRIPTION, _regex(r".+-EntityMetadata\.json"), "EntityName Attributes"),
    _SidecarKind(_DESCRIPTION, _regex(r"model\.json(?:@snapshot=.*)?"), "name entities"),
    _SidecarKind(_DESCRIPTION, _regex(r".+\.cdm\.json"), "jsonSchemaSemanticVersion"),
    _SidecarKind(
        _DESCRIPTION,
        _regex(r".+\.(?:mapping|settings|analyzer)\.json"),
        "properties|mappings|index|settings|analysis",
    ),
    # MySQL Shell.
    _SidecarKind(_DESCRIPTION, _regex(r"@\.(?:done\.)?json")),
    _SidecarKind(_DESCRIPTION, _regex(r".+\.json"), "includesDdl includesData"),
    # Iceberg: metadata, manifest lists and manifests.
    _SidecarKind(_DESCRIPTION, _regex(r".+\.metadata\.json"), "format-version table-uuid"),
    _SidecarKind(
        _MANIFEST,
        _regex(r".+\.avro"),
        "manifest_path manifest_length partition_spec_id|status snapshot_id data_file",
        formats=("avro",),
        allows_multiple_records=True,
    ),
    # S3 Inventory, Redshift UNLOAD, cost and usage reports, web applications.
    _SidecarKind(
        _MANIFEST, _regex(r"manifest(?:\.json)?"), "files|entries|account columns|name version"
    ),
    _SidecarKind(_MANIFEST, _regex(r".+manifest"), "entries"),
    _SidecarKind(_MANIFEST, _regex(r".+-manifest\.json"), "account columns"),
    # Exports of DynamoDB and RDS; query results of Athena.
    _SidecarKind(
        _MANIFEST,
        _regex(r"manifest-files\.json"),
        "itemCount md5Checksum",
        allows_multiple_records=True,
    ),
    _SidecarKind(_MANIFEST, _regex(r"manifest-summary\.json"), "exportArn"),
    _SidecarKind(_MANIFEST, _regex(r"export_info_.+\.json"), "exportTaskIdentifier"),
    _SidecarKind(_MANIFEST, _regex(r"export_tables_info_.+\.json"), "perTableStatus"),
    _SidecarKind(
        _MANIFEST,
        _regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}-manifest\.csv"),
        formats=("csv",),
        max_columns=1,
        allows_multiple_records=True,
    ),
    # dbt, Snowplow, and the identifier of a Spark stream in its checkpoint.
    _SidecarKind(
        _MANIFEST,
        _regex(r"(?:manifest|catalog|sources|run_results)\.json"),
        "metadata nodes|metadata results|metadata args",
    ),
    _SidecarKind(_MANIFEST, _regex(r"semantic_manifest\.json"), "semantic_models"),
    _SidecarKind(_MANIFEST, _regex(r"shredding_complete\.json"), "schema data"),
    _SidecarKind(_MANIFEST, _regex(r"metadata"), "id", max_columns=1),
)
_KINDS_BY_FORMAT: Final = {
    format: tuple(kind for kind in _KINDS if format in kind.formats)
    for format in ("avro", *_TEXT_FORMATS)
}


def describe_sidecar(file_set: FileSet, schemas: SchemasByFingerprint) -> str | None:
    """Describe files that only accompany data, such as `a checksum`; None if they are data."""
    name = file_set.first_path.rpartition("/")[2]
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if extension in _KIND_BY_EXTENSION:
        return _KIND_BY_EXTENSION[extension]
    if name.endswith("~"):
        return "a temporary, partial or backup copy"
    kinds = _KINDS_BY_FORMAT.get(file_set.format)
    if kinds is None:
        return None
    columns = frozenset(field.name for field in schemas[file_set.schema_fingerprint].fields)
    # A document that is too long to be read in full has no row count.
    is_single_record = file_set.row_count is None or file_set.row_count <= file_set.file_count
    return next(
        (
            kind.description
            for kind in kinds
            if kind.matches(name, columns, is_single_record=is_single_record)
        ),
        None,
    )
