"""The words of the search index, for suggestions; the index itself is made anew afterwards."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # PostgreSQL tells the words of its vectors by ts_stat.
    if op.get_bind().dialect.name == "sqlite":
        op.execute("CREATE VIRTUAL TABLE search_vocabulary USING fts5vocab('search_index', 'row')")
