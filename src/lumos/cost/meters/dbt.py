"""Reads run_results.json of dbt: the time for which each model used the warehouse."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from lumos.config.prices import GB
from lumos.cost.meters.compression import UnreadableUsageFile
from lumos.model.cost import MeteredUsage

ENGINE: Final = "dbt"
_SECONDS_PER_HOUR: Final = 3600
_MILLISECONDS_PER_HOUR: Final = 3_600_000
_SKIPPED_STATUSES: Final = frozenset(("skipped", "no-op", "not run"))
# Adapters that report the bytes that a statement read, and the keys of their responses.
_BYTE_ADAPTERS: Final = frozenset(("bigquery", "athena"))
_BYTE_KEYS: Final = ("bytes_billed", "bytes_processed", "data_scanned_in_bytes")


class _Timing(msgspec.Struct):
    name: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


class _Result(msgspec.Struct):
    unique_id: str
    status: str = ""
    execution_time: float = 0
    timing: list[_Timing] = []
    adapter_response: dict[str, Any] = {}


class _Metadata(msgspec.Struct):
    dbt_schema_version: str = ""
    generated_at: datetime | None = None
    invocation_id: str | None = None


class RunResults(msgspec.Struct):
    """The parts of run_results.json that Lumos uses."""

    metadata: _Metadata
    results: list[_Result]
    elapsed_time: float = 0


def read_run_results(data: bytes, *, name: str, engine: str = "") -> list[MeteredUsage]:
    """The usage of each node of a run.

    Threads share the warehouse: if the nodes together took longer than the run, their times are
    scaled down so that they add up to the duration of the run.
    """
    try:
        run = msgspec.json.decode(data, type=RunResults)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableUsageFile(name, f"it is not a run_results.json ({problem})") from None
    executed = [each for each in run.results if each.status.lower() not in _SKIPPED_STATUSES]
    total_time = sum(each.execution_time for each in executed)
    share = (
        min(1.0, run.elapsed_time / total_time) if run.elapsed_time > 0 and total_time > 0 else 1.0
    )
    return list(_node_usage(run, executed, share, name=name, engine=engine or ENGINE))


def _node_usage(
    run: RunResults, executed: Sequence[_Result], share: float, *, name: str, engine: str
) -> Iterator[MeteredUsage]:
    # Views read nothing, and many adapters omit the key for them: the bytes are 0, not unknown.
    reports_bytes = engine in _BYTE_ADAPTERS or any(
        key in each.adapter_response for each in executed for key in _BYTE_KEYS
    )
    for each in executed:
        seconds = max(each.execution_time, 0.0)
        started, ended = _time_range(each, run.metadata.generated_at, seconds, name)
        invocation = run.metadata.invocation_id or started.isoformat()
        yield MeteredUsage(
            target=each.unique_id,
            engine=engine,
            started_at=started,
            ended_at=ended,
            quantities=dict(_quantities(each, seconds * share, reports_bytes=reports_bytes)),
            run=f"{invocation}/{each.unique_id}",
        )


def _time_range(
    result: _Result, generated: datetime | None, seconds: float, name: str
) -> tuple[datetime, datetime]:
    starts = [_utc(each.started_at) for each in result.timing if each.started_at]
    ends = [_utc(each.completed_at) for each in result.timing if each.completed_at]
    if starts and ends:
        return min(starts), max(*ends, *starts)
    if generated is None:
        raise UnreadableUsageFile(name, f"it does not say when {result.unique_id} ran")
    end = _utc(generated)
    return end - timedelta(seconds=seconds), end


def _quantities(
    result: _Result, seconds: float, *, reports_bytes: bool
) -> Iterator[tuple[str, Decimal]]:
    yield "hour", _quantity(seconds, _SECONDS_PER_HOUR)
    response = result.adapter_response
    for key in _BYTE_KEYS:
        if isinstance(response.get(key), int) and response[key] >= 0:
            yield "gb_processed", _quantity(response[key], GB)
            break
    else:
        if reports_bytes:
            yield "gb_processed", Decimal(0)
    if isinstance(response.get("slot_ms"), int) and response["slot_ms"] >= 0:
        yield "slot_hour", _quantity(response["slot_ms"], _MILLISECONDS_PER_HOUR)


def _quantity(value: float, unit: int) -> Decimal:
    return (Decimal(repr(value)) / unit).quantize(Decimal("1e-9")).normalize() + 0


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
