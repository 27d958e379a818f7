"""Table features: what a table uses, and whether it is understood here."""

from typing import Final

from lumos.formats.tables.delta.actions import Protocol
from lumos.formats.tables.interface import Feature

# From these versions on features are listed by name.
_NAMED_FROM_READER: Final = 3
_NAMED_FROM_WRITER: Final = 7
_COLUMN_MAPPING_READER: Final = 2

# Readers that do not know these may take the table for something else than it is.
_READ: Final = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "geospatial",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantType",
    }
)
# Only a catalog knows which commits are valid, and they may lie elsewhere.
_NOT_READ: Final = frozenset({"catalogManaged", "catalogOwned", "coordinatedCommits"})
_PREVIEW: Final = "-preview"


def features_of(protocol: Protocol, settings: dict[str, str]) -> tuple[Feature, ...]:
    """The features by name; what only writers must know changes nothing for readers."""
    for_readers = list(protocol.reader_features or ())
    for_writers = [each for each in protocol.writer_features or () if each not in for_readers]
    mapping = settings.get("delta.columnMapping.mode", "none")
    if (
        "columnMapping" not in for_readers
        and mapping != "none"
        and protocol.min_reader_version >= _COLUMN_MAPPING_READER
    ):
        for_readers.append("columnMapping")
    found = [Feature(name, _is_read(name)) for name in dict.fromkeys(for_readers)]
    found += [Feature(name, _plain(name) not in _NOT_READ) for name in dict.fromkeys(for_writers)]
    if protocol.min_reader_version > _NAMED_FROM_READER:
        found.append(Feature(f"reader version {protocol.min_reader_version}", read=False))
    if protocol.min_writer_version > _NAMED_FROM_WRITER:
        found.append(Feature(f"writer version {protocol.min_writer_version}", read=True))
    return tuple(found)


def _is_read(name: str) -> bool:
    return _plain(name) in _READ


def _plain(name: str) -> str:
    return name.removesuffix(_PREVIEW)
