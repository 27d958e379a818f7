"""How well the analysis of impact meets the expectations: `PYTHONPATH=tests python -m impact.score`.

Rows in which more than one verdict can be defended count for nothing in precision and recall.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from impact.cases import REMOVED, UNKNOWN, Case, Expected, Verdict, cases
from impact.inventory_graph import InventoryDownstream, columns_of, verdict_of
from impact.sample_inventory import load_sample_inventory
from lumos.impact.rules.results import DatasetImpact, Impact

Judge = Callable[[Case], Impact]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What was expected of one dataset, and what was found."""

    case: Case
    expected: Expected
    found: DatasetImpact | None

    @property
    def key(self) -> tuple[str, str]:
        return self.case.id, self.expected.dataset

    @property
    def verdict(self) -> Verdict | None:
        return None if self.found is None else verdict_of(self.found)

    @property
    def is_met(self) -> bool:
        return self.verdict in (self.expected.verdict, *self.expected.tolerated)

    @property
    def has_place(self) -> bool:
        """Whether a place is expected of it, and it is the verdict that it is expected for."""
        wanted = self.expected.verdict
        return wanted is Verdict.BREAKING and wanted is self.verdict and bool(self.expected.line)

    @property
    def is_in_place(self) -> bool:
        """Whether a reason for breaking stands in the file and the line where it is expected."""
        return self.found is not None and any(
            (reason.file, reason.line) == (self.expected.file, self.expected.line)
            and Verdict(reason.verdict.value.upper()) is Verdict.BREAKING
            for reason in self.found.reasons
        )

    @property
    def has_expected_columns(self) -> bool:
        return self.found is not None and _is_alike(self.expected.columns, columns_of(self.found))


def _is_alike(wanted: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether columns change as expected.

    Of a column that cannot be made any more, the expectations say that nobody can tell its type.
    """
    return wanted.keys() == found.keys() and all(
        found[name] == change or (found[name] == REMOVED and change.endswith(f"-> {UNKNOWN}"))
        for name, change in wanted.items()
    )


@dataclass(frozen=True, kw_only=True)
class Score:
    """Rows in numbers."""

    rows: int
    met: int
    tolerated: int
    true_alarms: int
    false_alarms: int
    missed: int
    places: int
    in_place: int
    columns: int
    changes: int

    @property
    def precision(self) -> float:
        """The share of what is called BREAKING that breaks."""
        return self.true_alarms / (self.true_alarms + self.false_alarms)

    @property
    def recall(self) -> float:
        """The share of what breaks that is called so."""
        return self.true_alarms / (self.true_alarms + self.missed)

    def __str__(self) -> str:
        return (
            f"{self.changes} changes, {self.rows} rows\n"
            f"verdict as expected: {self.met}, of these tolerated: {self.tolerated}\n"
            f"BREAKING: precision {self.precision:.3f}, recall {self.recall:.3f}"
            f" ({self.true_alarms} right, {self.false_alarms} wrong, {self.missed} missed)\n"
            f"reason in the expected line: {self.in_place} of {self.places}\n"
            f"changed columns as expected: {self.columns} of {self.rows}"
        )


def rows_of(every: Iterable[Case], judge: Judge) -> list[Row]:
    """One row for every dataset that somebody expects something of."""
    rows = []
    for case in every:
        found = {each.urn: each for each in judge(case).downstream}
        rows += [
            Row(case=case, expected=expected, found=found.get(dataset))
            for dataset, expected in case.expected.items()
        ]
    return rows


def score(rows: Iterable[Row]) -> Score:
    rows = list(rows)
    strict = [row for row in rows if not row.expected.tolerated]
    called = Counter(
        (row.expected.verdict is Verdict.BREAKING, row.verdict is Verdict.BREAKING)
        for row in strict
    )
    return Score(
        changes=len({row.case.id for row in rows}),
        rows=len(rows),
        met=sum(row.is_met for row in rows),
        tolerated=sum(row.is_met and row.verdict is not row.expected.verdict for row in rows),
        true_alarms=called[True, True],
        false_alarms=called[False, True],
        missed=called[True, False],
        places=sum(row.has_place for row in rows),
        in_place=sum(row.has_place and row.is_in_place for row in rows),
        columns=sum(row.has_expected_columns for row in rows),
    )


if __name__ == "__main__":
    sample = load_sample_inventory()
    judge = InventoryDownstream(sample).impact_of_case
    sys.stdout.write(f"{score(rows_of(cases(), judge))}\n")
