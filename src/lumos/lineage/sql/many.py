"""Many texts of SQL at once, on several processors."""

import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from typing import Final, NamedTuple

from lumos.lineage.sql.analysis import analyse
from lumos.lineage.sql.context import Columns, no_columns
from lumos.lineage.sql.script import Script

# Below this, starting another process takes longer than what it would save.
_WORTHWHILE: Final = 400_000
_PIECES: Final = 8


class SqlText(NamedTuple):
    """A text with the name that its script will carry."""

    text: str
    file: str | None = None
    dialect: str | None = None


def analyse_many(
    texts: Sequence[SqlText], *, columns: Columns = no_columns, processes: int | None = None
) -> Iterator[Script]:
    """The scripts of many texts, in their order.

    Processes of their own share the work if there is enough of it and `columns` can be sent there;
    by default as many as there are processors.
    """
    count = min(processes or os.cpu_count() or 1, len(texts))
    size = sum(len(each.text) for each in texts)
    if count < 2 or size < _WORTHWHILE or not _can_be_sent(columns):
        for each in texts:
            yield _analysed(each, columns)
        return
    # A forked process would inherit locks and connections of this one.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        chunk = max(1, len(texts) // (count * _PIECES))
        yield from pool.map(_analysed, texts, repeat(columns), chunksize=chunk)


def _analysed(given: SqlText, columns: Columns) -> Script:
    return analyse(given.text, dialect=given.dialect, columns=columns, file=given.file)


def _can_be_sent(columns: Columns) -> bool:
    try:
        pickle.dumps(columns)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
