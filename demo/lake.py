"""A small lake of a web shop, and the changes a week brings to it."""

import csv
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

DAYS = [date(2024, 1, 1) + timedelta(days=day) for day in range(7)]
CITIES = ("Berlin", "Lyon", "Oslo", "Porto", "Turin")
# What the models in demo/models have written.
MARTS = {
    "customer_360": {
        "customer_id": pa.int64(), "city": pa.string(), "clicks": pa.int64(),
        "last_seen": pa.timestamp("us", tz="UTC"),
    },
    "revenue": {
        "customer_id": pa.int64(), "gross": pa.decimal128(20, 2), "net": pa.decimal128(21, 2),
    },
    "page_views": {"page_url": pa.string(), "views": pa.int64(), "users": pa.int64()},
    "churn_scores": {"customer_id": pa.int64(), "score": pa.float64()},
}  # fmt: skip


def create(lake: Path, *, seed: int = 7) -> None:
    """Clicks, orders and marts as Parquet, customers and daily exchange rates as CSV."""
    chance = random.Random(seed)
    for day in DAYS[:5]:
        _write_clicks(lake, day, chance)
    for month in (1, 2, 3):
        _write_orders(lake, month, chance)
    _write_customers(lake, chance, columns=("customer_id", "name", "city", "postcode", "since"))
    for day in DAYS[:5]:
        _write_rates(lake, day, chance)
    for mart, columns in MARTS.items():
        _write_mart(lake, mart, columns)
    (lake / "raw" / "events" / "_SUCCESS").touch()


def change(lake: Path, *, seed: int = 8) -> None:
    """A session on every click, numbers for user ids, orders without a discount, more rates."""
    chance = random.Random(seed)
    for day in DAYS[5:]:
        _write_clicks(lake, day, chance, evolved=True)
    _write_orders(lake, 4, chance, evolved=True)
    _write_rates(lake, DAYS[5], chance)


def _write_clicks(lake: Path, day: date, chance: random.Random, *, evolved: bool = False) -> None:
    count = 200
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    users = [chance.randrange(10_000) for _ in range(count)]
    columns = {
        "event_id": pa.array([f"{chance.getrandbits(64):016x}" for _ in range(count)]),
        "user_id": pa.array(users, pa.int64()) if evolved else pa.array(map(str, users)),
        "at": pa.array(
            [start + timedelta(seconds=chance.randrange(86_400)) for _ in range(count)],
            pa.timestamp("us", tz="UTC"),
        ),
        "properties": pa.array(
            [{"page_url": f"/p/{chance.randrange(500)}", "referrer": None} for _ in range(count)],
            pa.struct([("page_url", pa.string()), ("referrer", pa.string())]),
        ),
    }
    if evolved:
        columns["session_id"] = pa.array([f"{user % 97:04x}" for user in users])
    folder = lake / f"raw/events/user_clicks/year={day.year}/month={day:%m}/day={day:%d}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "part-00000.parquet")


def _write_orders(lake: Path, month: int, chance: random.Random, *, evolved: bool = False) -> None:
    count = 300
    amounts = [Decimal(chance.randrange(100, 50_000)).scaleb(-2) for _ in range(count)]
    quantity = pa.int64() if evolved else pa.int32()
    columns = {
        "order_id": pa.array(range(month * 1000, month * 1000 + count), pa.int64()),
        "customer_id": pa.array([chance.randrange(500) for _ in range(count)], pa.int64()),
        "quantity": pa.array([chance.randrange(1, 9) for _ in range(count)], quantity),
        "amount": pa.array(amounts, pa.decimal128(10, 2)),
    }
    if not evolved:
        columns["discount"] = pa.array([Decimal("0.00")] * count, pa.decimal128(9, 2))
    folder = lake / "processed/orders"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / f"orders_2024-{month:02d}.parquet")


def _write_customers(lake: Path, chance: random.Random, *, columns: tuple[str, ...]) -> None:
    folder = lake / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "customers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for number in range(500):
            postcode = f"{chance.randrange(100_000):05d}"
            since = date(2020, 1, 1) + timedelta(days=chance.randrange(1400))
            writer.writerow([number, f"Customer {number}", chance.choice(CITIES), postcode, since])


def _write_rates(lake: Path, day: date, chance: random.Random) -> None:
    folder = lake / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"rates_{day:%Y%m%d}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(("currency", "rate", "quoted_at"))
        for currency in ("EUR", "NOK", "GBP"):
            writer.writerow((currency, round(chance.uniform(0.5, 12), 4), f"{day}T16:00:00Z"))


def _write_mart(lake: Path, name: str, columns: dict[str, pa.DataType]) -> None:
    folder = lake / "marts" / name
    folder.mkdir(parents=True, exist_ok=True)
    # Nobody looks at the rows; that there are some is enough.
    rows = {column: pa.nulls(500, type) for column, type in columns.items()}
    pq.write_table(pa.table(rows), folder / "part-00000.parquet")
