"""Add the recipients of messages, and the runs of reminders."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("notification", sa.Column("recipient", sa.Text))
    op.create_table(
        "reminder_run",
        sa.Column("reminder", sa.Text, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("ran_at", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("reminder", "due_at", name="pk_reminder_run"),
    )
