"""Requests that schemathesis makes up from the OpenAPI document, for every route."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from server.live_server import live_server

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
# A stream of events never ends.
ENDLESS = "/api/v1/changes/events"


@pytest.fixture(scope="module")
def api(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The schema of a running server."""
    folder = tmp_path_factory.mktemp("fuzzed") / "work"
    shutil.copytree(filled, folder)
    with (folder / "lumos.yaml").open("a") as config:
        config.write("\nserver: {requests_per_minute: 1000000}\n")
    with live_server(folder) as server:
        url = f"{server.url}/openapi.json"
        yield schemathesis.openapi.from_url(url, timeout=120).exclude(path=ENDLESS)


schema = schemathesis.pytest.from_fixture("api")


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_fails_and_every_answer_is_documented(case: Any) -> None:
    case.call_and_validate(checks=CHECKS, timeout=120)
