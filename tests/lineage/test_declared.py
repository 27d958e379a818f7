"""Edges that people declare in YAML."""

from pathlib import Path

import pytest

from lumos.config.yaml_tree import ConfigurationError
from lumos.lineage.declared import parse_reference, report_declarations
from lumos.lineage.reported_lineage import (
    LocationReference,
    ReportedLineage,
    TableName,
    UrnReference,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

WHOLE = """\
lineage:
  - from: s3://lake/raw/orders
    to: analytics.totals
    type: TRANSFORMED
    confidence: 0.9
    job: lumos://airflow/nightly/totals
    columns:
      - customer_id
      - from: amount
        to: total
        expression: SUM(amount)
        derivation: AGGREGATION
    uses:
      - column: country
        usage: FILTER
        expression: country = 'DE'
  - upstream: lumos://postgres/shop/public/customers
    downstream: ./exports/customers
    type: COPIED
"""


def declared(folder: Path, text: str) -> ReportedLineage:
    (folder / "edges.yaml").write_text(text)
    return report_declarations(folder / "edges.yaml", name="edges.yaml")


def test_a_file_gives_its_edges_with_columns_and_uses(tmp_path):
    found = declared(tmp_path, WHOLE)
    totals, export = found.edges
    assert found.reporter == "declared:edges.yaml"
    assert (totals.upstream, totals.downstream) == (
        LocationReference(uri="s3://lake/raw/orders"),
        TableName(parts=("analytics", "totals")),
    )
    assert (totals.confidence, totals.job) == (0.9, "lumos://airflow/nightly/totals")
    assert totals.columns == (
        ColumnMapping(upstream="customer_id", downstream="customer_id", file="edges.yaml", line=2),
        ColumnMapping(
            upstream="amount",
            downstream="total",
            transformation="SUM(amount)",
            derivation=Derivation.AGGREGATION,
            file="edges.yaml",
            line=2,
        ),
    )
    assert totals.uses == (
        ColumnUse(
            upstream="country",
            usage=UseKind.FILTER,
            expression="country = 'DE'",
            file="edges.yaml",
            line=2,
        ),
    )
    assert (export.upstream, export.downstream, export.type) == (
        UrnReference(urn="lumos://postgres/shop/public/customers"),
        LocationReference(uri=str(tmp_path / "exports/customers")),
        "COPIED",
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("lineage:\n  - from: a\n", 2, "needs 'downstream' or 'to'"),
        ("lineage:\n  - from: a\n    to: b\n    tpye: VIEW\n", 4, "Did you mean 'type'?"),
        ("lineage:\n  - from: a\n    to: b\n    type: MAGIC\n", 4, "one of"),
        ("lineage:\n  - from: a\n    to: b\n    confidence: 3\n", 4, "a number from 0 to 1"),
        ("lineage:\n  - from: lumos://\n    to: b\n", 2, "is not a dataset URN"),
        ("lineage:\n  - from: a\n    to: b\n    job: nightly\n", 2, "must be a URN"),
        (
            "lineage:\n  - from: a\n    to: b\n    uses:\n      - {column: c, usage: GUESSED}\n",
            5,
            "one of",
        ),
        ("lineage: a -> b\n", 1, "a list"),
        ("lineage:\n  - from: !!python/object:os.system a\n    to: b\n", 2, "tag"),
        ("lineage:\n\t- from: a\n", 2, "tab"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, line, words):
    with pytest.raises(ConfigurationError) as raised:
        declared(tmp_path, text)
    assert raised.value.line == line
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sales.Orders", TableName(parts=("sales", "orders"))),
        ('sales."Orders"', TableName(parts=("sales", "Orders"))),
        ("/data/orders", LocationReference(uri="/data/orders")),
        ("gs://lake/orders", LocationReference(uri="gs://lake/orders")),
        ("lumos://s3/lake/orders/", UrnReference(urn="lumos://s3/lake/orders")),
    ],
)
def test_a_dataset_is_named_by_urn_address_or_table(text, expected):
    assert parse_reference(text) == expected
