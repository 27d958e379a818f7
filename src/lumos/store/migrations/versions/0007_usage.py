"""Add reads of datasets by reader and day, and the keys of counted statements."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "usage_reads",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("reader", sa.Text, nullable=False),
        sa.Column("reporter", sa.Text, nullable=False),
        sa.Column("sum_key", sa.BigInteger, nullable=False),
        sa.Column("reads", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger),
        sa.Column("rows", sa.BigInteger),
        sa.Column("last_read", sa.BigInteger, nullable=False),
        sa.Column("columns", sa.LargeBinary),
        sa.PrimaryKeyConstraint(
            "urn", "day", "reader", "reporter", "sum_key", name="pk_usage_reads"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_usage_reads_reporter", "usage_reads", ["reporter"])
    op.create_table(
        "usage_log",
        sa.Column("reporter", sa.Text, nullable=False),
        sa.Column("day", sa.Integer, nullable=False),
        sa.Column("keys", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("reporter", "day", name="pk_usage_log"),
    )
    op.create_index("ix_usage_log_day", "usage_log", ["day"])
