"""Who breaks among 5,000 models with 100,000 column edges, asked of a store on SQLite.

Files of SQL in four layers are taken in as they would be, the schemas of all tables are in the
store. Every change is made to the one table that all models hang on. Each answer comes from a
process of its own; its time is that of the processor from the start of Python to the end, since
other work may go on beside it. So is the floor: Python with what Lumos imports for an answer, which
reads the edges, texts and schemas of all that is reached and decodes them, without thinking.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from lumos import Lumos
from lumos.model.json_codec import to_json
from lumos.model.schema import parse_schema
from lumos.store import Database, Store, tables

ROOT = "raw.events"
ROUNDS = 3
LOOKUPS = 49
LAYERS = {"stg": 1000, "int": 1500, "mart": 1500, "rep": 1000}
COLUMNS = {
    "user_id": "INT32 NOT NULL",
    "session_id": "STRING NOT NULL",
    "order_id": "INT64",
    "account_id": "INT64",
    "country": "STRING",
    "device": "STRING",
    "plan": "STRING",
    "channel": "STRING",
    "status": "STRING",
    "campaign": "STRING",
    "created_at": "TIMESTAMP(us)",
    "updated_at": "TIMESTAMP(us)",
    "day": "DATE",
    "amount": "DECIMAL(10,2)",
    "price": "DECIMAL(10,2)",
    "discount": "DECIMAL(10,2)",
    "quantity": "INT32",
    "clicks": "INT64",
    "score": "FLOAT64",
    "is_test": "BOOLEAN",
}
CHANGES = {
    "a measure gets wider, all the way": {"change": ["amount: DECIMAL(10,2) -> DECIMAL(12,2)"]},
    "a key that all join on gets wider": {"change": ["user_id: INT32 -> INT64"]},
    "a key that all join on becomes text": {"change": ["user_id: INT32 -> STRING"]},
    "a text that is handed on and filtered by becomes a number": {
        "change": ["status: STRING -> INT64"]
    },
    "a measure is dropped": {"drop": ["amount"]},
}
_AT = datetime(2024, 1, 1, tzinfo=UTC)
# What keeps a column's type, by the type; {0} is the column.
_EXPRESSIONS = {
    "STRING": ("lower({0})", "coalesce({0}, 'none')", "trim({0})", "cast({0} as string)"),
    "INT64": ("coalesce({0}, 0)", "cast({0} as bigint)", "greatest({0}, 0)"),
    "INT32": ("cast({0} as int)",),
    "DATE": ("coalesce({0}, date '1970-01-01')", "cast({0} as date)"),
    "TIMESTAMP(us)": ("cast({0} as timestamp_ntz)",),
    "FLOAT64": ("round({0}, 2)", "coalesce({0}, 0)", "cast({0} as double)"),
    "DECIMAL(10,2)": ("cast({0} as decimal(10, 2))", "coalesce({0}, 0)"),
    "BOOLEAN": ("coalesce({0}, false)",),
}
# A change of them has to reach every model.
_HANDED_ON = ("user_id", "status", "amount")
_FILTERS = (
    "{0}.status <> 'test'",
    "{0}.day >= date '2024-01-01'",
    "{0}.quantity > 0",
    "not {0}.is_test",
    "{0}.country in ('DE', 'FR', 'IT')",
)


def measure() -> dict[str, Any]:
    """Seconds of the processor and peak memory of each answer, and of the floor."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        made = _make(place)
        return {
            **made,
            "floor": _best(place, "floor", {}),
            **{name: _best(place, "ask", change) for name, change in CHANGES.items()},
        }


def _best(place: Path, what: str, change: dict[str, list[str]]) -> dict[str, Any]:
    rounds = [_answer(place, what, change) for _ in range(ROUNDS)]
    return min(rounds, key=lambda each: float(each["cpu_seconds"]))


def _answer(place: Path, what: str, change: dict[str, list[str]]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.impact", what, str(place), json.dumps(change)]
    # As an installed program, it is compiled once, in the first round.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(place / "compiled")}
    environment = {**os.environ, **compiled}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _make(place: Path) -> dict[str, Any]:
    """The files, the schemas in the store, and the lineage as the files are taken in."""
    models = dict(_models(random.Random(1)))
    for name, sql in models.items():
        file = place / "models" / f"{name.replace('.', '/')}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(sql, encoding="utf-8")
    lumos = _lumos(place)
    raw = (ROOT, *map(_lookup, range(LOOKUPS)))
    _fill(lumos.database, [*raw, *models])
    began = time.perf_counter()
    taken_in = lumos.lineage.ingest(place / "models", dialect="spark")
    seconds = time.perf_counter() - began
    edges = Store.open(lumos.database).lineage.all()
    return {
        "models": len(models),
        "table_edges": taken_in.edges.added,
        "column_edges": sum(len(edge.columns) + len(edge.uses) for edge in edges),
        "share_of_columns_resolved": taken_in.coverage.share,
        "taken_in_seconds": round(seconds, 1),
    }


def _lumos(place: Path) -> Lumos:
    return Lumos(environment={}, overrides={"storage.path": str(place / "lumos.db")})


def _lookup(number: int) -> str:
    return f"raw.lookup_{number:02}"


def _urn(name: str) -> str:
    return f"lumos://file/lake/{name.replace('.', '/')}"


def _fill(database: Database, names: Sequence[str]) -> None:
    Store.open(database, create=True)
    schema = parse_schema("\n".join(f"{name} {type}" for name, type in COLUMNS.items()))
    hash = "0" * 32
    body = {"hash": hash, "shape": schema.shape, "full": schema.full, "body": to_json(schema)}
    with database.writing() as connection:
        connection.execute(insert(tables.schema_body), [body])
        connection.execute(
            insert(tables.dataset),
            [
                {
                    "urn": _urn(name),
                    "name": name.partition(".")[2],
                    "platform": "file",
                    "format": "parquet",
                    "source": "file:lake",
                    "state": "live",
                    "cloud_version": "S-1",
                    "schema_version": "1.0.0",
                    "schema_hash": hash,
                    "fingerprint": hash,
                    "content": "",
                    "created_at": _AT,
                    "updated_at": _AT,
                }
                for name in names
            ],
        )


def _models(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Each model is made from one or two of the layer before it, so that all hang on the root."""
    before: list[str] = []
    for layer, count in LAYERS.items():
        made = []
        for number in range(count):
            name = f"{layer}.model_{number:04}"
            if not before:
                sources = [ROOT, _lookup(chance.randrange(LOOKUPS))]
            else:
                sources = chance.sample(before, 1 if layer == "rep" else 2)
            owner = f"-- Owner: team-{number % 40}\n"
            yield name, f"{owner}create table {name} as\n{_query(sources, chance)};\n"
            made.append(name)
        before = made


def _query(sources: Sequence[str], chance: random.Random) -> str:
    first, *others = sources
    if chance.random() < 0.05:
        return f"select *\nfrom {first}\nwhere status <> 'test'"
    aliases = ["a", "b"][: len(sources)]
    # What has to go on is taken from the first, which hangs on the root in every layer.
    items = [_item(name, "a" if name in _HANDED_ON else chance.choice(aliases), chance)
             for name in COLUMNS]  # fmt: skip
    lines = ["select", "  " + ",\n  ".join(items), f"from {first} as a"]
    for other in others:
        lines += [f"join {other} as b", "  on b.user_id = a.user_id"]
    filters = [chance.choice(_FILTERS).format("a") for _ in range(chance.randint(0, 2))]
    if filters:
        lines.append("where " + "\n  and ".join(dict.fromkeys(filters)))
    return "\n".join(lines)


def _item(name: str, alias: str, chance: random.Random) -> str:
    column = f"{alias}.{name}"
    drawn = chance.random()
    if drawn > 0.95 and name not in ("user_id", "session_id"):
        return f"max({column}) over (partition by {alias}.account_id) as {name}"
    if name in _HANDED_ON or drawn < 0.65:
        return column
    type = COLUMNS[name].removesuffix(" NOT NULL")
    return f"{chance.choice(_EXPRESSIONS[type]).format(column)} as {name}"


def ask(place: Path, change: dict[str, Any]) -> dict[str, Any]:
    """One answer, and what it said."""
    found = _lumos(place).impact.of(_urn(ROOT), **change)
    verdicts = Counter(str(row.verdict) for row in found.downstream)
    return {
        "reached": len(found.downstream),
        "verdicts": dict(verdicts),
        "bytes": len(to_json(found)),
    }


def floor(place: Path, change: dict[str, Any]) -> dict[str, Any]:
    """All that the answer needs to know is read and decoded."""
    from lumos.impact import service as desk  # noqa: F401

    del change
    store = Store.open(_lumos(place).database)
    reached = [node.urn for node in store.lineage.walk(_urn(ROOT), direction="downstream").nodes]
    edges = sum(1 for _ in store.lineage.edges_into(reached))
    texts = sum(len(script.sql) for some in store.lineage.scripts(reached).values()
                for _, script in some)  # fmt: skip
    schemas = len(store.schemas.current(reached))
    return {"edges": edges, "letters_of_sql": texts, "schemas": schemas}


def _peak_mb() -> int:
    """Of this program alone: what getrusage tells begins with what started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def main() -> None:
    """The part that runs in a process of its own."""
    what, place, change = sys.argv[1:]
    work = {"ask": ask, "floor": floor}[what]
    told = work(Path(place), json.loads(change))
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": _peak_mb(),
        **told,
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
