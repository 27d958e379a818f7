"""Add the registry of jobs, their logs, and schedules."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("arguments", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("not_before", sa.BigInteger, nullable=False),
        sa.Column("time_limit", sa.Integer),
        sa.Column("idempotency_key", sa.Text),
        sa.Column("concurrency_key", sa.Text),
        sa.Column("concurrency_limit", sa.Integer, nullable=False),
        sa.Column("progress", sa.LargeBinary),
        sa.Column("completed_steps", sa.LargeBinary, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("error", sa.Text),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.BigInteger),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_job"),
        sa.UniqueConstraint("idempotency_key", name="uq_job_idempotency_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_job_state_priority_id", "job", ["state", "priority", "id"])
    op.create_index("ix_job_state_lease_until", "job", ["state", "lease_until"])
    op.create_index("ix_job_concurrency_key_state", "job", ["concurrency_key", "state"])
    op.create_index("ix_job_finished_at", "job", ["finished_at"])
    op.create_table(
        "job_log",
        sa.Column("job", COUNTER, nullable=False, autoincrement=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("job", "number", name="pk_job_log"),
        sa.ForeignKeyConstraint(["job"], ["job.id"], name="fk_job_log_job"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "schedule",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("arguments", sa.LargeBinary, nullable=False),
        sa.Column("cron", sa.Text, nullable=False),
        sa.Column("timezone", sa.Text, nullable=False),
        sa.Column("jitter", sa.Integer, nullable=False),
        sa.Column("catch_up", sa.String(8), nullable=False),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("next_due", sa.BigInteger, nullable=False),
        sa.Column("last_due", sa.BigInteger),
        sa.Column("last_job", sa.BigInteger),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("time_limit", sa.Integer),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_schedule"),
    )
    op.create_table(
        "schedule_run",
        sa.Column("schedule", sa.Text, nullable=False),
        sa.Column("due_at", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("job", sa.BigInteger),
        sa.PrimaryKeyConstraint("schedule", "due_at", name="pk_schedule_run"),
    )
