"""Add releases and the refresh of each dataset after them."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "release",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_release"),
    )
    op.create_table(
        "release_refresh",
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("release", "urn", name="pk_release_refresh"),
        sa.ForeignKeyConstraint(["release"], ["release.name"], name="fk_release_refresh_release"),
    )
