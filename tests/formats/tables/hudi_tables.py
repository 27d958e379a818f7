"""Writes Hudi tables as Hudi 0.x (version 6) and 1.x (versions 8 and 9) lay them out."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

BEGINNING = datetime(2024, 5, 1, tzinfo=UTC)
COLUMNS = {"id": "int", "name": "string", "country": "string"}

_STAT = {
    "type": "record",
    "name": "WriteStat",
    "fields": [
        {"name": "fileId", "type": ["null", "string"]},
        {"name": "path", "type": ["null", "string"]},
        {"name": "prevCommit", "type": ["null", "string"]},
        {"name": "numWrites", "type": ["null", "long"]},
        {"name": "numInserts", "type": ["null", "long"]},
        {"name": "totalWriteBytes", "type": ["null", "long"]},
        {"name": "fileSizeInBytes", "type": ["null", "long"]},
        {"name": "baseFile", "type": ["null", "string"]},
        {"name": "logFiles", "type": ["null", {"type": "array", "items": "string"}]},
    ],
}
_COMMIT = {
    "type": "record",
    "name": "CommitMetadata",
    "fields": [
        {
            "name": "partitionToWriteStats",
            "type": ["null", {"type": "map", "values": {"type": "array", "items": _STAT}}],
        },
        {"name": "compacted", "type": ["null", "boolean"]},
        {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "operationType", "type": ["null", "string"]},
        {
            "name": "partitionToReplaceFileIds",
            "type": [
                "null",
                {"type": "map", "values": {"type": "array", "items": "string"}},
            ],
        },
    ],
}


def avro_schema(columns: Mapping[str, Any], *, name: str = "trips") -> str:
    """Columns that may be null, as Hudi keeps a schema."""
    fields = [{"name": column, "type": ["null", type]} for column, type in columns.items()]
    return json.dumps({"type": "record", "name": name, "fields": fields})


class HudiTable:
    """A table that grows by writes, one minute apart."""

    def __init__(
        self,
        version: int = 9,
        *,
        merged_on_read: bool = False,
        partitioned: bool = True,
        zone: str = "UTC",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.version = version
        self.merged_on_read = merged_on_read
        self.partitioned = partitioned
        self.files: dict[str, bytes] = {}
        self.modified: dict[str, int] = {}
        self.schema: str | None = avro_schema(COLUMNS)
        self.extra: dict[str, str] = {}
        self._minutes = 0
        self.properties = {
            "hoodie.table.name": "trips",
            "hoodie.table.type": "MERGE_ON_READ" if merged_on_read else "COPY_ON_WRITE",
            "hoodie.table.version": str(version),
            "hoodie.timeline.layout.version": "2" if version >= 8 else "1",
            "hoodie.table.timeline.timezone": zone,
            "hoodie.table.recordkey.fields": "id",
            "hoodie.datasource.write.drop.partition.columns": "false",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.table.keygenerator.type": "SIMPLE" if partitioned else "NON_PARTITION",
            **({"hoodie.table.partition.fields": "country"} if partitioned else {}),
            **(properties or {}),
        }
        self.save_properties()

    @property
    def timeline(self) -> str:
        named = self.properties.get("hoodie.timeline.path", "timeline")
        return f".hoodie/{named}" if self.version >= 8 else ".hoodie"

    def save_properties(self) -> None:
        lines = [
            "#Properties saved on 2024-05-01T00:00:00.123456Z",
            "#Wed May 01 00:00:00 UTC 2024",
            *(f"{key}={escaped(text)}" for key, text in self.properties.items()),
        ]
        self.files[".hoodie/hoodie.properties"] = "\n".join(lines).encode("latin-1")

    def write(
        self,
        groups: Mapping[str, int],
        *,
        partition: str | None = None,
        operation: str = "UPSERT",
        action: str | None = None,
        replaces: Mapping[str, Sequence[str]] | None = None,
        logs: bool = False,
        begun: str | None = None,
        ends: bool = True,
        base_instant: str | None = None,
    ) -> str:
        """Rows for file groups, as base files or logs; its instant."""
        begun = begun or self.instant()
        action = action or ("deltacommit" if self.merged_on_read else "commit")
        place = self.place(partition)
        stats = []
        for group, rows in groups.items():
            path = f"{place}{self._name(group, begun, logs=logs, base_instant=base_instant)}"
            self._put(path, b"log of rows" if logs else _rows(rows), begun)
            stats.append(
                {
                    "fileId": group,
                    "path": path,
                    "prevCommit": "null",
                    "numWrites": rows,
                    "numInserts": rows,
                    "totalWriteBytes": len(self.files[path]),
                    "fileSizeInBytes": len(self.files[path]),
                    "baseFile": "" if logs else None,
                    "logFiles": [path.rpartition("/")[2]] if logs else None,
                }
            )
        marks = f"{place}.hoodie_partition_metadata"
        self.files.setdefault(marks, b"commitTime=20240501000000000\npartitionDepth=1\n")
        self.begin(begun, action)
        if ends:
            extra = {**self.extra, **({} if self.schema is None else {"schema": self.schema})}
            content: dict[str, Any] = {
                "partitionToWriteStats": {place.removesuffix("/"): stats},
                "compacted": False,
                "extraMetadata": extra,
                "operationType": operation,
            }
            if replaces is not None:
                content["partitionToReplaceFileIds"] = {
                    self.place(each).removesuffix("/"): list(gone)
                    for each, gone in replaces.items()
                }
            self.end(begun, action, content)
        return begun

    def begin(self, begun: str, action: str) -> None:
        """What stands in the timeline before an action ends."""
        inflight = "inflight" if action == "commit" else f"{action}.inflight"
        self._put(f"{self.timeline}/{begun}.{action}.requested", b"", begun)
        self._put(f"{self.timeline}/{begun}.{inflight}", b"", begun)

    def end(self, begun: str, action: str, content: dict[str, Any]) -> None:
        self._put(f"{self.timeline}/{self.ended_name(begun, action)}", self._body(content), begun)

    def ended_name(self, begun: str, action: str) -> str:
        return f"{begun}_{later(begun)}.{action}" if self.version >= 8 else f"{begun}.{action}"

    def roll_back(self, instant: str) -> None:
        """Takes a write back: its data and its files in the timeline go."""
        for path in list(self.files):
            if instant in path:
                del self.files[path]
        begun = self.instant()
        self.begin(begun, "rollback")
        self.end(begun, "rollback", {"extraMetadata": {}, "operationType": None})

    def clean(self, *groups_and_instants: tuple[str, str]) -> None:
        """Removes old files of groups."""
        for group, instant in groups_and_instants:
            for path in list(self.files):
                if path.startswith(f"{self.place(None)}{group}_") and path.endswith(
                    f"_{instant}.parquet"
                ):
                    del self.files[path]
        begun = self.instant()
        self.begin(begun, "clean")
        self.end(begun, "clean", {"extraMetadata": {}, "operationType": None})

    def archive(self, *instants: str) -> None:
        """Moves writes out of the timeline."""
        rows = []
        for path in sorted(self.files):
            folder, _, name = path.rpartition("/")
            if folder != self.timeline or not name.startswith(instants):
                continue
            data = self.files.pop(path)
            if data:
                begun, _, ended = name.partition(".")[0].partition("_")
                action = name.rpartition(".")[2]
                row = (begun, ended, action, data)
                names = ("instantTime", "completionTime", "action", "metadata")
                rows.append(dict(zip(names, row, strict=True)))
        if self.version < 8:
            self.files[".hoodie/archived/.commits_.archive.1_1-0-1"] = b"log blocks"
            return
        name = f"{instants[0]}_{instants[-1]}_0.parquet"
        self.files[f"{self.timeline}/history/{name}"] = _parquet(pa.Table.from_pylist(rows))
        there = [path.rpartition("/")[2] for path in self.files if path.endswith("_0.parquet")]
        manifest = {"files": [{"fileName": each, "fileLen": 1} for each in there]}
        self.files[f"{self.timeline}/history/manifest_1"] = json.dumps(manifest).encode()
        self.files[f"{self.timeline}/history/_version_"] = b"1"

    def instant(self) -> str:
        self._minutes += 1
        return instant_of(BEGINNING + timedelta(minutes=self._minutes))

    def place(self, partition: str | None) -> str:
        """The folder of a partition, with a slash at its end."""
        return f"country={partition or 'de'}/" if self.partitioned else ""

    def save(self, folder: Path) -> Path:
        for path, data in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

    def _name(self, group: str, begun: str, *, logs: bool, base_instant: str | None) -> str:
        if not logs:
            return f"{group}_0-1-{self._minutes}_{begun}.parquet"
        # Up to version 6 logs are named after the base file that they follow.
        named = base_instant if base_instant and self.version < 8 else begun
        return f".{group}_{named}.log.{self._minutes}_0-1-{self._minutes}"

    def _body(self, content: dict[str, Any]) -> bytes:
        if self.version < 8:
            return json.dumps(content).encode()
        file = BytesIO()
        fastavro.writer(file, _COMMIT, [content])
        return file.getvalue()

    def _put(self, path: str, data: bytes, begun: str) -> None:
        self.files[path] = data
        self.modified[path] = microseconds(moment_of(begun))


def instant_of(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}000"


def moment_of(instant: str) -> datetime:
    return datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def later(instant: str) -> str:
    """When a write that began at that instant ended."""
    return instant_of(moment_of(instant) + timedelta(seconds=5))


def microseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def escaped(text: str) -> str:
    """A value as Java writes it into properties."""
    return text.replace("\\", "\\\\").replace(":", "\\:").replace("=", "\\=")


def _rows(count: int) -> bytes:
    return _parquet(pa.table({"id": list(range(count)), "name": ["x"] * count}))


def _parquet(table: pa.Table) -> bytes:
    file = BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def _appended(table: HudiTable) -> None:
    table.write({"a": 3})
    table.write({"b": 4}, partition="fr")


def _updated(table: HudiTable) -> None:
    table.write({"a": 3, "b": 2})
    table.write({"a": 5})
    table.write({"a": 6})


def _cleaned(table: HudiTable) -> None:
    first = table.write({"a": 3, "b": 2})
    table.write({"a": 5})
    table.clean(("a", first))


def _overwritten(table: HudiTable) -> None:
    table.write({"a": 3})
    table.write({"b": 3}, partition="fr")
    table.write(
        {"c": 1},
        operation="INSERT_OVERWRITE",
        action="replacecommit",
        replaces={"de": ["a"]},
    )


def _clustered(table: HudiTable) -> None:
    table.write({"a": 3, "b": 2})
    table.write({"c": 5}, operation="CLUSTER", action="replacecommit", replaces={"de": ["a", "b"]})


def _evolved(table: HudiTable) -> None:
    table.write({"a": 3})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    table.write({"b": 3})
    table.schema = avro_schema({**COLUMNS, "age": "long"})
    table.write({"c": 3})


def _rolled_back(table: HudiTable) -> None:
    table.write({"a": 3})
    failed = table.write({"a": 4}, ends=False)
    table.roll_back(failed)
    table.write({"b": 1})


def _under_way(table: HudiTable) -> None:
    table.write({"a": 3})
    table.write({"a": 4, "b": 1}, ends=False)


def _archived(table: HudiTable) -> None:
    first = table.write({"a": 3})
    table.schema = avro_schema({**COLUMNS, "age": "int"})
    second = table.write({"b": 3})
    table.write({"c": 3})
    table.archive(first, second)


def _logged(table: HudiTable) -> None:
    first = table.write({"a": 3, "b": 2})
    table.write({"a": 1}, logs=True, base_instant=first)
    table.write({"a": 1}, logs=True, base_instant=first)


def _compacted(table: HudiTable) -> None:
    first = table.write({"a": 3})
    table.write({"a": 1}, logs=True, base_instant=first)
    compaction = table.write({"a": 4}, operation="COMPACT", action="commit")
    table.write({"a": 1}, logs=True, base_instant=compaction)


def _logs_alone(table: HudiTable) -> None:
    first = table.write({"a": 3}, logs=True)
    table.write({"a": 2}, logs=True, base_instant=first)


SCENARIOS: dict[str, Callable[[HudiTable], None]] = {
    "appended": _appended,
    "updated": _updated,
    "cleaned": _cleaned,
    "overwritten": _overwritten,
    "clustered": _clustered,
    "evolved": _evolved,
    "rolled back": _rolled_back,
    "under way": _under_way,
    "archived": _archived,
}
ON_READ: dict[str, Callable[[HudiTable], None]] = {
    "logged": _logged,
    "compacted": _compacted,
    "logs alone": _logs_alone,
}


def table_of(scenario: str, version: int) -> HudiTable:
    """A table that went through one of the scenarios."""
    table = HudiTable(version, merged_on_read=scenario in ON_READ)
    {**SCENARIOS, **ON_READ}[scenario](table)
    return table
