"""Add the search index over names, paths, fields, descriptions, tags and owners."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import TSVECTOR

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "search_entry",
        sa.Column("id", COUNTER, nullable=False, autoincrement=True),
        sa.Column("urn", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("fields", sa.Text, nullable=False),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("facets", sa.Text, nullable=False),
        sa.Column("vector", TSVECTOR().with_variant(sa.Text(), "sqlite")),
        sa.PrimaryKeyConstraint("id", name="pk_search_entry"),
        sa.UniqueConstraint("urn", name="uq_search_entry_urn"),
        sa.ForeignKeyConstraint(["urn"], ["dataset.urn"], name="fk_search_entry_urn"),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE search_names USING fts5("
            "name, path, facets, content='search_entry', content_rowid='id', "
            "detail=column, tokenize='unicode61 remove_diacritics 0')"
        )
        op.execute(
            "CREATE VIRTUAL TABLE search_index USING fts5("
            "name, path, fields, words, facets, content='search_entry', content_rowid='id', "
            "detail=column, tokenize='unicode61 remove_diacritics 0')"
        )
    else:
        op.create_index(
            "ix_search_entry_vector", "search_entry", ["vector"], postgresql_using="gin"
        )
