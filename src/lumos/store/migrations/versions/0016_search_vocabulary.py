"""Add the words of the search index, for suggestions; the upgrade then rebuilds the index."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # PostgreSQL can list the words of its vectors with ts_stat.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE search_vocabulary USING fts5vocab('search_index', 'row')")
