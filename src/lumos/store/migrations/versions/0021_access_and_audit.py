"""Add API tokens and gate results, and make the rows of the audit log a hash chain."""

import hashlib
from datetime import UTC, datetime, timedelta

import msgspec
import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE = 1_000


def upgrade() -> None:
    for column in (
        sa.Column("kind", sa.Text, nullable=False, server_default="user"),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text),
        sa.Column("request_id", sa.Text, nullable=False, server_default=""),
        sa.Column("hash", sa.Text, nullable=False, server_default=""),
    ):
        op.add_column("audit", column)
    head = op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )
    sequence, hash = _chain(op.get_bind())
    op.bulk_insert(head, [{"id": 1, "sequence": sequence, "hash": hash}])
    op.create_table(
        "api_token",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_api_token"),
    )
    op.create_table(
        "gate_result",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.Column("recorded_by", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("pr", sa.Integer),
        sa.Column("head", sa.Text, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_gate_result"),
    )
    op.create_index(
        "ix_gate_result_repository_recorded_at", "gate_result", ["repository", "recorded_at"]
    )


def _chain(connection: sa.Connection) -> tuple[int, str]:
    """Number the existing rows without gaps and hash each; return the last number and hash."""
    names = ("sequence", "recorded_at", "actor", "origin", "action", "target", "details", "hash")
    audit = sa.table("audit", *map(sa.column, names))
    number, hash, last = 0, "0" * 64, 0
    while rows := connection.execute(
        sa.select(audit).where(audit.c.sequence > last).order_by(audit.c.sequence).limit(_PAGE)
    ).all():
        for row in rows:
            number += 1
            last = row.sequence
            at = (_EPOCH + timedelta(microseconds=int(row.recorded_at))).isoformat()
            values = [
                hash, number, at, "user", row.actor, row.origin, row.action, row.target,
                row.details, None, None, "",
            ]  # fmt: skip
            hash = hashlib.sha256(msgspec.json.encode(values)).hexdigest()
            connection.execute(
                sa.update(audit)
                .where(audit.c.sequence == row.sequence)
                .values(sequence=number, hash=hash)
            )
    return number, hash
