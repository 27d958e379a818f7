"""Twelve pull requests on a sample repository, with the verdict and the exit code of each."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from gate.sample import CUSTOMER_360, MIRROR, ORDERS, USERS, SampleRepository, run_gate
from lumos import Lumos

TODAY = datetime.now(UTC).date()


class PullRequest(NamedTuple):
    """The files it changes, and what the gate says: verdict, exit codes and findings."""

    files: dict[str, str | None]
    verdict: str
    code: int
    strict_code: int
    findings: list[tuple[str, str, str | None, str]]


PULL_REQUESTS = {
    "added column": PullRequest(
        {"schemas/users.schema": USERS + "age INT32\n"},
        "passed", 0, 0, [("note", "users.age", None, "minor")],
    ),
    "dropped column with readers": PullRequest(
        {"schemas/users.schema": USERS.replace("email STRING\n", "")},
        "breaking", 10, 10,
        [("error", "users.email", "customer_360", "major"), ("error", "users.email", "report", "major")],
    ),
    "dropped column without readers": PullRequest(
        {"schemas/users.schema": USERS.replace("nickname STRING\n", "")},
        "passed", 0, 0, [("note", "users.nickname", None, "major")],
    ),
    "rename": PullRequest(
        {"schemas/users.schema": USERS.replace("email STRING", "mail STRING")},
        "breaking", 10, 10,
        [
            ("error", "users.email", "customer_360", "major"),
            ("error", "users.email", "report", "major"),
            ("note", "users.mail", None, "minor"),
        ],
    ),
    "type change absorbed by a cast": PullRequest(
        {
            "schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64"),
            "models/customer_360.sql": CUSTOMER_360.replace(
                "u.user_id,", "cast(u.user_id as varchar) as user_id,"
            ).replace("= u.user_id", "= cast(u.user_id as varchar)"),
        },
        "passed", 0, 0, [("note", "users.user_id", None, "major")],
    ),
    "SELECT * into a positional insert": PullRequest(
        {"schemas/orders.schema": ORDERS + "note STRING\n"},
        "breaking", 10, 10, [("error", "orders.note", "orders_mirror", "major")],
    ),
    "formatting only": PullRequest(
        {"models/customer_360.sql": CUSTOMER_360.upper().replace("-- OWNER: ANALYTICS-TEAM", "-- owner: analytics-team").replace(", ", ",\n  ")},
        "passed", 0, 0, [],
    ),
    "description only": PullRequest(
        {"schemas/users.schema": USERS.replace("email STRING", "email STRING COMMENT 'E-mail'")},
        "passed", 0, 0, [("note", "users.email", None, "patch")],
    ),
    "new required column": PullRequest(
        {"schemas/users.schema": USERS + "country STRING NOT NULL\n"},
        "passed", 0, 0, [("note", "users.country", None, "minor")],
    ),
    "partition change": PullRequest(
        {"schemas/orders.schema": ORDERS.replace("day DATE PARTITION", "day DATE")},
        "passed", 0, 0, [("note", "orders.day", None, "minor")],
    ),
    "enum change": PullRequest(
        {"schemas/orders.schema": ORDERS.replace("'paid')", "'paid','refunded')")},
        "breaking", 10, 10, [("error", "orders.status", "paid", "major")],
    ),
}  # fmt: skip


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    monkeypatch.chdir(tmp_path)
    return SampleRepository(tmp_path)


@pytest.mark.parametrize("name", PULL_REQUESTS)
def test_the_verdict_of_a_pull_request(repository: SampleRepository, name: str) -> None:
    request = PULL_REQUESTS[name]
    if "positional" in name:
        repository.change_main({"models/mirror.sql": MIRROR})
    repository.commit(request.files)
    code, report = run_gate()
    assert [
        (each["level"], f"{each['dataset']}.{each['path']}", each["affected"], each["bump"])
        for each in report["findings"]
    ] == request.findings
    assert (report["verdict"], code) == (request.verdict, request.code)
    assert run_gate("--strict")[0] == request.strict_code


def waived(repository: SampleRepository, expires_in: int) -> tuple[int, str]:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    (finding,) = repository.check().findings
    Lumos(environment={}).gate.waive(
        finding.fingerprint,
        reason="The reader is retired",
        approver="analytics-team",
        expires=TODAY + timedelta(days=expires_in),
    )
    repository.commit({})
    code, report = run_gate()
    return code, report["verdict"]


def test_a_waiver_that_is_used(repository: SampleRepository) -> None:
    assert waived(repository, 30) == (0, "passed")


def test_a_waiver_that_has_expired(repository: SampleRepository) -> None:
    assert waived(repository, -1) == (10, "breaking")
