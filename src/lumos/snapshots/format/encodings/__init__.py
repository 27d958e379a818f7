"""Encodings of snapshots, chosen by the extension of the file and imported when used."""

from pathlib import Path
from typing import Final

from lumos.snapshots.format.encodings.interface import (
    MANIFEST,
    Bodies,
    Encoding,
    KeyedEntry,
    SnapshotContainer,
    StoredJson,
)
from lumos.snapshots.format.errors import UnknownEncoding

__all__ = [
    "EXTENSIONS",
    "MANIFEST",
    "Bodies",
    "Encoding",
    "KeyedEntry",
    "SnapshotContainer",
    "StoredJson",
    "encoding_of",
]

EXTENSIONS: Final = (".json", ".yaml", ".yml", ".jsonl", ".jsonl.zst", ".parquet")


def encoding_of(path: Path) -> Encoding:
    """The encoding for a path; a folder with a manifest is a Parquet snapshot."""
    name = path.name.lower()
    if name.endswith(".json"):
        from lumos.snapshots.format.encodings.json_document import open_json, write_json

        return Encoding(open_json, write_json)
    if name.endswith(".jsonl"):
        from lumos.snapshots.format.encodings.json_lines import open_lines, write_lines

        return Encoding(open_lines, write_lines)
    if name.endswith(".jsonl.zst"):
        from lumos.snapshots.format.encodings.json_lines import open_zstd, write_zstd

        return Encoding(open_zstd, write_zstd)
    if name.endswith((".yaml", ".yml")):
        from lumos.snapshots.format.encodings.yaml_document import open_yaml, write_yaml

        return Encoding(open_yaml, write_yaml)
    if name.endswith(".parquet") or (path / MANIFEST).is_file():
        from lumos.snapshots.format.encodings.parquet_folder import ParquetFolder, write_folder

        return Encoding(ParquetFolder, write_folder, is_folder=True)
    raise UnknownEncoding(path, EXTENSIONS)
