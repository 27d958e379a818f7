"""What the oldest supported version of sqlglot cannot parse yet."""

from typing import Final

import sqlglot

READS_TABLE_QUERIES: Final = tuple(map(int, sqlglot.__version__.split(".")[:2])) >= (30, 30)
REASON: Final = "sqlglot parses CREATE TABLE ... AS TABLE since version 30.30"
