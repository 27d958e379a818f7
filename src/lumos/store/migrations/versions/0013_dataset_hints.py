"""Add hints on which files form a dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "dataset_hint",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("digest", sa.String(32), nullable=False),
        sa.Column("paths", sa.Text, nullable=False),
        sa.Column("name", sa.Text),
        sa.Column("split", sa.Boolean, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_dataset_hint"),
        sa.UniqueConstraint("digest", name="uq_dataset_hint_digest"),
    )
