"""What a table says of itself, as properties of its dataset."""

from typing import Final

from lumos.formats.tables.iceberg.deletes import Counts
from lumos.formats.tables.iceberg.metadata import Metadata
from lumos.formats.tables.iceberg.schema import IcebergSchema
from lumos.formats.tables.iceberg.words import sorted_by
from lumos.formats.tables.secrets import without_secrets

_COMMENT: Final = "comment"


def properties_of(
    metadata: Metadata, schema: IcebergSchema, counts: Counts
) -> tuple[dict[str, str], str | None]:
    """The properties by name, and the table's description."""
    given = (metadata.properties or {}).items()
    own = without_secrets(
        {str(name): value if isinstance(value, str) else str(value) for name, value in given}
    )
    description = own.pop(_COMMENT, None)
    told = {
        "iceberg.format-version": str(metadata.format_version),
        "iceberg.sort-order": ", ".join(sorted_by(metadata.current_order, schema.names)),
        "iceberg.identifier-fields": ", ".join(schema.nested_keys),
        "iceberg.branches": _references(metadata, "branch"),
        "iceberg.tags": _references(metadata, "tag"),
        "iceberg.delete-files": str(
            counts.vectors + counts.position_files + counts.equality_files or ""
        ),
        "iceberg.delete-bytes": str(counts.delete_bytes or ""),
    }
    own.update((name, text) for name, text in told.items() if text)
    return own, description or None


def _references(metadata: Metadata, type: str) -> str:
    """Branches and tags with the snapshots they stand at; the main branch is the table."""
    return ", ".join(
        f"{name} at {reference.snapshot_id}"
        for name, reference in sorted((metadata.refs or {}).items())
        if reference.type == type and name != "main"
    )
