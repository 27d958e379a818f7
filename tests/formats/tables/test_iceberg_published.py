"""Iceberg tables that Trino wrote and publishes with its tests."""

import json
import zipfile

import pytest
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

import corpora

from .folder import MemoryFolder
from .iceberg_tables import MOST, READER

pytestmark = pytest.mark.slow
TRINO = ("io.trino", "trino-iceberg", "476")
SHA256 = "c804a441cb04863995ce4089bd7461f5eb7474faa39e718a405ed8820cbc84fb"


def table(name: str) -> MemoryFolder:
    root = f"iceberg/{name}/"
    with zipfile.ZipFile(corpora.jar(*TRINO, SHA256)) as jar:
        names = [each for each in jar.namelist() if each.startswith(root) and each != root]
        files = {each.removeprefix(root): jar.read(each) for each in names}
    return MemoryFolder(files, root=f"s3://found/{name}")


def judged(folder: MemoryFolder) -> TableMetadata:
    last = max(name for name in folder.files if name.endswith(".metadata.json"))
    return TableMetadataUtil.parse_obj(json.loads(folder.files[last]))


@pytest.mark.parametrize(
    ("name", "files", "schema"),
    [("timetravel", 3, "data INT32"), ("mixed_case_bloom_filter", 0, "dataColumn INT32")],
)
def test_a_table_that_trino_wrote_is_read(name: str, files: int, schema: str) -> None:
    folder = table(name)
    facts, memory = READER.read(folder, None, max_commits=MOST)
    judge = judged(folder)
    assert str(facts.schema) == schema
    assert facts.version == str(judge.current_snapshot_id)
    assert facts.identity == str(judge.table_uuid)
    snapshot = judge.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    summary = snapshot.summary.additional_properties
    assert (facts.files, facts.bytes, facts.rows) == tuple(
        int(summary[total]) for total in ("total-data-files", "total-files-size", "total-records")
    )
    live = sorted(file.path for file in READER.live(memory))
    assert live == sorted(path for path in folder.files if path.endswith(".parquet"))
    assert (len(live), facts.remarks) == (files, ())


def test_the_first_schema_is_as_old_as_the_table() -> None:
    facts, _ = READER.read(table("timetravel"), None, max_commits=MOST)
    assert [(str(past.at), past.exact_time) for past in facts.past] == [
        ("2023-06-30 05:01:46.265000+00:00", True)
    ]
