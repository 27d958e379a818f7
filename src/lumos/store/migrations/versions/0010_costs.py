"""Add metered usage, cost overrides, storage sizes and costs by period."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cost_meter",
        sa.Column("reporter", sa.Text, nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("reporter", "key", name="pk_cost_meter"),
    )
    op.create_index("ix_cost_meter_reporter_target", "cost_meter", ["reporter", "target"])
    op.create_index("ix_cost_meter_started_at", "cost_meter", ["started_at"])
    op.create_table(
        "cost_override",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("since", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("until", sa.Integer),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("set_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("urn", "type", "since", name="pk_cost_override"),
    )
    op.create_table(
        "storage_size",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("classes", sa.LargeBinary),
        sa.PrimaryKeyConstraint("urn", "day", name="pk_storage_size"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "cost_period",
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sa.Column("method", sa.String(32), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("computed_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_cost_period"),
    )
    op.create_table(
        "cost_figure",
        sa.Column("period", sa.String(32), nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("own", sa.BigInteger, nullable=False),
        sa.Column("attributed", sa.BigInteger, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("retained", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("period", "urn", "type", name="pk_cost_figure"),
        sa.ForeignKeyConstraint(["period"], ["cost_period.name"], name="fk_cost_figure_period"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_cost_figure_urn", "cost_figure", ["urn"])
