"""The lines of what a star takes, which nobody names."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from sqlglot import exp

from lumos.impact.rules.type_uses import OutputColumn, TypeUse

Told = TypeVar("Told", TypeUse, OutputColumn)


def star_lines(node: exp.Expr) -> Iterator[tuple[str, int]]:
    """The tables that a star takes columns of, and where it stands, or else where they do."""
    for select in node.find_all(exp.Select):
        stars = [each for each in select.expressions
                 if isinstance(each, exp.Star) or isinstance(each.this, exp.Star)]  # fmt: skip
        for star in stars:
            for table in select.find_all(exp.Table):
                if table.parent_select is not select or not _is_meant(star, table):
                    continue
                line = _line_of(star) or _line_of(table)
                if line is not None:
                    yield table.name.lower(), line


def _is_meant(star: exp.Expr, table: exp.Table) -> bool:
    wanted = star.args.get("table")
    return wanted is None or wanted.name.lower() == table.alias_or_name.lower()


def _line_of(node: exp.Expr) -> int | None:
    found = (each._meta.get("line") for each in node.walk() if each._meta)
    return next((int(line) for line in found if line is not None), None)


def on_line(told: Told, line: int, stars: Mapping[str, int]) -> Told:
    """What is told with its line: its own, that of the star, or else that of the statement."""
    if told.line is not None:
        return told
    names = (table.rpartition(".")[2].rpartition("/")[2].lower() for table, _ in told.origins)
    found = next((stars[name] for name in names if name in stars), line)
    return msgspec.structs.replace(told, line=found)
