"""Add the state of scans about the schemas of each dataset's files."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schema_memory",
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("schema_hash", sa.String(32), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("urn", name="pk_schema_memory"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_schema_memory_urn"),
        sa.ForeignKeyConstraint(
            ["schema_hash"], ["schema_body.hash"], name="fk_schema_memory_schema_hash"
        ),
    )
