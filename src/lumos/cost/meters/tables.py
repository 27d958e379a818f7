"""Reads resource usage from CSV: one row per job or dataset and time."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from shlex import quote
from typing import Final, NamedTuple, get_args

from lumos.config.prices import convert_quantity, engine_of
from lumos.cost.meters.compression import MAX_LINE_LENGTH, UnreadableUsageFile, open_decompressed
from lumos.errors import MisuseError, did_you_mean
from lumos.model.cost import CostType, MeteredUsage
from lumos.model.money import micros
from lumos.model.period import period_of

_COLUMN_NAMES: Final = {
    "job": ("job", "job_name", "job_urn"),
    "dataset": ("dataset", "dataset_urn", "urn"),
    "started_at": ("started_at", "start", "start_time", "started"),
    "ended_at": ("ended_at", "end", "end_time", "ended"),
    "period": ("period", "day", "date", "month"),
    "engine": ("engine", "platform", "service"),
    "quantity": ("quantity", "usage", "usage_quantity"),
    "unit": ("unit", "usage_unit"),
    "amount": ("amount", "cost"),
    "currency": ("currency",),
    "type": ("type", "cost_type"),
    "run": ("run", "run_id"),
}  # fmt: skip
_FIELD_BY_COLUMN: Final = {name: field for field, names in _COLUMN_NAMES.items() for name in names}
# Required columns, each with its alternatives.
_REQUIRED_COLUMNS: Final = {
    "job or dataset": (("job",), ("dataset",)),
    "started_at and ended_at, or period": (("started_at", "ended_at"), ("period",)),
    "quantity, unit and engine, or amount and currency": (
        ("quantity", "unit", "engine"),
        ("amount", "currency"),
    ),
}
_TABLE_NAME: Final = re.compile(r"\.(csv|tsv)(\.(gz|zst|zstd|bz2))?\Z", re.IGNORECASE)
_DELIMITERS: Final = (",", ";", "\t", "|")
_MAX_LISTED: Final = 10
_MAX_QUANTITY: Final = 10**15


class InvalidRows(MisuseError):
    """A table with invalid rows, which is rejected as a whole."""

    def __init__(self, path: str, problems: Sequence[tuple[int, str]]) -> None:
        self.path = path
        self.problems = tuple(problems)
        lines = "\n".join(f"  line {line}: {text}" for line, text in problems[:_MAX_LISTED])
        unlisted = len(problems) - _MAX_LISTED
        suffix = f"\n  and {unlisted:,} more" if unlisted > 0 else ""
        super().__init__(f"{path} was not imported:\n{lines}{suffix}")


class MeteredRow(NamedTuple):
    """A row with its line number."""

    line: int
    metered: MeteredUsage


class WrongColumns(MisuseError):
    """A table that lacks columns required for usage."""

    def __init__(self, path: str, header: Sequence[str], missing: Sequence[str]) -> None:
        self.path = path
        self.missing = tuple(missing)
        unknown = [name for name in header if name not in _FIELD_BY_COLUMN]
        similar = [did_you_mean(name, _FIELD_BY_COLUMN) for name in unknown]
        super().__init__(
            f"{path} lacks a column: {'; '.join(missing)}. It has {', '.join(header)}."
            f"{next(filter(None, similar), '')} Expected: {'; '.join(_REQUIRED_COLUMNS)}. "
            f"Rename its columns, then run: lumos cost ingest {quote(path)}"
        )


def has_table_name(path: str) -> bool:
    """Whether a file name has the extension of a CSV table."""
    return _TABLE_NAME.search(path) is not None


def _check_columns(path: str, header: Sequence[str]) -> None:
    fields = {_FIELD_BY_COLUMN.get(name) for name in header}
    missing = [
        text
        for text, choices in _REQUIRED_COLUMNS.items()
        if not any(fields.issuperset(each) for each in choices)
    ]
    if missing:
        raise WrongColumns(path, header, missing)


def is_table(head: str) -> bool:
    """Whether a text starts with the header of a usage table."""
    try:
        names = {_FIELD_BY_COLUMN.get(name) for name in _parse_header(head.partition("\n")[0])[1]}
    except csv.Error:
        return False
    return bool(names & {"job", "dataset"}) and bool(names & {"quantity", "amount"})


def read_table(path: str) -> list[MeteredRow]:
    """Read all rows of a table; raises InvalidRows with all invalid lines."""
    rows: list[MeteredRow] = []
    problems: list[tuple[int, str]] = []
    for line, fields, values in _read_rows(path):
        try:
            rows.append(MeteredRow(line, _parse_row(_values_by_field(fields, values))))
        except MisuseError as problem:
            problems.append((line, str(problem)))
    problems += _find_overlaps(rows)
    problems += _find_mixed_currencies(rows)
    if problems:
        raise InvalidRows(path, sorted(problems))
    return rows


def _read_rows(path: str) -> Iterator[tuple[int, list[str], list[str]]]:
    csv.field_size_limit(MAX_LINE_LENGTH)
    with open_decompressed(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        try:
            header_line = text.readline(MAX_LINE_LENGTH)
            delimiter, header = _parse_header(header_line)
            fields = _recognize_columns(path, header)
            reader = csv.reader(text, delimiter=delimiter)
            for values in reader:
                if any(value.strip() for value in values):
                    # Add 1 for the header line, which was read before.
                    yield reader.line_num + 1, fields, [value.strip() for value in values]
        except UnicodeDecodeError:
            raise UnreadableUsageFile(path, "it is not UTF-8 text") from None
        except csv.Error as problem:
            raise UnreadableUsageFile(path, f"line {reader.line_num + 1}: {problem}") from None


def _parse_header(line: str) -> tuple[str, list[str]]:
    line = line.strip("\r\n")
    delimiter = max(_DELIMITERS, key=line.count)
    names = next(csv.reader([line], delimiter=delimiter), [])
    return delimiter, [name.strip().lower().replace(" ", "_") for name in names]


def _recognize_columns(path: str, header: Sequence[str]) -> list[str]:
    fields = [_FIELD_BY_COLUMN.get(name, f"({name})") for name in header]
    duplicates = sorted({field for field in fields if fields.count(field) > 1})
    if duplicates:
        raise UnreadableUsageFile(path, f"two columns have the meaning '{duplicates[0]}'")
    _check_columns(path, header)
    return fields


def _values_by_field(fields: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """The values of a line by field; trailing cells may be missing or empty."""
    if any(values[len(fields) :]):
        raise MisuseError(
            f"{len(values)} values for {len(fields)} columns. Write numbers without thousands "
            "separators, and quote texts that contain the delimiter."
        )
    return {field: value for field, value in zip(fields, values, strict=False) if value}


def _parse_row(values: Mapping[str, str]) -> MeteredUsage:
    targets = [field for field in ("job", "dataset") if field in values]
    if len(targets) != 1:
        raise MisuseError("Name either a job or a dataset.")
    started, ended = _time_range(values)
    amount = _parse_decimal("amount", values.get("amount"))
    quantity = _parse_decimal("quantity", values.get("quantity"))
    engine = engine_of(values.get("engine", ""))
    if amount is None and quantity is None:
        raise MisuseError("Give a quantity and its unit, or an amount and its currency.")
    if amount is not None and "currency" not in values:
        raise MisuseError(f"The amount {amount} has no currency.")
    if quantity is not None and quantity > _MAX_QUANTITY:
        raise MisuseError(f"The quantity {quantity} is too large to be computed.")
    if quantity is not None and quantity < 0:
        raise MisuseError(f"The quantity {quantity} is below 0. Write credits as amounts.")
    if amount is None and not (engine and "unit" in values):
        raise MisuseError("A quantity needs 'engine' and 'unit', which determine its price.")
    quantities = {}
    if quantity is not None and "unit" in values:
        number, unit = convert_quantity(quantity, values["unit"])
        quantities[unit] = number
    return MeteredUsage(
        target=values[targets[0]],
        is_dataset=targets[0] == "dataset",
        engine=engine,
        started_at=started,
        ended_at=ended,
        quantities=quantities,
        run=values.get("run", ""),
        type=_cost_type(values.get("type", "compute")),
        amount=None if amount is None else micros(amount),
        currency=None if amount is None else _currency(values["currency"]),
    )


def _time_range(values: Mapping[str, str]) -> tuple[datetime, datetime]:
    if "period" in values:
        if "started_at" in values or "ended_at" in values:
            raise MisuseError("Give either a period, or 'started_at' and 'ended_at'.")
        period = period_of(values["period"], today=date.max)
        return _midnight(period.first), _midnight(period.last) + timedelta(days=1)
    if not ("started_at" in values and "ended_at" in values):
        raise MisuseError("Give 'started_at' and 'ended_at', or a period such as 2024-01.")
    started = _parse_time("started_at", values["started_at"], is_end=False)
    ended = _parse_time("ended_at", values["ended_at"], is_end=True)
    if ended < started:
        raise MisuseError(f"It ended at {values['ended_at']}, before it started.")
    return started, ended


def _parse_time(field: str, text: str, *, is_end: bool) -> datetime:
    try:
        if (day := _parse_day(text)) is not None:
            return _midnight(day) + timedelta(days=is_end)
        parsed = datetime.fromisoformat(text)
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MisuseError(
            f"Invalid time '{text}' in {field}. Write it as 2024-01-15T10:30Z."
        ) from None


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _parse_decimal(field: str, text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or "_" in text:
        raise MisuseError(f"Invalid number '{text}' in {field}. Write it as 12.50.")
    return number


def _cost_type(text: str) -> CostType:
    for cost_type in get_args(CostType):
        if text.lower() == cost_type:
            return cost_type  # type: ignore[no-any-return]
    known_types = get_args(CostType)
    raise MisuseError(
        f"Unknown cost type '{text}'. Known: {', '.join(known_types)}."
        f"{did_you_mean(text, known_types)}"
    )


def _currency(text: str) -> str:
    if len(text) != 3 or not (text.isascii() and text.isalpha()):
        raise MisuseError(f"Invalid currency '{text}'. Write three letters such as EUR.")
    return text.upper()


def _find_mixed_currencies(rows: Sequence[MeteredRow]) -> Iterator[tuple[int, str]]:
    first = next((row.metered.currency for row in rows if row.metered.currency), None)
    for row in rows:
        if row.metered.currency not in (None, first):
            yield row.line, f"The amount is in {row.metered.currency}, others are in {first}."


def _find_overlaps(rows: Sequence[MeteredRow]) -> Iterator[tuple[int, str]]:
    """Yield a problem for each line that overlaps in time with another line for its target."""
    by_subject: dict[object, list[MeteredRow]] = {}
    for row in rows:
        by_subject.setdefault(row.metered.subject, []).append(row)
    for rows_of_subject in by_subject.values():
        rows_of_subject.sort(key=lambda row: (row.metered.started_at, row.line))
        for before, after in pairwise(rows_of_subject):
            if before.metered.overlaps(after.metered):
                line, other = max(before.line, after.line), min(before.line, after.line)
                name = after.metered.target
                yield line, f"Its time overlaps that of line {other}, which is also for {name}."
