"""How snapshots are kept: chosen by the ending of the file, loaded when one is used."""

from pathlib import Path
from typing import Final

from lumos.snapshot.encodings.interface import Bodies, Container, Encoding, Stored
from lumos.snapshot.errors import UnknownEncoding

__all__ = ["ENDINGS", "Bodies", "Container", "Encoding", "Stored", "encoding_of"]

ENDINGS: Final = (".json", ".jsonl", ".jsonl.zst", ".yaml", ".yml", ".parquet")


def encoding_of(path: Path) -> Encoding:
    """The encoding that the path's ending names; a folder is one of Parquet files."""
    name = path.name.lower()
    if name.endswith(".json"):
        from lumos.snapshot.encodings.json_document import open_json, write_json

        return Encoding(open_json, write_json)
    if name.endswith(".jsonl"):
        from lumos.snapshot.encodings.json_lines import open_lines, write_lines

        return Encoding(open_lines, write_lines)
    raise UnknownEncoding(path, ENDINGS)
