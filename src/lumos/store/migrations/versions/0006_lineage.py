"""Add lineage edges and jobs by reporter, and convert lineage aspects to edges."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    node = op.create_table(
        "lineage_node",
        sa.Column("id", COUNTER, autoincrement=True, nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_node"),
        sa.UniqueConstraint("urn", name="uq_lineage_node_urn"),
    )
    reporter = op.create_table(
        "lineage_reporter",
        sa.Column("id", COUNTER, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("reported_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_reporter"),
        sa.UniqueConstraint("name", name="uq_lineage_reporter_name"),
    )
    edge = op.create_table(
        "lineage_edge",
        sa.Column("id", COUNTER, autoincrement=True, nullable=False),
        sa.Column("reporter", COUNTER, nullable=False),
        sa.Column("upstream", COUNTER, nullable=False),
        sa.Column("downstream", COUNTER, nullable=False),
        sa.Column("job", COUNTER, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("confidence", sa.Float(53), nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("first_seen", INSTANT, nullable=False),
        sa.Column("last_seen", INSTANT, nullable=False),
        sa.Column("body", sa.LargeBinary),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_edge"),
        sa.ForeignKeyConstraint(
            ["reporter"], ["lineage_reporter.id"], name="fk_lineage_edge_reporter"
        ),
        sa.ForeignKeyConstraint(["upstream"], ["lineage_node.id"], name="fk_lineage_edge_upstream"),
        sa.ForeignKeyConstraint(
            ["downstream"], ["lineage_node.id"], name="fk_lineage_edge_downstream"
        ),
        sa.UniqueConstraint(
            "reporter",
            "upstream",
            "downstream",
            "job",
            name="uq_lineage_edge_reporter_upstream_downstream_job",
        ),
    )
    op.create_index(
        "ix_lineage_edge_upstream_downstream", "lineage_edge", ["upstream", "downstream"]
    )
    op.create_index(
        "ix_lineage_edge_downstream_upstream", "lineage_edge", ["downstream", "upstream"]
    )
    op.create_table(
        "lineage_job",
        sa.Column("reporter", COUNTER, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("reporter", "job", name="pk_lineage_job"),
        sa.ForeignKeyConstraint(
            ["reporter"], ["lineage_reporter.id"], name="fk_lineage_job_reporter"
        ),
    )
    op.create_index("ix_lineage_job_job", "lineage_job", ["job"])
    now = op.create_table(
        "lineage_revision",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("revision", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_revision"),
    )
    connection = op.get_bind()
    connection.execute(now.insert(), {"id": 1, "revision": uuid.uuid4().hex})
    _copy_lineage_aspects(connection, node, reporter, edge)


def _copy_lineage_aspects(
    connection: sa.Connection, node: sa.Table, reporter: sa.Table, edge: sa.Table
) -> None:
    aspect = sa.table("aspect", *map(sa.column, ("urn", "name", "body", "writer", "updated_at")))
    alias = sa.table("alias", sa.column("urn"), sa.column("dataset_urn"))
    moved = {row.urn: row.dataset_urn for row in connection.execute(sa.select(alias))}
    nodes: dict[str, int] = {}
    aspects = connection.execute(sa.select(aspect).where(aspect.c.name == "lineage")).all()
    for number, row in enumerate(aspects, start=1):
        name = {"id": number, "name": f"snapshot:{row.urn}", "reported_at": row.updated_at}
        rows = {}
        for upstream, downstream, reported in _edges(row.urn, json.loads(row.body)):
            ends = [moved.get(urn, urn) for urn in (upstream, downstream)]
            for urn in ends:
                if urn not in nodes:
                    nodes[urn] = len(nodes) + 1
                    connection.execute(node.insert(), {"id": nodes[urn], "urn": urn})
            key = nodes[ends[0]], nodes[ends[1]]
            details = {part: reported[part] for part in ("columns", "uses") if reported.get(part)}
            rows[key] = {
                "reporter": number,
                "upstream": key[0],
                "downstream": key[1],
                "job": 0,
                "type": reported.get("type", "TRANSFORMED"),
                "confidence": 1.0,
                "created_by": row.writer,
                "first_seen": row.updated_at,
                "last_seen": row.updated_at,
                "body": json.dumps(details).encode() if details else None,
            }
        if rows:
            connection.execute(reporter.insert(), name)
            connection.execute(edge.insert(), list(rows.values()))
    if connection.dialect.name == "postgresql":
        # Inserting explicit ids does not advance the sequence.
        for table in ("lineage_node", "lineage_reporter"):
            connection.execute(
                sa.text(
                    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), "
                    f"(SELECT coalesce(max(id), 0) + 1 FROM {table}), false)"
                )
            )


def _edges(urn: str, lineage: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for each in lineage.get("upstream", ()):
        yield each["urn"], urn, each
    for each in lineage.get("downstream", ()):
        yield urn, each["urn"], each
