"""The tables that deltalake itself is tested with, which Spark and others wrote."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from corpora import sdist
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.delta.reader import DeltaReader

from .delta_judge import ALL, DescribedTable, described, theirs
from .folder import LocalFolder

SHA256 = "91864d97adb429fa8b8748b4f68d69adab3d0417ffa9f100bdb85805890c997f"
# So many were in it when it was pinned.
TABLES = 60
# What deltalake does not load, and what Lumos says of it.
REFUSED = {
    "simple_table_features": "unsupported_feature",
    "table_c": "broken_table",
    "table_d": "unsupported_feature",
    "table_e": "unsupported_feature",
    "table_f": "unsupported_feature",
    "table_h": "unsupported_feature",
    "table_i": "unsupported_feature",
}
VARIANT = "STRUCT<metadata: BINARY NOT NULL, value: BINARY NOT NULL>"
# Those that hold a log alone, and one that its library knows, but does not scan.
NOT_SCANNED = {
    "checkpoints",
    "checkpoints_vacuumed",
    "latest_not_checkpointed",
    "spark-shredded-variant-preview-delta",
    "spark-variant-stable-feature-checkpoint",
    "table-with-domain-metadata",
    "table_a",
    "table_b",
    "table_g",
    "with_checkpoint_no_last_checkpoint",
}


@pytest.mark.slow
def test_every_published_table_is_read_as_its_library_reads_it() -> None:
    package = sdist("deltalake", "1.6.6", SHA256)
    roots = sorted(path.parent for path in package.rglob("_delta_log"))
    assert len(roots) == TABLES
    refused = {}
    for root in roots:
        try:
            DeltaTable(root)
        except DeltaError:
            refused[root.name] = _code(root)
            continue
        facts, memory = DeltaReader().read(LocalFolder(root), None, max_commits=ALL)
        _is_as_judged(described(facts, memory), root)
        assert [each.at for each in facts.past] == sorted(each.at for each in facts.past)
        again, _ = DeltaReader().read(LocalFolder(root), memory, max_commits=ALL)
        assert again == facts, root
    assert refused == REFUSED


def _is_as_judged(ours: DescribedTable, root: Path) -> None:
    expected = theirs(root)
    # It shows how variants are stored, and reads no statistics that stand in columns.
    schema = tuple(
        (name, type.replace(VARIANT, "JSON"), nullable) for name, type, nullable in expected.schema
    )
    files = {
        path: (size, ours.files[path][1] if rows is None else rows)
        for path, (size, rows) in expected.files.items()
    }
    rows = ours.rows
    if rows is not None and root.name not in NOT_SCANNED:
        rows = sum(batch.num_rows for batch in DeltaTable(root).scan())
    assert ours == expected._replace(schema=schema, files=files, rows=rows), root


def _code(root: Path) -> str:
    try:
        facts, _ = DeltaReader().read(LocalFolder(root), None, max_commits=ALL)
    except UnreadableFile as problem:
        return problem.code
    return ", ".join(remark.code for remark in facts.remarks)
