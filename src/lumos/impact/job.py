"""Queries that Spark analyses over empty tables: nothing is run, read or written.

Only what Spark Connect has, too, is used here: queries as text, and temporary views of a session.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lumos.spark.session import is_connect, spark_session

# The JSON value of a StructType.
SparkSchema = Mapping[str, Any]

_CONDITION: Final = re.compile(r"^\s*\[([A-Z][A-Z0-9_.]+)\]\s*")
# What follows the message itself: SQLSTATE, the place in the text, the text, plans, Java's stack.
_DETAILS: Final = re.compile(
    r"\s*(?:SQLSTATE:|;\s*line \d|\n\s*==|\n'|\n\+-|\n\s+at |JVM stacktrace)"
)
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s+[A-Z]|\s*$)", re.DOTALL)
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class Storing(NamedTuple):
    """Where a result goes: columns that have types of their own.

    The result takes their names by position, unless `is_by_name`; what it does not have then gets
    nulls, unless it `needs_all`.
    """

    schema: SparkSchema
    is_by_name: bool = False
    needs_all: bool = False


class Refusal(NamedTuple):
    """Why Spark does not analyse a query; `condition` is the class of its errors."""

    condition: str | None
    message: str

    @property
    def text(self) -> str:
        return f"{self.condition}: {self.message}" if self.condition else self.message


class Stage:
    """Empty tables in a session, under names that nobody else has, and queries over them."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._prefix = f"lumos_rehearsal_{uuid.uuid4().hex[:12]}"
        self._views: dict[str, str] = {}

    def table(self, schema: SparkSchema) -> str:
        """The name of an empty table with that schema; equal schemas share one."""
        wanted = StructType.fromJson(dict(schema))
        key = wanted.json()
        if key not in self._views:
            name = f"{self._prefix}_{len(self._views)}"
            self._session.createDataFrame([], wanted).createTempView(name)
            self._views[key] = name
        return self._views[key]

    def analyse(
        self, sql: str, *, columns: Sequence[str] = (), storing: Storing | None = None
    ) -> SparkSchema | Refusal:
        """The columns of a query's result, or why there are none.

        `columns` are other names for them. The text must be a query: a command would be run.
        """
        try:
            return self._result(sql, columns, storing).schema.jsonValue()
        except AnalysisException as problem:
            return refusal(problem)
        except PySparkException as problem:
            # What has no condition is a lost connection or the like, and no word on the query.
            if problem.getCondition() is None:
                raise
            return refusal(problem)
        except Py4JJavaError as problem:
            return refusal(problem)

    def _result(self, sql: str, columns: Sequence[str], storing: Storing | None) -> DataFrame:
        frame = self._session.sql(sql)
        if columns:
            frame = frame.toDF(*columns)
        if storing is None:
            return frame
        target = StructType.fromJson(dict(storing.schema))
        if not storing.is_by_name:
            frame = frame.toDF(*target.names)
        elif storing.needs_all:
            frame = frame.select(*(f"`{name.replace('`', '``')}`" for name in target.names))
        # Connect takes the target for the schema of the result, unasked, unless more is to be done.
        return frame.to(target).select("*")

    def close(self) -> None:
        """Takes the empty tables away."""
        for name in self._views.values():
            self._session.catalog.dropTempView(name)
        self._views.clear()


@contextmanager
def stage_on(
    *, master: str, settings: Mapping[str, str], meanwhile: Callable[[], None]
) -> Iterator[Stage]:
    """A stage on a master; `meanwhile` is done while Spark starts."""
    with ExitStack() as stack:
        if not is_connect(master):
            # Spark makes the folder of its tables in the working folder, even if there are none.
            folder = stack.enter_context(TemporaryDirectory(prefix="lumos-"))
            settings = {"spark.sql.warehouse.dir": Path(folder).as_uri(), **settings}
        session = stack.enter_context(
            spark_session(master=master, settings=settings, meanwhile=meanwhile)
        )
        yield stack.enter_context(stage(session))


@contextmanager
def stage(session: SparkSession) -> Iterator[Stage]:
    """A stage that is empty afterwards; that queries are refused is no news for the log."""
    made = Stage(session)
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield made
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
        made.close()


def refusal(problem: Exception) -> Refusal:
    """The class of an error and its first sentence, without the plans and stacks behind it."""
    text = str(problem)
    condition = problem.getCondition() if isinstance(problem, PySparkException) else None
    told = _CONDITION.match(text)
    if told is not None:
        condition, text = condition or told.group(1), text[told.end() :]
    text = _DETAILS.split(text.strip(), maxsplit=1)[0]
    sentence = _SENTENCE.match(text)
    message = " ".join((sentence.group(1) if sentence else text).split())
    return Refusal(condition, message.rstrip(";"))
