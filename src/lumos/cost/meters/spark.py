"""Reads the resource usage of applications from Spark event logs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from lumos.config.prices import GB
from lumos.cost.meters.compression import UnreadableUsageFile, read_lines
from lumos.model.cost import MeteredUsage

ENGINE: Final = "spark"
FIRST_EVENT: Final = b'{"Event":"SparkListener'
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_PER_HOUR: Final = 3_600_000
_MAX_OUTPUTS: Final = 10_000
# Numbers with more digits are corrupt.
_MAX_DIGITS: Final = 18
_EVENT_NAME: Final = re.compile(rb'\{"Event":"(?:[\w.$]*\.)?(SparkListener\w+)"')
_BYTES_READ: Final = "internal.metrics.input.bytesRead"
_OUTPUT_PATH: Final = re.compile(
    r"Execute InsertIntoHadoopFsRelationCommand ([a-z][a-z0-9+.-]*:/[^,\s]*), "
)


class _Info(msgspec.Struct, rename={"cores": "Total Cores"}):
    cores: int = 0


class _Accumulable(msgspec.Struct, rename={"name": "Name", "value": "Value"}):
    name: str | None = None
    value: Any = None


class _Stage(
    msgspec.Struct, rename={"completed": "Completion Time", "accumulables": "Accumulables"}
):
    completed: int | None = None
    accumulables: list[_Accumulable] = []


class _Plan(msgspec.Struct):
    simpleString: str = ""
    children: list["_Plan"] = []


class _Event(
    msgspec.Struct,
    rename={
        "name": "Event", "timestamp": "Timestamp", "app_name": "App Name", "app_id": "App ID",
        "attempt": "App Attempt ID", "executor": "Executor ID", "info": "Executor Info",
        "stage": "Stage Info", "completed": "Completion Time", "properties": "Spark Properties",
        "plan": "sparkPlanInfo", "time": "time",
    },
):  # fmt: skip
    """The fields that Lumos uses, of all types of events."""

    name: str
    timestamp: int | None = None
    app_name: str | None = None
    app_id: str | None = None
    attempt: str | None = None
    executor: str | None = None
    info: _Info | None = None
    stage: _Stage | None = None
    completed: int | None = None
    properties: dict[str, str] | None = None
    plan: _Plan | None = None
    time: int | None = None

    @property
    def at(self) -> int:
        """The time of the event in milliseconds since 1970, or 0."""
        ended = self.stage.completed if self.stage else None
        return self.timestamp or self.completed or self.time or ended or 0


_DECODE: Final = msgspec.json.Decoder(_Event).decode


class Application(NamedTuple):
    """The usage of one application, and remarks on it."""

    metered: MeteredUsage
    remarks: tuple[str, ...]


def read_event_log(paths: Sequence[str], *, name: str, engine: str = "") -> Application:
    """The usage of an application from its event log, or from the parts of a rolling one."""
    log = _EventLog()
    for line in chain.from_iterable(map(read_lines, paths)):
        log.add(line)
    return log.application(name, engine or ENGINE)


class _EventLog:
    """Accumulates the events of one application."""

    def __init__(self) -> None:
        self._app: _Event | None = None
        self._ended = 0
        self._latest = 0
        self._executors: dict[str, tuple[int, int]] = {}
        self._core_milliseconds = 0
        self._bytes_read = 0
        self._outputs: dict[str, None] = {}
        self._properties: dict[str, str] = {}
        self._unreadable_lines = 0

    def add(self, line: bytes) -> None:
        match = _EVENT_NAME.match(line)
        if match is None:
            self._unreadable_lines += bool(line.strip()) and not line.startswith(b'{"Event":')
            return
        handle = _HANDLERS.get(match.group(1).decode())
        if handle is None:
            return
        try:
            event = _DECODE(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self._unreadable_lines += 1
            return
        self._latest = max(self._latest, event.at)
        handle(self, event)

    def on_application_start(self, event: _Event) -> None:
        self._app = event

    def on_application_end(self, event: _Event) -> None:
        self._ended = event.at

    def on_executor_added(self, event: _Event) -> None:
        if event.executor and event.info:
            self._executors[event.executor] = (event.at, max(event.info.cores, 0))

    def on_executor_removed(self, event: _Event) -> None:
        if event.executor in self._executors:
            since, cores = self._executors.pop(event.executor)
            self._core_milliseconds += cores * max(event.at - since, 0)

    def on_stage_completed(self, event: _Event) -> None:
        for each in event.stage.accumulables if event.stage else ():
            if each.name == _BYTES_READ:
                self._bytes_read += _to_integer(each.value)

    def on_environment_update(self, event: _Event) -> None:
        self._properties = event.properties or {}

    def on_sql_execution_start(self, event: _Event) -> None:
        if event.plan is None or len(self._outputs) >= _MAX_OUTPUTS:
            return
        for node in _walk_plan(event.plan):
            if match := _OUTPUT_PATH.match(node.simpleString):
                self._outputs[match.group(1)] = None

    def on_other_event(self, event: _Event) -> None:
        """Ignore everything but the time of the event, which `add` has recorded."""

    def application(self, name: str, engine: str) -> Application:
        app = self._app
        if app is None or not app.timestamp:
            raise UnreadableUsageFile(name, "it has no application start event")
        end = max(self._ended or self._latest, app.timestamp)
        core_milliseconds = self._core_milliseconds + sum(
            count * max(end - since, 0) for since, count in self._executors.values()
        )
        core_milliseconds += self._driver_cores() * (end - app.timestamp)
        run = app.app_id or f"{app.app_name}-{app.timestamp}"
        quantities = {
            "core_hour": _quantity(core_milliseconds, _MILLISECONDS_PER_HOUR),
            "hour": _quantity(end - app.timestamp, _MILLISECONDS_PER_HOUR),
            "gb_processed": _quantity(self._bytes_read, GB),
        }
        metered = MeteredUsage(
            target=app.app_name or run,
            engine=engine,
            started_at=_time(app.timestamp),
            ended_at=_time(end),
            quantities=quantities,
            run=f"{run}/{app.attempt}" if app.attempt else run,
            outputs=tuple(self._outputs),
        )
        return Application(metered, tuple(self._remarks(name)))

    def _driver_cores(self) -> int:
        """The cores of the driver, which only uses cores of the cluster in cluster mode."""
        if self._properties.get("spark.submit.deployMode") != "cluster":
            return 0
        cores = self._properties.get("spark.driver.cores", "1")
        return _to_integer(cores) or 1

    def _remarks(self, name: str) -> Iterator[str]:
        if not self._ended:
            yield (
                f"{name}: the application is still running or was killed; its usage is included up "
                "to its last event. Import it again when it has ended."
            )
        if self._unreadable_lines:
            yield f"{name}: {self._unreadable_lines:,} lines could not be read."


_HANDLERS: Final = {
    "SparkListenerApplicationStart": _EventLog.on_application_start,
    "SparkListenerApplicationEnd": _EventLog.on_application_end,
    "SparkListenerExecutorAdded": _EventLog.on_executor_added,
    "SparkListenerExecutorRemoved": _EventLog.on_executor_removed,
    "SparkListenerStageCompleted": _EventLog.on_stage_completed,
    "SparkListenerEnvironmentUpdate": _EventLog.on_environment_update,
    "SparkListenerSQLExecutionStart": _EventLog.on_sql_execution_start,
    "SparkListenerSQLExecutionEnd": _EventLog.on_other_event,
    "SparkListenerJobEnd": _EventLog.on_other_event,
}


def _walk_plan(plan: _Plan) -> Iterable[_Plan]:
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children)


def _to_integer(value: object) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if len(value) <= _MAX_DIGITS else 0
    return value if isinstance(value, int) and value > 0 else 0


def _quantity(value: int, unit: int) -> Decimal:
    return (Decimal(value) / unit).quantize(Decimal("1e-9")).normalize() + 0


def _time(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)
