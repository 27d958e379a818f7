"""Add the SQL texts that reporters derived edges from."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "lineage_script",
        sa.Column("id", COUNTER, autoincrement=True, nullable=False),
        sa.Column("reporter", COUNTER, nullable=False),
        sa.Column("dataset", COUNTER),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_script"),
        sa.ForeignKeyConstraint(
            ["reporter"], ["lineage_reporter.id"], name="fk_lineage_script_reporter"
        ),
        sa.ForeignKeyConstraint(["dataset"], ["lineage_node.id"], name="fk_lineage_script_dataset"),
    )
    op.create_index("ix_lineage_script_reporter", "lineage_script", ["reporter"])
    op.create_index("ix_lineage_script_dataset", "lineage_script", ["dataset"])
