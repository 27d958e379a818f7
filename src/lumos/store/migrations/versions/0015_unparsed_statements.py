"""Add SQL statements that could not be parsed, with the tables that they mention."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "lineage_unparsed",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("reporter", COUNTER, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lineage_unparsed"),
        sa.ForeignKeyConstraint(
            ["reporter"], ["lineage_reporter.id"], name="fk_lineage_unparsed_reporter"
        ),
    )
    op.create_index("ix_lineage_unparsed_reporter", "lineage_unparsed", ["reporter"])
