"""Long logs on Spark: the same statements and sums as in one process."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from lumos.config import Settings
from lumos.discovery.scans import check_state
from lumos.sources.addresses import access_of
from lumos.usage.counts import Statements, read_piece
from lumos.usage.query_log import Piece


class _Reading:
    """Reads an encoded piece; it travels to executors with what all pieces have in common."""

    def __init__(self, reading: Mapping[str, Any]) -> None:
        self._reading = dict(reading)

    def __call__(self, piece: bytes) -> Iterator[tuple[Any, ...]]:
        return read_piece(msgspec.msgpack.decode(piece, type=Piece), **self._reading)


@contextmanager
def statements_on_spark(
    settings: Settings, pieces: Iterable[Piece], reading: Mapping[str, Any], *, state: str
) -> Iterator[Statements]:
    """The statements of some pieces; executors must find the files under the same paths.

    Keys of statements that are counted already lie in the folder `state` meanwhile.
    """
    from lumos.spark.session import spark_session
    from lumos.usage.job import KeyFolder, QueryLog

    access = access_of(state, settings.sources)
    check_state(state, access)
    spark = settings.spark
    rows = [(each.log.path, each.start, msgspec.msgpack.encode(each)) for each in pieces]
    with spark_session(
        master=spark.master, settings=spark.properties(), short=False, libraries=("sqlglot",)
    ) as session:
        log = QueryLog(session, _Reading(reading), rows, KeyFolder(f"{state}/usage", access))
        try:
            yield log
        finally:
            log.close()
