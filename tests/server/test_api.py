"""Requests and answers: reports, problems, pages, conditions, streams, limits."""

import base64
import gzip
import json
import logging
from typing import Any

import pytest
from sqlalchemy import event

from lumos import Lumos
from lumos.datasets.service import Datasets
from lumos.discovery.watch_status import EventStatus, WatchStatusFiles
from lumos.model.json_codec import to_json
from lumos.storage import DEFAULT_ACCESS
from served_store import LAKE, client_of

EVENT = {
    "eventTime": "2024-01-01T00:00:00Z",
    "eventType": "COMPLETE",
    "producer": "https://example.com",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/definitions/RunEvent",
    "run": {"runId": "3f5e83fa-3480-44ff-99c5-ff943904e5e8"},
    "job": {"namespace": "nightly", "name": "tickets"},
    "inputs": [{"namespace": "file", "name": "/lake/orders"}],
    "outputs": [{"namespace": "file", "name": "/lake/tickets"}],
}


def test_an_answer_is_the_report_of_the_sdk(client: Any, lumos: Lumos) -> None:
    assert client.get("/api/v1/datasets/show?urn=orders").content == to_json(lumos.show("orders"))
    assert client.get("/api/v1/search?text=order").content == to_json(lumos.search("order"))
    assert client.get("/api/v1/cost/configured").json() is True


def test_an_error_is_a_problem_with_the_sentence_of_the_command(client: Any) -> None:
    response = client.get("/api/v1/datasets/show?urn=ordesr", headers={"X-Request-Id": "mine-1"})
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-request-id"] == "mine-1"
    assert response.json() == {
        "type": "urn:lumos:error:unknown-dataset",
        "title": "Not Found",
        "status": 404,
        "detail": "No dataset ordesr in the store. Did you mean 'orders'? See all with: lumos list",
        "exit_code": 2,
        "request_id": "mine-1",
        "nearest": ["orders"],
    }


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/v1/nowhere", 404, "There is no route /api/v1/nowhere"),
        ("/api/v1/search", 400, "missing required field `text`"),
        ("/api/v1/search?text=a&limit=x", 400, "Expected `int`"),
        ("/api/v1/search?text=a&limit=0", 400, "Expected `int` >= 1"),
        ("/api/v1/search?text=a&colour=red", 400, "Unknown parameter 'colour'"),
        ("/api/v1/search?text=a&text=b", 400, "'text' is given twice"),
        ("/api/v1/search?text=%FF", 400, "The query is not valid"),
        ("/api/v1/changes?since=soon", 422, "'soon'"),
        ("/api/v1/cost/report?urn=orders&prices=3", 400, "Write it as key=value"),
        (
            "/api/v1/schemas/diff?before=proposed.schema&after=orders",
            404,
            "No dataset proposed.schema",
        ),
        ("/api/v1/datasets/show?urn=orders&catalog=datahub:http://10.0.0.1", 422, "is an address"),
    ],
)
def test_wrong_requests_are_explained(client: Any, path: str, status: int, words: str) -> None:
    response = client.get(path)
    assert (response.status_code, words in response.json()["detail"]) == (status, True), (
        response.text
    )


def test_a_method_that_a_route_does_not_have_is_refused(client: Any) -> None:
    response = client.post("/api/v1/search", json={})
    assert (response.status_code, response.headers["allow"]) == (405, "GET, OPTIONS")


def test_long_lists_have_pages(client: Any) -> None:
    first = client.get("/api/v1/datasets?limit=1")
    link = first.headers["link"]
    assert link.startswith("</api/v1/datasets?limit=1&after=lumos%3A%2F%2Ffile%2Flake%2Forders")
    assert link.endswith('>; rel="next"')
    second = client.get(link.partition(">")[0][1:])
    urns = [page.json()["datasets"][0]["urn"] for page in (first, second)]
    assert urns == [f"{LAKE}/orders", f"{LAKE}/tickets"]
    third = client.get(second.headers["link"].partition(">")[0][1:])
    assert (third.json()["datasets"], "link" in third.headers) == ([], False)


def test_pages_of_changes_and_of_the_audit_log_are_complete(client: Any, lumos: Lumos) -> None:
    for path, items, key in (("changes", "events", "event_id"), ("audit", "entries", "sequence")):
        whole = [each[key] for each in client.get(f"/api/v1/{path}").json()[items]]
        url, paged = f"/api/v1/{path}?limit=3", []
        while url:
            response = client.get(url)
            paged += [each[key] for each in response.json()[items]]
            url = response.headers.get("link", "").partition(">")[0][1:]
        assert paged == whole
        assert len(whole) > 6
    assert [each.event_id for each in lumos.changes().events] == [
        each["event_id"] for each in client.get("/api/v1/changes").json()["events"]
    ]


def test_an_unchanged_answer_is_not_sent_again(client: Any) -> None:
    etag = client.get("/api/v1/datasets").headers["etag"]
    again = client.get("/api/v1/datasets", headers={"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    client.put("/api/v1/annotations/tags", json={"dataset": "orders", "names": ["new"]})
    changed = client.get("/api/v1/datasets", headers={"If-None-Match": etag})
    assert changed.status_code == 200


def test_a_conditional_write_needs_the_state_that_the_client_read(client: Any) -> None:
    etag = client.get("/api/v1/datasets/show?urn=orders").headers["etag"]
    body = {"dataset": "orders", "names": ["first"]}
    write = {"url": "/api/v1/annotations/tags", "json": body, "headers": {"If-Match": etag}}
    assert client.put(**write).status_code == 200
    refused = client.put(**{**write, "json": {**body, "names": ["second"]}})
    assert refused.status_code == 412
    assert "orders has changed since you read it" in refused.json()["detail"]
    tags = client.get("/api/v1/datasets/show?urn=orders").json()["dataset"]["governance"]["tags"]
    assert ("first" in tags, "second" in tags) == (True, False)


def test_files_travel_with_the_request_and_paths_of_the_server_are_not_read(client: Any) -> None:
    content = base64.b64encode(b"id INT64\n").decode()
    body = {"name": "orders", "proposed": {"name": "dir/new one.schema", "content": content}}
    report = client.post("/api/v1/schemas/predict", json=body).json()
    assert report["proposed"] == {"file": "dir/new one.schema", "kind": "lumos"}
    assert report["summary"]["breaking"] == 2
    broken = {**body, "proposed": {"name": "x.schema", "content": base64.b64encode(b"?").decode()}}
    problem = client.post("/api/v1/schemas/predict", json=broken)
    assert problem.status_code == 422
    assert "x.schema" in problem.json()["detail"]
    assert "lumos-request" not in problem.text
    as_path = client.post("/api/v1/schemas/predict", json={**body, "proposed": "/etc/passwd"})
    assert as_path.status_code == 400


@pytest.mark.parametrize("body", [EVENT, [EVENT], [EVENT, EVENT]], ids=["one", "batch", "twice"])
def test_openlineage_events_become_lineage(client: Any, lumos: Lumos, body: Any) -> None:
    response = client.post("/api/v1/lineage", json=body)
    assert (response.status_code, response.json()["edges"]["added"]) == (200, 1)
    edges = lumos.lineage.view.show("tickets").edges
    assert f"{LAKE}/orders" in {each.upstream for each in edges}


def test_openlineage_events_may_be_compressed(client: Any) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    body = gzip.compress(json.dumps(EVENT).encode())
    assert client.post("/api/v1/lineage", content=body, headers=headers).status_code == 200
    assert client.post("/api/v1/lineage", content=b"x", headers=headers).status_code == 400
    halves = gzip.compress(json.dumps(EVENT).encode()[:9]) + gzip.compress(
        json.dumps(EVENT).encode()[9:]
    )
    assert client.post("/api/v1/lineage", content=halves, headers=headers).status_code == 200
    for broken in (body[:-1], body[:-8], body[:20], body + b"x", body + body[:-1]):
        answer = client.post("/api/v1/lineage", content=broken, headers=headers)
        assert (answer.status_code, "valid gzip" in answer.text) == (400, True)
    many = gzip.compress(b"") * 1_000 + body
    assert client.post("/api/v1/lineage", content=many, headers=headers).status_code == 413
    parts = gzip.compress(b" " * 600_000) * 2
    assert client.post("/api/v1/lineage", content=parts, headers=headers).status_code == 413
    bomb = gzip.compress(b" " * 5_000_000)
    assert client.post("/api/v1/lineage", content=bomb, headers=headers).status_code == 413


@pytest.mark.parametrize("body", [{}, [], [{}], 3, "x", {"eventTime": "2024-01-01"}])
def test_what_is_no_openlineage_event_is_refused(client: Any, body: Any) -> None:
    assert client.post("/api/v1/lineage", json=body).status_code in (400, 422)


def test_changes_are_exported_as_lines(client: Any, lumos: Lumos) -> None:
    response = client.get("/api/v1/changes/export?types=CREATED")
    assert response.headers["content-type"] == "application/x-ndjson"
    expected = [to_json(each) for each in lumos.change_history.iterate(types=["CREATED"])]
    assert response.content.splitlines() == expected
    assert client.get("/api/v1/changes/export?types=NEVER").status_code in (404, 422)


def test_results_of_the_gate_are_recorded_once(client: Any) -> None:
    report = {
        "format_version": "1.0", "headline": "1 change breaks 1 dataset.", "verdict": "breaking",
        "base": "main", "head": "HEAD", "base_commit": "a" * 40, "head_commit": "b" * 40,
        "summary": {}, "findings": [], "waivers": [], "coverage": 1.0, "remarks": [],
    }  # fmt: skip
    schema = client.get("/openapi.json").json()["components"]["schemas"]["GateSummary"]
    report["summary"] = {
        name: 0 if kind.get("type") == "integer" else None
        for name, kind in schema["properties"].items()
    }
    body = {"report": report, "repository": "acme/shop", "pr": 7}
    first = client.post("/api/v1/gate/results", json=body)
    assert first.status_code == 200, first.text
    assert client.post("/api/v1/gate/results", json=body).json() == first.json()
    listed = client.get("/api/v1/gate/results?repository=acme/shop").json()["results"]
    assert [(each["pr"], each["verdict"]) for each in listed] == [(7, "breaking")]
    shown = client.get(f"/api/v1/gate/results/show?id={listed[0]['id']}").json()
    assert shown["report"]["headline"] == "1 change breaks 1 dataset."
    assert client.get("/api/v1/gate/results/show?id=none").status_code == 404


def test_bodies_have_limits_and_are_json(lumos: Lumos) -> None:
    with client_of(lumos, max_request_bytes=1_000) as client:
        large = {"dataset": "orders", "names": ["x" * 2_000]}
        assert client.put("/api/v1/annotations/tags", json=large).status_code == 413
        form = client.put("/api/v1/annotations/tags", data={"dataset": "orders"})
        assert form.status_code == 415
        text = {"content": b"{}", "headers": {"Content-Type": "text/plain"}}
        assert client.put("/api/v1/annotations/tags", **text).status_code == 415
        json_text = {"content": b"{", "headers": {"Content-Type": "application/json"}}
        assert client.put("/api/v1/annotations/tags", **json_text).status_code == 400


def test_requests_have_a_time_limit(lumos: Lumos) -> None:
    with client_of(lumos, request_seconds=0.000_001) as client:
        response = client.get("/api/v1/datasets")
    assert response.status_code == 504
    assert "server.request_seconds" in response.json()["detail"]


def test_answers_are_compressed(client: Any) -> None:
    for encoding in ("br", "gzip"):
        response = client.get("/openapi.json", headers={"Accept-Encoding": encoding})
        assert response.headers["content-encoding"] == encoding
        assert response.json()["openapi"] == "3.1.0"


def test_health_readiness_and_metrics(client: Any, lumos: Lumos) -> None:
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/ready").json()["status"] == "ready"
    client.get("/api/v1/datasets/show?urn=nothing")
    client.get("/any/path/that/a/client/makes/up")
    files = WatchStatusFiles(lumos.state_uri, DEFAULT_ACCESS)
    files.write(EventStatus(name="queue", sources=("s3://lake",), lag_p95_seconds=1.5, dead=2))
    metrics = client.get("/metrics").text
    assert 'lumos_watch_lag_seconds{event_source="queue"} 1.5' in metrics
    assert 'lumos_watch_dead_messages{event_source="queue"} 2.0' in metrics
    line = 'lumos_http_requests_total{method="GET",route="/api/v1/datasets/show",status="404"} 1.0'
    assert line in metrics
    assert "made" not in metrics
    with lumos.database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert client.get("/ready").status_code == 503


def test_logs_have_the_request_id_and_no_secret(
    client: Any, lumos: Lumos, caplog: pytest.LogCaptureFixture
) -> None:
    secret = lumos.tokens.create("ci").secret
    caplog.set_level(logging.INFO, logger="lumos.server")
    logging.getLogger("lumos").propagate = True
    headers = {"Authorization": f"Bearer {secret}", "X-Request-Id": "r-42"}
    client.get("/api/v1/search?text=hunter2-password", headers=headers)
    lines = [each.facts for each in caplog.records if each.name == "lumos.server"]  # type: ignore[attr-defined]
    facts = next(each for each in lines if each["request_id"] == "r-42")
    assert (facts["request_id"], facts["actor"], facts["status"]) == ("r-42", "ci", 200)
    assert facts["route"] == "/api/v1/search"
    logged = caplog.text + str(facts)
    assert secret not in logged
    assert "hunter2" not in logged


def test_a_defect_is_reported_without_its_details(
    client: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("internal detail")

    monkeypatch.setattr(Datasets, "data_platforms", fail)
    logging.getLogger("lumos").propagate = True
    response = client.get("/api/v1/datasets/platforms", headers={"X-Request-Id": "r-7"})
    assert response.status_code == 500
    assert "with request id r-7" in response.json()["detail"]
    assert "internal detail" not in response.text
    assert "internal detail" in caplog.text


def test_writes_are_audited_with_who_sent_them(client: Any, lumos: Lumos) -> None:
    secret = lumos.tokens.create("ci", role="write").secret
    headers = {"Authorization": f"Bearer {secret}", "X-Request-Id": "r-9"}
    body = {"dataset": "orders", "names": ["gold"]}
    client.put("/api/v1/annotations/tags", json=body, headers=headers)
    (entry,) = lumos.audit.list(limit=1).entries
    assert (entry.kind, entry.actor, entry.origin, entry.request_id, entry.action) == (
        "token", "ci", "127.0.0.1", "r-9", "tag add",
    )  # fmt: skip
    assert lumos.changes(limit=1).events[0].author == "ci"


def test_a_read_is_one_transaction(lumos: Lumos, client: Any) -> None:
    begun: list[object] = []
    event.listen(lumos.database.engine, "begin", begun.append)
    assert client.get("/api/v1/datasets/show", params={"urn": "orders"}).status_code == 200
    assert len(begun) == 1
