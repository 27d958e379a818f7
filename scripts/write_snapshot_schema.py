"""Writes docs/snapshot-1.1.schema.json from the values that snapshots are made of."""

import re
import sys
from pathlib import Path
from typing import Any

import msgspec

from lumos.model.types import DataType
from lumos.snapshots.format.codec import HASH_KEY
from lumos.snapshots.format.document import FORMAT, FORMAT_VERSION, KINDS, SnapshotHeader

PAGE = Path(__file__).parents[1] / "docs" / f"snapshot-{FORMAT_VERSION}.schema.json"
HASH = {
    "description": "SHA-256 of the entry's canonical JSON without this key",
    "type": "string",
    "pattern": "^[0-9a-f]{64}$",
}
TYPE = {"description": "The canonical text of a type, such as DECIMAL(10,2)", "type": "string"}


def schema() -> str:
    """The JSON Schema of a document, with those of lines and of the manifest among its parts."""
    types = (SnapshotHeader, *(kind.type for kind in KINDS))
    _, components = msgspec.json.schema_components(types, schema_hook=_of_type)
    # The published names of the parts are older than those of the classes.
    encoded = re.sub(
        rb'(?<=["/])(?:Snapshot|Catalog)([A-Z]\w+)(?=")', rb"\1", msgspec.json.encode(components)
    )
    parts = msgspec.json.decode(encoded)
    header = parts["Header"]
    header["properties"]["format_version"] = {"const": FORMAT_VERSION}
    for kind in KINDS:
        parts[_published_name(kind.type)]["properties"][HASH_KEY] = HASH
    lists = {kind.plural: {"type": "array", "items": _part(kind.type)} for kind in KINDS}
    files = {
        kind.plural: {
            "type": "array",
            "items": {"type": "string", "pattern": rf"^{kind.plural}-[0-9]{{5}}\.parquet$"},
        }
        for kind in KINDS
    }
    parts["Line"] = {
        "description": "A line of a .jsonl file: the header first, then one entry each.",
        "oneOf": [
            {"$ref": "#/$defs/Header"},
            *(
                {
                    "type": "object",
                    "properties": {kind.singular: _part(kind.type)},
                    "required": [kind.singular],
                    "additionalProperties": False,
                }
                for kind in KINDS
            ),
        ],
    }
    parts["Manifest"] = {
        "description": "The manifest.json of a folder with Parquet files.",
        **header,
        "title": "Manifest",
        "properties": header["properties"] | {"files": {"type": "object", "properties": files}},
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT}:{FORMAT_VERSION}",
        **header,
        "title": "Lumos snapshot",
        "description": "A document: .json, or .yaml with the same keys and values.",
        "properties": header["properties"] | lists,
        "$defs": dict(sorted(parts.items())),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _of_type(type: type[Any]) -> dict[str, Any]:
    if type is DataType:
        return dict(TYPE)
    raise NotImplementedError(type)


def _part(type: type[Any]) -> dict[str, str]:
    return {"$ref": f"#/$defs/{_published_name(type)}"}


def _published_name(type: type[Any]) -> str:
    return re.sub("^(Snapshot|Catalog)", "", type.__name__)


if __name__ == "__main__":
    PAGE.write_text(schema(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name}\n")
