"""The trace of the request for a job, which the job continues."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("trace", sa.LargeBinary))
