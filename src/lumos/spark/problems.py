"""Problems of any number of files: the first in words, all of them counted by code."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from lumos.model.discovery import Problem

# So many problems are listed of one task, and so many of all tasks together.
MOST_OF_A_TASK: Final = 200
MOST_OF_ALL: Final = 1000


class ProblemCount(msgspec.Struct, array_like=True, frozen=True):
    """How many problems have a code."""

    code: str
    remark: bool
    count: int


def count_problems(problems: Iterable[Problem]) -> list[ProblemCount]:
    """How many problems there are of each code."""
    counts = Counter((each.code, each.remark) for each in problems)
    return [ProblemCount(*key, count) for key, count in counts.items()]


class ProblemList(msgspec.Struct, array_like=True):
    """No more than `most` problems, and how many there are of each code, listed or not."""

    most: int = MOST_OF_A_TASK
    listed: list[Problem] = []
    counts: list[ProblemCount] = []

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(each.count for each in self.counts)

    @property
    def failures(self) -> int:
        """How many of them are no mere remarks."""
        return sum(each.count for each in self.counts if not each.remark)

    def add(self, problem: Problem) -> None:
        """Takes in one problem."""
        self.take([problem], [ProblemCount(problem.code, problem.remark, 1)])

    def join(self, other: "ProblemList") -> None:
        """Takes in the problems of other files."""
        self.take(other.listed, other.counts)

    def take(self, listed: Iterable[Problem], counts: Iterable[ProblemCount]) -> None:
        """Takes in problems as another list holds them."""
        for problem in listed:
            if len(self.listed) >= self.most:
                break
            self.listed.append(problem)
        known = {(each.code, each.remark): each.count for each in self.counts}
        for each in counts:
            key = (each.code, each.remark)
            known[key] = known.get(key, 0) + each.count
        self.counts = [ProblemCount(*key, count) for key, count in known.items()]

    def not_listed(self) -> list[ProblemCount]:
        """How many problems of each code are not listed."""
        left = {(each.code, each.remark): each.count for each in self.counts}
        for problem in self.listed:
            left[problem.code, problem.remark] -= 1
        return [ProblemCount(*key, count) for key, count in left.items() if count]

    def report(self, path: str) -> list[Problem]:
        """For `path`, how many problems of each code are not listed; then the listed ones by path.

        The counts come first, so that they are seen where only the first lines are shown.
        """
        more = [
            Problem(
                path=path,
                code=each.code,
                reason=f"{_plural(each.count)} with the code {each.code} not listed.",
                remark=each.remark,
            )
            for each in self.not_listed()
        ]
        return [*more, *sorted(self.listed, key=lambda problem: problem.path)]


def _plural(count: int) -> str:
    return f"{count:,} more {'problem' if count == 1 else 'problems'}"
