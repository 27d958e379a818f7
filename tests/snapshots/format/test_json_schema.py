"""The published JSON Schema is what snapshots are made of."""

import runpy
from pathlib import Path

from lumos.snapshots.format.document import KINDS, SnapshotHeader

PROJECT = Path(__file__).parents[3]
SCHEMA = PROJECT / "docs/snapshot-1.1.schema.json"


def test_the_published_schema_is_that_of_the_values() -> None:
    written = runpy.run_path(str(PROJECT / "scripts/write_snapshot_schema.py"))["schema"]()
    assert SCHEMA.read_text(encoding="utf-8") == written, "run: make docs"


def test_every_key_of_every_kind_is_in_the_published_schema() -> None:
    import json

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert schema["properties"].keys() == {
        *SnapshotHeader.__struct_fields__,
        *(kind.plural for kind in KINDS),
    }
    for kind in KINDS:
        part = schema["$defs"][kind.type.__name__.removeprefix("Catalog")]
        assert part["properties"].keys() == {*kind.type.__struct_fields__, "content_hash"}
        assert kind.key in part["required"]
