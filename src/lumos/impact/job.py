"""Spark job of the Spark check: analyses queries over empty tables without running them.

Only features of Spark Connect are used: queries as text, and temporary views of a session.
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
# The end of the message: SQLSTATE, position, query text, plans or the Java stack trace follows.
_DETAILS: Final = re.compile(
    r"\s*(?:SQLSTATE:|;\s*line \d|\n\s*==|\n'|\n\+-|\n\s+at |JVM stacktrace)"
)
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s+[A-Z]|\s*$)", re.DOTALL)
_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class StoreTarget(NamedTuple):
    """The columns of an existing table that a result is stored in.

    They are matched by position, unless `is_by_name`; missing columns then become null, unless
    `needs_all_columns`.
    """

    schema: SparkSchema
    is_by_name: bool = False
    needs_all_columns: bool = False


class SparkRejection(NamedTuple):
    """The error of a query that Spark rejects; `condition` is the error class."""

    condition: str | None
    message: str

    @property
    def text(self) -> str:
        return f"{self.condition}: {self.message}" if self.condition else self.message


class SparkAnalyzer:
    """Analyses queries over empty temporary views with unique names."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._prefix = f"lumos_check_{uuid.uuid4().hex[:12]}"
        self._views: dict[str, str] = {}

    def table(self, schema: SparkSchema) -> str:
        """The name of an empty view with that schema, which is created if necessary."""
        schema_type = StructType.fromJson(dict(schema))
        key = schema_type.json()
        if key not in self._views:
            name = f"{self._prefix}_{len(self._views)}"
            self._session.createDataFrame([], schema_type).createTempView(name)
            self._views[key] = name
        return self._views[key]

    def analyse(
        self, sql: str, *, columns: Sequence[str] = (), target: StoreTarget | None = None
    ) -> SparkSchema | SparkRejection:
        """The schema of the result of a query, or the error if Spark rejects it.

        `columns` rename the result columns. `sql` must be a query: a command would be executed.
        """
        try:
            return self._result(sql, columns, target).schema.jsonValue()
        except AnalysisException as problem:
            return rejection_of(problem)
        except PySparkException as problem:
            # Errors without a condition, such as a lost connection, are not about the query.
            if problem.getCondition() is None:
                raise
            return rejection_of(problem)
        except Py4JJavaError as problem:
            return rejection_of(problem)

    def _result(self, sql: str, columns: Sequence[str], target: StoreTarget | None) -> DataFrame:
        frame = self._session.sql(sql)
        if columns:
            frame = frame.toDF(*columns)
        if target is None:
            return frame
        struct = StructType.fromJson(dict(target.schema))
        if not target.is_by_name:
            frame = frame.toDF(*struct.names)
        elif target.needs_all_columns:
            frame = frame.select(*(f"`{name.replace('`', '``')}`" for name in struct.names))
        # Spark Connect would return the target schema without analysis unless a select follows.
        return frame.to(struct).select("*")

    def close(self) -> None:
        """Drop the views."""
        for name in self._views.values():
            self._session.catalog.dropTempView(name)
        self._views.clear()


@contextmanager
def start_spark_analyzer(
    *, master: str, settings: Mapping[str, str], while_starting: Callable[[], None]
) -> Iterator[SparkAnalyzer]:
    """Create an analyzer on a new session; `while_starting` runs while Spark starts."""
    with ExitStack() as stack:
        if not is_connect(master):
            # Spark creates its warehouse folder in the working directory even if it stays empty.
            folder = stack.enter_context(TemporaryDirectory(prefix="lumos-"))
            settings = {"spark.sql.warehouse.dir": Path(folder).as_uri(), **settings}
        session = stack.enter_context(
            spark_session(master=master, settings=settings, run_meanwhile=while_starting)
        )
        yield stack.enter_context(spark_analyzer(session))


@contextmanager
def spark_analyzer(session: SparkSession) -> Iterator[SparkAnalyzer]:
    """Create an analyzer on a session; queries that are rejected are not logged as errors."""
    analyzer = SparkAnalyzer(session)
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    were_disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield analyzer
    finally:
        for logger, disabled in zip(loggers, were_disabled, strict=True):
            logger.disabled = disabled
        analyzer.close()


def rejection_of(problem: Exception) -> SparkRejection:
    """The error class and first sentence of an error, without plans and stack traces."""
    text = str(problem)
    condition = problem.getCondition() if isinstance(problem, PySparkException) else None
    prefix = _CONDITION.match(text)
    if prefix is not None:
        condition, text = condition or prefix.group(1), text[prefix.end() :]
    text = _DETAILS.split(text.strip(), maxsplit=1)[0]
    sentence = _SENTENCE.match(text)
    message = " ".join((sentence.group(1) if sentence else text).split())
    return SparkRejection(condition, message.rstrip(";"))
