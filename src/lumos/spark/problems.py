"""Lists of problems of limited length, with the numbers of all problems by code."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from lumos.model.discovery import Problem

# The maximum number of listed problems of one task, and of all tasks together.
MAX_LISTED_PER_TASK: Final = 200
MAX_LISTED_IN_TOTAL: Final = 1000


class ProblemCount(msgspec.Struct, array_like=True, frozen=True):
    """The number of problems with a code."""

    code: str
    remark: bool
    count: int


def count_problems(problems: Iterable[Problem]) -> list[ProblemCount]:
    """The number of problems of each code."""
    counts = Counter((each.code, each.remark) for each in problems)
    return [ProblemCount(*key, count) for key, count in counts.items()]


class ProblemList(msgspec.Struct, array_like=True):
    """The first `max_listed` problems, and the number of all problems of each code."""

    max_listed: int = MAX_LISTED_PER_TASK
    listed: list[Problem] = []
    counts: list[ProblemCount] = []

    @property
    def total(self) -> int:
        """The number of all problems."""
        return sum(each.count for each in self.counts)

    @property
    def failures(self) -> int:
        """The number of problems that are not remarks."""
        return sum(each.count for each in self.counts if not each.remark)

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self.take([problem], [ProblemCount(problem.code, problem.remark, 1)])

    def join(self, other: "ProblemList") -> None:
        """Add the problems of other files."""
        self.take(other.listed, other.counts)

    def take(self, listed: Iterable[Problem], counts: Iterable[ProblemCount]) -> None:
        """Add the listed problems and the counts of another list."""
        for problem in listed:
            if len(self.listed) >= self.max_listed:
                break
            self.listed.append(problem)
        count_by_key = {(each.code, each.remark): each.count for each in self.counts}
        for each in counts:
            key = (each.code, each.remark)
            count_by_key[key] = count_by_key.get(key, 0) + each.count
        self.counts = [ProblemCount(*key, count) for key, count in count_by_key.items()]

    def not_listed(self) -> list[ProblemCount]:
        """The number of problems of each code that are not listed."""
        remaining = {(each.code, each.remark): each.count for each in self.counts}
        for problem in self.listed:
            remaining[problem.code, problem.remark] -= 1
        return [ProblemCount(*key, count) for key, count in remaining.items() if count]

    def report(self, path: str) -> list[Problem]:
        """The listed problems, sorted by path, after a problem at `path` for each omitted code.

        The problems about omitted ones come first, so that they are visible even if only the first
        lines are shown.
        """
        more = [
            Problem(
                path=path,
                code=each.code,
                reason=f"{each.count:,} more {'problem' if each.count == 1 else 'problems'} "
                f"with the code {each.code} not listed.",
                remark=each.remark,
            )
            for each in self.not_listed()
        ]
        return [*more, *sorted(self.listed, key=lambda problem: problem.path)]
