"""Add the notification outbox: messages about changes, by channel, and their state."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INSTANT = sa.BigInteger
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "notification",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("event_id", sa.String(32), nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("urgent", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.Column("claimed_by", sa.Text),
        sa.Column("claimed_until", INSTANT),
        sa.Column("sent_at", INSTANT),
        sa.Column("problem", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
        sa.UniqueConstraint("event_id", "channel", name="uq_notification_event_id_channel"),
    )
    op.create_index("ix_notification_state_due_at", "notification", ["state", "due_at"])
