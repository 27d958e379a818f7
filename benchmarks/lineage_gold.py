"""Column lineage on the gold set: Lumos beside a plain call of sqlglot's own lineage."""

import logging
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.lineage import Node, lineage

_TESTS = Path(__file__).parents[1] / "tests"


def measure() -> dict[str, Any]:
    """The scores of both over the same cases."""
    sys.path.insert(0, str(_TESTS))
    # sqlglot warns of what it does not know; here that only counts.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    scoring = import_module("lineage.gold.scoring")
    cases = scoring.cases()
    lumos = scoring.score(cases, import_module("lineage.gold.lumos_edges").edges)
    plain = scoring.score(cases, lambda case: scoring.Found(direct=frozenset(_plain(case))))
    return {
        "lumos": {
            "direct": lumos.direct.figures(),
            "indirect": lumos.indirect.figures(),
            "by_dialect": {name: tally.figures() for name, tally in lumos.by_dialect.items()},
            "by_construct": {name: tally.figures() for name, tally in lumos.by_construct.items()},
        },
        "sqlglot.lineage": {"direct": plain.direct.figures(), "failed": plain.failed.total()},
    }


def _plain(case: Any) -> Iterator[str]:
    """For each statement the query in it, and for each of its columns what sqlglot finds."""
    schema = _nested(case.schema)
    for statement in sqlglot.parse(case.sql, dialect=case.dialect):
        query = statement.find(exp.Query) if statement else None
        if statement is None or query is None:
            continue
        if statement is not query and statement.args.get("with_"):
            query = query.copy()
            query.set("with_", statement.args["with_"].copy())
        table = statement.find(exp.Table) if statement is not query else None
        above = [part.name for part in table.parts] if table else []
        names = [each.name for each in statement.this.expressions] if _lists(statement) else []
        found = lineage(None, query, schema, dialect=case.dialect)
        for number, (name, root) in enumerate(found.items()):
            to = names[number] if number < len(names) else name
            target = ".".join([*above, to]).lower()
            yield from (f"{source} -> {target}" for source in _leaves(root))


def _lists(statement: exp.Expr) -> bool:
    return isinstance(statement, exp.Insert | exp.Create) and isinstance(statement.this, exp.Schema)


def _leaves(root: Node) -> Iterator[str]:
    for node in root.walk():
        if not node.downstream and isinstance(node.expression, exp.Table):
            table = ".".join(part.name for part in node.expression.parts)
            column = node.name.rpartition(".")[2].strip('"')
            yield f"{table}.{column}".lower()


def _nested(schema: Any) -> dict[str, Any]:
    """`{schema.table: columns}` as sqlglot wants it, level by level."""
    nested: dict[str, Any] = {}
    for name, columns in schema.items():
        *above, table = name.split(".")
        level = nested
        for part in above:
            level = level.setdefault(part, {})
        types = columns if isinstance(columns, dict) else dict.fromkeys(columns, "text")
        level[table] = types
    return nested
