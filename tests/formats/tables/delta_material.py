"""Delta tables in memory for tests that damage them: one of each way to keep a log."""

import json
import tempfile
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from .delta_logs import (
    LOG,
    add,
    checkpoint,
    commit_name,
    field,
    info,
    lines,
    metadata,
    protocol,
    remove,
    small,
    struct,
    without,
)

_VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 4,
    "sizeInBytes": 40,
    "cardinality": 6,
}
_FEATURES = ["deletionVectors", "v2Checkpoint"]
_CLUSTERING = {
    "domain": "delta.clustering",
    "configuration": json.dumps({"clusteringColumns": [["a"]]}),
    "removed": False,
}


def valid_tables() -> dict[str, dict[str, bytes]]:
    """The logs of some tables by a name; none of them has data."""
    return {
        "commits": small(6),
        "parts": _in_parts(),
        "sidecars": _with_sidecars("parquet"),
        "sidecars of JSON": _with_sidecars("json"),
        "compacted": _compacted(),
        "written by deltalake": _written(),
    }


def _state(version: int) -> list[dict[str, object]]:
    columns = [field("a"), field("p", struct(field("x", "date", comment="c")), nullable=False)]
    return [
        protocol(3, 7, readerFeatures=_FEATURES, writerFeatures=_FEATURES),
        metadata(*columns, field("day", "string"), partition_by=["day"]),
        {"domainMetadata": _CLUSTERING},
        *(
            add(f"day=1/f{number}", partitionValues={"day": "1"}, deletionVector=_VECTOR)
            for number in range(version + 1)
        ),
    ]


def _after(version: int) -> dict[str, bytes]:
    return {
        commit_name(version + 1): lines([add("g%20h"), remove("day=1/f0"), info(9)]),
        commit_name(version + 2): lines([metadata(field("z")), info(10, "REPLACE")]),
    }


def _in_parts() -> dict[str, bytes]:
    state = _state(4)
    name = f"{LOG}/{4:020}.checkpoint.{{:010}}.{2:010}.parquet"
    parts = {name.format(1): checkpoint(state[:5]), name.format(2): checkpoint(state[5:])}
    return {**without(small(5), 0), **parts, **_after(4)}


def _with_sidecars(ending: str) -> dict[str, bytes]:
    state = _state(3)
    names = [f"{number:08}-0000-0000-0000-000000000000.parquet" for number in range(2)]
    top = [*state[:3], *({"sidecar": {"path": name, "sizeInBytes": 1}} for name in names)]
    uuid = "80a083e8-7026-4e79-81be-64bd76c43a11"
    return {
        f"{LOG}/{3:020}.checkpoint.{uuid}.{ending}": (
            lines(top) if ending == "json" else checkpoint(top)
        ),
        f"{LOG}/_sidecars/{names[0]}": checkpoint(state[3:5]),
        f"{LOG}/_sidecars/{names[1]}": checkpoint(state[5:]),
        f"{LOG}/_last_checkpoint": b'{"version":3,"size":7}',
        **_after(3),
    }


def _compacted() -> dict[str, bytes]:
    run = f"{LOG}/{1:020}.{3:020}.compacted.json"
    return {**without(small(6), 2), run: lines([add("f1"), add("f2"), add("f3")])}


def _written() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as place:
        for number in range(4):
            rows = pa.table({"id": [number], "day": [f"d{number % 2}"], f"c{number}": [1.5]})
            write_deltalake(place, rows, mode="append", schema_mode="merge", partition_by=["day"])
            if number == 1:
                DeltaTable(place).create_checkpoint()
        log = Path(place, LOG)
        return {f"{LOG}/{path.name}": path.read_bytes() for path in log.iterdir()}
