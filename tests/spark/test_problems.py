"""Problems of any number of files."""

import msgspec

from lumos.model.discovery import Problem
from lumos.spark.problems import ProblemList


def problem(number: int, code: str = "bad", *, remark: bool = False) -> Problem:
    return Problem(path=f"/{number:04d}", code=code, reason="It is bad.", remark=remark)


def test_the_first_are_listed_and_all_are_counted() -> None:
    found = ProblemList(3)
    for number in range(10):
        found.add(problem(9 - number, remark=number % 2 == 0))
    assert (found.total, found.failures) == (10, 5)
    remarks, failures, *listed = found.report("/lake")
    assert [each.path for each in listed] == ["/0007", "/0008", "/0009"]
    assert (remarks.path, remarks.code, remarks.remark) == ("/lake", "bad", True)
    assert remarks.reason == "3 more problems with the code bad not listed."
    assert failures.reason == "4 more problems with the code bad not listed."


def test_nothing_is_said_of_more_where_all_are_listed() -> None:
    found = ProblemList(3)
    found.add(problem(1))
    assert found.report("/lake") == [problem(1)]


def test_lists_of_several_tasks_add_up() -> None:
    whole = ProblemList(5)
    for task in range(4):
        found = ProblemList(2)
        for number in range(3):
            found.add(problem(task * 10 + number, code=f"code{number}"))
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=ProblemList)
        whole.join(again)
    assert len(whole.listed) == 5
    assert (whole.total, whole.failures) == (12, 12)
    assert sum(each.count for each in whole.not_listed()) == 7
