"""Which catalogs are kept true, and what each of them has not heard of yet."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "told_catalog",
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("platform", name="pk_told_catalog"),
    )
    op.create_table(
        "catalog_news",
        sa.Column("platform", sa.Text, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("platform", "kind", "key", name="pk_catalog_news"),
        sqlite_with_rowid=False,
    )
