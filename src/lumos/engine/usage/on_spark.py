"""Long logs on Spark: the same statements and sums as in one process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lumos.config.settings import Spark
from lumos.engine.usage.counting import Statements, read_piece
from lumos.lineage.query_log import Piece


class _Reading:
    """Reads the piece with a number; it travels to executors with all pieces' places."""

    def __init__(self, pieces: Sequence[Piece], reading: Mapping[str, Any]) -> None:
        self._pieces = tuple(pieces)
        self._reading = dict(reading)

    def __call__(self, number: int) -> Iterator[tuple[Any, ...]]:
        return read_piece(self._pieces[number], **self._reading)


@contextmanager
def statements_on_spark(
    spark: Spark, pieces: Sequence[Piece], reading: Mapping[str, Any]
) -> Iterator[Statements]:
    """The statements of some pieces; executors must find the files under the same paths."""
    from lumos.pipeline.query_log import QueryLog
    from lumos.pipeline.session import spark_session

    with spark_session(
        master=spark.master, settings=spark.properties(), short=False, libraries=("sqlglot",)
    ) as session:
        log = QueryLog(session, _Reading(pieces, reading), pieces=len(pieces))
        try:
            yield log
        finally:
            log.close()
