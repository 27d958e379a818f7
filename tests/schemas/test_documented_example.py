"""The founding documents' example on a real lake: scans, then all that is told of its schemas."""

from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet
from lumos import Lumos

pytestmark = pytest.mark.usefixtures("workplace", "spark")


def test_the_history_of_a_lake_that_changes(tmp_path: Path) -> None:
    lumos = Lumos()
    events = tmp_path / "lake/user_events"
    columns = {"event_id": pa.string(), "user_id": pa.string(), "timestamp": pa.timestamp("us"),
               "event_type": pa.string()}  # fmt: skip
    write_parquet(events / "part-0.parquet", **columns)
    lumos.ingest(tmp_path / "lake")
    lumos.schema.export("schemas")
    columns["session_id"] = pa.string()
    write_parquet(events / "part-1.parquet", **columns)
    lumos.ingest(tmp_path / "lake")
    columns["user_id"] = pa.int64()
    proposed = write_parquet(tmp_path / "proposed.parquet", **columns)
    predicted = lumos.schema.predict("user_events", proposed)
    write_parquet(events / "part-2.parquet", **columns)
    lumos.ingest(tmp_path / "lake")

    history = lumos.schema.history("user_events")
    assert [each.schema_version for each in history.versions] == ["2.0.0", "1.1.0", "1.0.0"]
    newest, middle, _ = history.versions
    assert [(row.path, row.before, row.after) for row in newest.changes] == [
        ("user_id", "STRING", "INT64")
    ]
    assert (newest.breaking, newest.source) == (True, str(events))
    assert [(row.path, row.kind) for row in middle.changes] == [("session_id", "added")]
    assert lumos.history("user_events") == history

    (foretold,) = predicted.datasets
    assert (foretold.to_version, foretold.changes) == ("2.0.0", newest.changes)
    (compared,) = lumos.schema.diff("user_events@1.1.0", "user_events@2.0.0").datasets
    assert compared.changes == newest.changes
    (exported,) = lumos.schema.diff("schemas/file/user_events.schema", "user_events").datasets
    assert exported.urn == history.urn
    assert (exported.from_version, exported.to_version) == ("1.0.0", "2.0.0")
    assert lumos.schema.evolution(since="1h").summary.breaking_changes == 1
    assert [each.added for each in lumos.schema.timeline("user_events").versions] == [0, 1, 0]
