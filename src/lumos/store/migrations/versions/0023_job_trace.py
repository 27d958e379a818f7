"""Add the headers with which a job continues the trace of its request."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("trace", sa.LargeBinary))
