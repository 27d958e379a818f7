"""Add owners of datasets from lineage reports."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "lineage_owner",
        sa.Column("reporter", COUNTER, nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("reporter", "urn", name="pk_lineage_owner"),
        sa.ForeignKeyConstraint(
            ["reporter"], ["lineage_reporter.id"], name="fk_lineage_owner_reporter"
        ),
    )
    op.create_index("ix_lineage_owner_urn", "lineage_owner", ["urn"])
