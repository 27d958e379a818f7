"""The facts of Hudi tables are those that Hudi's own library tells."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lumos.formats.tables.hudi.reader import HudiReader
from lumos.formats.tables.interface import TableFacts
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema

from .folder import LocalFolder
from .hudi_tables import ON_READ, SCENARIOS, table_of

hudi = pytest.importorskip("hudi", reason="The judge is not installed.")

READER = HudiReader()


def facts_as_judged(root: Path) -> TableFacts:
    """The facts, after files, sizes, columns, rows and version were held against the judge's."""
    facts, memory = READER.read(LocalFolder(root), None, max_commits=1000)
    judge = hudi.HudiTableBuilder.from_base_uri(str(root)).build()
    sizes: dict[str, int] = {}
    for each in judge.get_file_slices():
        if each.base_file_name:
            sizes[each.base_file_relative_path()] = each.base_file_size
        logs = each.log_files_relative_paths()
        sizes.update(zip(logs, each.log_file_sizes, strict=True))
    live = list(READER.live(memory))
    assert {file.path: file.size for file in live} == sizes
    assert (facts.files, facts.bytes) == (len(sizes), sum(sizes.values()))
    assert _columns(facts.schema) == _columns(schema_from_arrow(judge.get_schema()))
    if facts.past:
        assert facts.version == judge.get_timeline().get_latest_commit_timestamp()
    for file in live:
        if file.format == "parquet" and file.rows is not None:
            assert file.rows == pq.read_metadata(root / file.path).num_rows
    return facts


def _columns(schema: Schema) -> list[tuple[str, str, bool]]:
    # The judge takes no element for null, whatever the schema says.
    return [
        (field.name, field.type.text.replace(" NOT NULL", ""), field.nullable)
        for field in schema.fields
    ]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("scenario", [*SCENARIOS, *ON_READ])
def test_a_table_is_read_as_its_own_library_reads_it(
    scenario: str, version: int, tmp_path: Path
) -> None:
    root = table_of(scenario, version).save(tmp_path)
    facts = facts_as_judged(root)
    assert facts.partition_by == ("country",)
