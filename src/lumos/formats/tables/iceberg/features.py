"""What a table uses that not every reader of Iceberg knows."""

from typing import Final

from lumos.formats.tables.iceberg.deletes import Counts
from lumos.formats.tables.iceberg.metadata import Metadata
from lumos.formats.tables.iceberg.schema import IcebergSchema
from lumos.formats.tables.iceberg.words import unknown_transforms
from lumos.formats.tables.interface import Feature

_NEWEST_KNOWN: Final = 3


def features(metadata: Metadata, schema: IcebergSchema, counts: Counts) -> tuple[Feature, ...]:
    """The features by name, and whether they are understood here."""
    found: list[Feature] = []
    if metadata.format_version >= _NEWEST_KNOWN:
        known = metadata.format_version == _NEWEST_KNOWN
        found.append(Feature(f"format v{metadata.format_version}", known))
    found.extend(Feature(f"type {name}", read) for name, read in sorted(schema.new_types.items()))
    if schema.has_defaults:
        found.append(Feature("default values", True))
    if metadata.next_row_id is not None:
        found.append(Feature("row lineage", True))
    specs = [*metadata.specs.values(), *(metadata.sort_orders or ())]
    if any(len(field.sources) > 1 for spec in specs for field in spec.fields):
        found.append(Feature("transforms of several columns", True))
    found.extend(Feature(f"transform {name}", False) for name in sorted(unknown_transforms(specs)))
    if metadata.encryption_keys:
        found.append(Feature("encryption", False))
    if counts.vectors:
        found.append(Feature("deletion vectors", True))
    if counts.position_files:
        found.append(Feature("position deletes", True))
    if counts.equality_files:
        found.append(Feature("equality deletes", False))
    return tuple(found)
