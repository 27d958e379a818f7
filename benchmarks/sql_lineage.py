"""Column lineage of 1,000 model files of 100 lines, and the bare parser on the same files."""

import os
import random
import time
from typing import Any

import sqlglot

from lumos.lineage.sql import SqlText, analyse

FILES = 1000
LINES = 100
DIALECT = "snowflake"


def measure() -> dict[str, Any]:
    """Seconds for all files, and those of sqlglot's parser alone."""
    texts = models()
    started, cpu = time.perf_counter(), time.process_time()
    for each in texts:
        sqlglot.parse(each.text, dialect=DIALECT)
    parsing, parsing_cpu = time.perf_counter() - started, time.process_time() - cpu
    started, cpu = time.perf_counter(), time.process_time()
    scripts = [analyse(each.text, dialect=each.dialect, file=each.file) for each in texts]
    on_one, on_one_cpu = time.perf_counter() - started, time.process_time() - cpu
    return {
        "files": FILES,
        "lines_each": LINES,
        "edges": sum(len(script.edges) for script in scripts),
        "resolved": f"{_resolved(scripts):.2%}",
        "seconds_on_one": round(on_one, 2),
        "bare_parser_seconds_on_one": round(parsing, 2),
        # Of processor time, which other work on the machine does not lengthen.
        "times_the_bare_parser": round(on_one_cpu / parsing_cpu, 2),
        "cores": os.cpu_count(),
    }


def _resolved(scripts: list[Any]) -> float:
    columns: int = sum(script.coverage.columns for script in scripts)
    resolved: int = sum(script.coverage.resolved for script in scripts)
    return resolved / columns


def models() -> list[SqlText]:
    """Models as in a warehouse: named queries, joins, cases, windows and sums; no schemas known."""
    chance = random.Random(7)
    return [
        SqlText(_model(number, chance), f"models/model_{number}.sql", DIALECT)
        for number in range(FILES)
    ]


def _model(number: int, chance: random.Random) -> str:
    lines = [f"create or replace table mart.model_{number} as", "with"]
    for step in range(3):
        lines += _step(step, number, chance)
    lines += ["final as (", "    select", "        s0.id,"]
    while len(lines) < LINES - 12:
        column = chance.choice("abcdefgh")
        side = chance.choice(("s0", "s1", "s2"))
        lines.append(f"        coalesce({side}.{column}, 0) * {len(lines)} as m_{len(lines)},")
    lines += [
        "        row_number() over (partition by s0.region order by s1.at desc) as place",
        "    from s0",
        "    left join s1",
        "        on s0.id = s1.id",
        "    inner join s2",
        "        on s0.id = s2.id and s2.a > 0",
        "    where s0.b is not null",
        "        and s1.c in ('x', 'y', 'z')",
        "    qualify place = 1",
        ")",
        "select * from final",
        "order by id",
    ]
    return "\n".join(lines)


def _step(step: int, number: int, chance: random.Random) -> list[str]:
    table = f"raw.table_{chance.randrange(300)}"
    columns = [f"        t.{name}," for name in "abcdef"]
    return [
        f"s{step} as (",
        "    select",
        "        t.id,",
        *columns,
        "        t.region,",
        "        t.at,",
        f"        case when t.g = {number} then t.h else t.i end as g,",
        "        cast(t.j as integer) as h,",
        "        sum(t.k) as total",
        f"    from {table} as t",
        f"    join raw.other_{step} as o",
        "        on t.id = o.id",
        "    group by all",
        "),",
    ]
