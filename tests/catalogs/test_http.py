"""Calls that fail: which are made again, after how long, and what is said in the end."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from threading import Barrier, Event

import msgspec
import pytest

from lumos.catalogs.http import (
    CATALOG_RETRIES,
    Caller,
    CatalogServer,
    ConcurrencyLimit,
    Fault,
    no_response_fault,
    response_fault,
    unreachable_fault,
)
from lumos.config.platforms import DatahubPlatform, OpenmetadataPlatform, Retries
from lumos.errors import (
    CatalogBusy,
    CatalogError,
    CatalogRefused,
    CatalogUnavailable,
    CatalogUnreachable,
)
from lumos.http.retries import RetryPolicy, retry_after_seconds

THERE = CatalogServer("x:https://c.example", "https://c.example", "x.token", "X_TOKEN", "x.ca_file")


class Faulty(Exception):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.text)


class Time:
    """A clock that only moves while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def caller(time: Time, *, seed: int = 1, parallel: int = 1, **retries: float) -> Caller:
    return Caller(
        msgspec.structs.replace(CATALOG_RETRIES, **retries),
        lambda problem: problem.fault if isinstance(problem, Faulty) else None,
        server=THERE,
        parallel=parallel,
        clock=time.clock,
        sleep=time.sleep,
        random=Random(seed),
    )


def in_turn(*outcomes: Fault | str) -> Callable[[], str]:
    """An attempt that meets these, one after the other."""
    left = iter(outcomes)

    def attempt() -> str:
        outcome = next(left)
        if isinstance(outcome, Fault):
            raise Faulty(outcome)
        return outcome

    return attempt


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_faults_that_pass_are_tried_again(status: int) -> None:
    made = caller(Time())
    fault = response_fault(status, "busy")
    assert made.call("it", in_turn(fault, fault, "done")) == "done"
    assert (made.calls, made.faults) == (3, {status: 2})


@pytest.mark.parametrize("status", [400, 404, 405, 409, 412, 413, 422, 501])
def test_what_a_server_refuses_is_not_tried_again(status: int) -> None:
    made = caller(Time())
    with pytest.raises(CatalogError, match=f"rejected the tags: {status} no such") as caught:
        made.call("the tags", in_turn(response_fault(status, "no such"), "never"))
    assert (made.calls, caught.value.status, caught.value.retryable) == (1, status, False)
    assert not isinstance(caught.value, CatalogUnavailable)


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_not_let_in_hears_where_a_token_is_given(status: int) -> None:
    made = caller(Time())
    said = response_fault(status, "Bearer eyJhbGciOi.eyJzdWIi.c2ln is not valid")
    with pytest.raises(CatalogRefused, match=r"platform_config\.x\.token .*X_TOKEN") as caught:
        made.call("it", in_turn(said, "never"))
    assert (made.calls, caught.value.status) == (1, status)
    assert "eyJ" not in str(caught.value)


def test_waits_grow_are_shaken_and_have_an_end() -> None:
    fault = response_fault(503, "busy")
    for seed in range(20):
        time = Time()
        made = caller(time, seed=seed, first_wait=1, factor=3, max_wait=20, tries=7)
        made.call("it", in_turn(*[fault] * 6, "done"))
        assert all(
            pause <= limit for pause, limit in zip(time.slept, (1, 3, 9, 20, 20, 20), strict=True)
        )
        assert len(set(time.slept)) == 6


def test_the_server_says_how_long_to_wait() -> None:
    time = Time()
    made = caller(time)
    assert made.call("it", in_turn(response_fault(429, "slow", "7"), "done")) == "done"
    assert time.slept == [7]


def test_a_long_wait_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    time = Time()
    made = caller(time, max_wait=60, seconds=900)
    with caplog.at_level(logging.WARNING):
        made.call(
            "it", in_turn(response_fault(503, "", "100"), response_fault(503, "", "200"), "done")
        )
    assert time.slept == [100, 200]
    assert [record.getMessage() for record in caplog.records] == [
        "x:https://c.example asks for a pause of 100 s; waiting"
    ]


def test_a_wait_that_is_too_long_is_not_begun() -> None:
    time = Time()
    made = caller(time, seconds=900)
    with pytest.raises(CatalogBusy, match="tried once over 0 s, the last time with: 503 closed"):
        made.call("it", in_turn(response_fault(503, "closed", "901"), "never"))
    assert time.slept == []


def test_patience_ends_after_so_many_tries_and_says_so() -> None:
    made = caller(Time(), tries=4, first_wait=0.001)
    with pytest.raises(CatalogBusy, match=r"3 entries was tried 4 times .*: 502 bad gate") as busy:
        made.call("3 entries", in_turn(*[response_fault(502, "bad gate")] * 9))
    assert (made.calls, busy.value.attempts, busy.value.status) == (4, 4, 502)
    assert busy.value.retryable


def test_an_internal_error_that_stays_is_the_fault_of_what_was_sent() -> None:
    made = caller(Time())
    with pytest.raises(CatalogError) as caught:
        made.call("it", in_turn(*[response_fault(500, "null pointer")] * 9))
    assert (made.calls, caught.value.status) == (3, 500)
    assert not isinstance(caught.value, CatalogUnavailable)


@pytest.mark.parametrize(
    "fault",
    [no_response_fault("reset"), response_fault(503, "busy"), response_fault(500, "oops"),
     response_fault(429, "slow")],
)  # fmt: skip
def test_a_temporary_fault_is_retried(fault: Fault) -> None:
    assert caller(Time()).call("it", in_turn(fault, "done")) == "done"


def test_nobody_at_the_address_is_told_at_once() -> None:
    made = caller(Time())
    with pytest.raises(CatalogUnreachable, match=r"at https://c\.example: refused\. Check the ad"):
        made.call("it", in_turn(unreachable_fault("refused"), "never"))
    assert made.calls == 1


def test_a_certificate_that_nobody_knows_leads_to_the_file_of_its_authority() -> None:
    with pytest.raises(CatalogUnreachable, match=r"set x\.ca_file to the file of its authority"):
        caller(Time()).call("it", in_turn(unreachable_fault("SSL: certificate verify failed")))


def test_a_server_that_was_there_may_come_back() -> None:
    made = caller(Time())
    made.call("first", in_turn("done"))
    assert (
        made.call(
            "second", in_turn(unreachable_fault("refused"), unreachable_fault("refused"), "done")
        )
        == "done"
    )
    assert made.faults == {"unreachable": 2}


def test_what_is_no_fault_of_a_call_is_raised_as_it_is() -> None:
    def attempt() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        caller(Time()).call("it", attempt)


def test_all_wait_where_one_was_asked_to() -> None:
    time = Time()
    made = caller(time, tries=1)
    patient = caller(time)
    with pytest.raises(CatalogBusy):
        made.call("one", in_turn(response_fault(429, "", "30")))
    assert time.slept == []
    patient.call("one", in_turn(response_fault(429, "", "30"), "done"))
    time.now -= 10
    patient.call("another", in_turn("done"))
    assert time.slept == [30, 10]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("0", 0),
        (" 120 ", 120),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0),
        ("Sun, 15 Nov 2026 12:00:30", 30),
        ("-3", None),
        ("soon", None),
        ("", None),
    ],
)
def test_how_long_to_wait_is_a_number_or_a_date(text: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(text, datetime(2026, 11, 15, 12, tzinfo=UTC)) == seconds


def test_what_a_server_says_is_one_line_without_secrets() -> None:
    said = response_fault(400, "<html>\n token=abcdef and\tpassword: x1 " + "blah " * 200).text
    assert said.startswith("<html> token=*** and password: *** blah")
    assert len(said) < 420
    assert "\n" not in said


def test_complaints_halve_the_lanes_and_good_answers_open_them_again() -> None:
    concurrency = ConcurrencyLimit(4)
    for expected in (2, 1, 1):
        concurrency.decrease()
        assert concurrency.limit == expected
    for _ in range(19):
        concurrency.count_success()
    assert concurrency.limit == 1
    concurrency.count_success()
    assert concurrency.limit == 2
    for _ in range(100):
        concurrency.count_success()
    assert concurrency.limit == 4


def test_too_many_calls_make_fewer_run_at_once() -> None:
    made = caller(Time(), parallel=4)
    made.call("it", in_turn(response_fault(429, "slow"), response_fault(503, "busy"), "done"))
    assert made.concurrency.limit == 2


def test_calls_run_beside_each_other_but_no_more_than_there_are_lanes() -> None:
    made = caller(Time(), parallel=3)
    together = Barrier(3)

    def work(number: int) -> int:
        return made.call("it", lambda: together.wait(10) * 0 + number)

    assert sorted(made.each(range(9), work)) == list(range(9))


def test_a_call_may_make_another_one_also_where_only_one_runs_at_once() -> None:
    made = caller(Time(), parallel=1)
    assert (
        made.call("outer", lambda: made.call("inner", in_turn(no_response_fault("reset"), "done")))
        == "done"
    )
    assert made.calls == 3
    assert list(made.each([1], lambda _: made.call("next", in_turn("done")))) == ["done"]


def test_what_is_under_way_is_told_before_a_failure_is_raised() -> None:
    made = caller(Time(), parallel=2)
    begun, failed = Event(), Event()

    def work(number: int) -> int:
        if number == 0:
            begun.wait(10)
            failed.set()
            raise CatalogError("broken", platform="x")
        begun.set()
        failed.wait(10)
        return number

    results: list[int] = []
    with pytest.raises(CatalogError, match="broken"):
        results.extend(made.each(range(100), work))
    assert 1 in results
    assert len(results) < 5


def test_nobody_waits_for_better_times_once_the_work_is_not_wanted() -> None:
    failed = Event()

    def fault_of(_problem: Exception) -> Fault:
        failed.set()
        return no_response_fault("reset")

    retries = RetryPolicy(tries=12, seconds=900, first_wait=600, factor=1, max_wait=600)
    made = Caller(retries, fault_of, server=THERE, parallel=2, random=Random(3))

    def work(number: int) -> int:
        if number == 1:
            return len(made.call("it", in_turn(no_response_fault("reset"), "never")))
        failed.wait(10)
        return number

    results = made.each(range(2), work)
    assert next(results) == 0
    results.close()
    assert made.calls == 1


def test_a_caller_has_the_patience_of_the_settings() -> None:
    settings = DatahubPlatform(
        gms_server="https://GMS.example:443/", retries=Retries(attempts=2, longest=5), parallel=7
    )
    made = Caller.of("datahub", settings, lambda problem: response_fault(503, str(problem), "6"))

    def attempt() -> None:
        raise OSError("busy")

    with pytest.raises(CatalogBusy, match=r"datahub:https://gms\.example did not answer: it was"):
        made.call("it", attempt)
    assert made.concurrency.limit == 7


def test_errors_name_the_keys_of_the_catalog() -> None:
    settings = OpenmetadataPlatform(server="http://om.example:8585/api")
    assert CatalogServer.of("openmetadata", settings) == CatalogServer(
        "openmetadata:http://om.example:8585",
        "http://om.example:8585",
        "openmetadata.auth_token",
        "OPENMETADATA_JWT_TOKEN",
        "platform_config.openmetadata.ca_file",
    )
