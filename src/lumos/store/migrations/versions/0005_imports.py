"""Add extras of datasets, other catalog items, merge bases and the journal of imports."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "beside",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("name", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("urn", "name", name="pk_beside"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_beside_urn"),
    )
    op.create_table(
        "item",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("kind", "key", name="pk_item"),
    )
    op.create_table(
        "merge_base",
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("platform", "kind", "key", name="pk_merge_base"),
    )
    op.create_table(
        "import_run",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("snapshot", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("reached_kind", sa.String(16)),
        sa.Column("reached_key", sa.Text),
        sa.Column("sums", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_import_run"),
        sa.UniqueConstraint("sequence", name="uq_import_run_sequence"),
    )
    op.create_index("ix_import_run_platform_sequence", "import_run", ["platform", "sequence"])
    op.create_table(
        "import_step",
        sa.Column("run", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("before", sa.LargeBinary),
        sa.Column("after", sa.LargeBinary, nullable=False),
        sa.Column("base", sa.LargeBinary),
        sa.PrimaryKeyConstraint("run", "kind", "key", name="pk_import_step"),
        sa.ForeignKeyConstraint(["run"], ["import_run.id"], name="fk_import_step_run"),
    )
