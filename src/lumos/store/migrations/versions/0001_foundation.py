"""Create tables for datasets, aspects, schema versions, events, aliases, audit and scans."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "schema_body",
        sa.Column("hash", sa.String(32), nullable=False),
        sa.Column("shape", sa.String(32), nullable=False),
        sa.Column("full", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_schema_body"),
    )
    op.create_table(
        "dataset",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("format", sa.Text),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("cloud_version", sa.Text, nullable=False),
        sa.Column("schema_version", sa.Text, nullable=False),
        sa.Column("schema_hash", sa.String(32)),
        sa.Column("fingerprint", sa.String(32), nullable=False),
        sa.Column("content", sa.String(32), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("urn", name="pk_dataset"),
        sa.ForeignKeyConstraint(
            ["schema_hash"], ["schema_body.hash"], name="fk_dataset_schema_hash"
        ),
    )
    op.create_index("ix_dataset_source", "dataset", ["source"])
    op.create_index("ix_dataset_platform_format", "dataset", ["platform", "format"])
    op.create_index("ix_dataset_name", "dataset", ["name"])
    op.create_table(
        "aspect",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("urn", "name", name="pk_aspect"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_aspect_urn"),
    )
    op.create_table(
        "schema_version",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("cloud_version", sa.Text, nullable=False),
        sa.Column("schema_hash", sa.String(32), nullable=False),
        sa.Column("event_id", sa.String(32), nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("urn", "number", name="pk_schema_version"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_schema_version_urn"),
        sa.ForeignKeyConstraint(
            ["schema_hash"], ["schema_body.hash"], name="fk_schema_version_schema_hash"
        ),
        sa.UniqueConstraint("urn", "version", name="uq_schema_version_urn_version"),
    )
    op.create_table(
        "change_event",
        sa.Column("sequence", COUNTER, nullable=False, autoincrement=True),
        sa.Column("event_id", sa.String(32), nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("breaking", sa.Boolean, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_change_event"),
        sa.UniqueConstraint("event_id", name="uq_change_event_event_id"),
    )
    op.create_index("ix_change_event_urn_sequence", "change_event", ["urn", "sequence"])
    op.create_index("ix_change_event_recorded_at", "change_event", ["recorded_at"])
    op.create_table(
        "alias",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("dataset_urn", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("urn", name="pk_alias"),
        sa.ForeignKeyConstraint(["dataset_urn"], ["dataset.urn"], name="fk_alias_dataset_urn"),
    )
    op.create_index("ix_alias_dataset_urn", "alias", ["dataset_urn"])
    op.create_table(
        "audit",
        sa.Column("sequence", COUNTER, nullable=False, autoincrement=True),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_audit"),
    )
    op.create_index("ix_audit_recorded_at", "audit", ["recorded_at"])
    op.create_table(
        "scan",
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("scan_id", sa.Text, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("finished_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_scan"),
    )
