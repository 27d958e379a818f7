"""Index change events by time, by type and time, and breaking ones by time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_change_event_recorded_at", "change_event")
    op.create_index(
        "ix_change_event_recorded_at_sequence", "change_event", ["recorded_at", "sequence"]
    )
    op.create_index(
        "ix_change_event_type_recorded_at_sequence",
        "change_event",
        ["type", "recorded_at", "sequence"],
    )
    op.create_index(
        "ix_change_event_breaking",
        "change_event",
        ["recorded_at", "sequence"],
        sqlite_where=sa.text("breaking = 1"),
        postgresql_where=sa.text("breaking"),
    )
