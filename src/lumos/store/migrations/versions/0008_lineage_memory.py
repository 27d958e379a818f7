"""Add `lineage_reporter.memory`: state that a reporter needs to interpret later events."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("lineage_reporter", sa.Column("memory", sa.LargeBinary))
