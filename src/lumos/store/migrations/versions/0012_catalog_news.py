"""Add the catalogs that Lumos publishes to, and the outbox of unpublished changes."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "told_catalog",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_told_catalog"),
        sa.UniqueConstraint("platform", name="uq_told_catalog_platform"),
    )
    op.create_table(
        "catalog_news",
        sa.Column("catalog", COUNTER, nullable=False, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("catalog", "kind", "key", name="pk_catalog_news"),
        sqlite_with_rowid=False,
    )
