"""The gold set of column lineage, and how well an analyser's edges fit it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
Columns = list[str] | dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A statement, what is known of its tables, and the edges that it means.

    An edge is `from -> to`, an indirect one `from -> to USAGE`. None is: not asked.
    """

    id: str
    construct: str
    dialect: str | None
    sql: str
    schema: Mapping[str, Columns]
    direct: frozenset[str]
    indirect: frozenset[str] | None
    unresolved: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an analyser says of a case; `unresolved` are its reasons."""

    direct: frozenset[str] = frozenset()
    indirect: frozenset[str] = frozenset()
    unresolved: tuple[str, ...] = ()


Analyser = Callable[[Case], Found]


@dataclass
class Tally:
    """How many cases are exactly right, and how many edges are expected, found, and both."""

    cases: int = 0
    exact: int = 0
    expected: int = 0
    found: int = 0
    right: int = 0

    def count(self, expected: frozenset[str], found: frozenset[str]) -> None:
        self.cases += 1
        self.exact += expected == found
        self.expected += len(expected)
        self.found += len(found)
        self.right += len(expected & found)

    def share_exact(self) -> float:
        return self.exact / self.cases if self.cases else 1.0

    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0

    def figures(self) -> dict[str, float]:
        return {
            "cases": self.cases,
            "exact": round(self.share_exact(), 4),
            "precision": round(self.precision(), 4),
            "recall": round(self.recall(), 4),
        }


@dataclass
class Score:
    """The tallies of an analyser: over all, and by dialect and construct for direct edges."""

    direct: Tally = field(default_factory=Tally)
    indirect: Tally = field(default_factory=Tally)
    by_dialect: dict[str, Tally] = field(default_factory=dict)
    by_construct: dict[str, Tally] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)


def cases() -> tuple[Case, ...]:
    """All cases; a file is a construct."""
    return tuple(
        _case(path.stem, entry)
        for path in sorted(FOLDER.glob("*.yaml"))
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    )


def _case(construct: str, entry: dict[str, Any]) -> Case:
    return Case(
        id=entry["id"],
        construct=construct,
        dialect=entry.get("dialect"),
        sql=entry["sql"],
        schema=entry.get("schema", {}),
        direct=_edges(entry["direct"]),
        indirect=_edges(entry["indirect"]) if "indirect" in entry else None,
        unresolved=tuple(entry["unresolved"]) if "unresolved" in entry else None,
    )


def _edges(lines: Iterable[str]) -> frozenset[str]:
    """`a.x, b.y -> t.z` is two edges."""
    edges = set()
    for line in lines:
        sources, _, target = line.partition(" -> ")
        edges |= {f"{source.strip()} -> {target}" for source in sources.split(",")}
    return frozenset(edges)


def columns_of(case: Case) -> Callable[[tuple[str, ...]], Columns | None]:
    """The columns of a table by its name, in whatever case that is written."""
    known = {name.lower(): columns for name, columns in case.schema.items()}
    return lambda parts: known.get(".".join(parts).lower())


def score(all_cases: Iterable[Case], analyser: Analyser) -> Score:
    """Runs every case; one on which the analyser fails has found nothing."""
    result = Score()
    for case in all_cases:
        try:
            found = analyser(case)
        except Exception as error:  # noqa: BLE001  A naive analyser may fail in any way; that counts.
            result.failed[type(error).__name__] += 1
            found = Found()
        result.direct.count(case.direct, found.direct)
        dialect = case.dialect or "standard"
        result.by_dialect.setdefault(dialect, Tally()).count(case.direct, found.direct)
        result.by_construct.setdefault(case.construct, Tally()).count(case.direct, found.direct)
        if case.indirect is not None:
            result.indirect.count(case.indirect, found.indirect)
    return result
