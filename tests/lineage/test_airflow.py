"""DAGs, tasks, runs and assets of Airflow: from a stub of its REST API, and from a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_server import RecordingServer, Request, Response
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.lineage.reports import LineageIngestReport
from servers.airflow import airflow_server

RAW, MART = "lumos://s3/lake/raw/orders", "lumos://s3/lake/marts/daily_revenue"


def asset(uri: str, *, reads: str = "", writes: str = "", triggers: str = "") -> dict[str, Any]:
    def tasks(text: str) -> list[dict[str, str]]:
        return [
            dict(zip(("dag_id", "task_id"), each.split("."), strict=False)) for each in text.split()
        ]

    return {
        "id": 1, "name": uri, "uri": uri, "consuming_tasks": tasks(reads),
        "producing_tasks": tasks(writes), "scheduled_dags": tasks(triggers),
    }  # fmt: skip


class AirflowStub(RecordingServer):
    """Answers as Airflow 3.3 does, in pages of at most two entries."""

    def __init__(self) -> None:
        super().__init__()
        self.password = "secret"
        self.tokens = 0
        self.dags = ["sales", "report"]
        self.tasks = {"sales": ["extract", "load"], "report": ["send"]}
        self.refused: dict[str, int] = {}
        self.assets = [
            asset("s3://lake/raw/orders", reads="sales.load", writes="sales.extract"),
            asset("s3://lake/marts/daily_revenue", writes="sales.load", triggers="report"),
            asset("s3://lake/reports/daily", writes="report.send"),
        ]

    def respond(self, request: Request) -> Response:
        if request.path == "/auth/token":
            if json.loads(request.body) != {"username": "ann", "password": self.password}:
                return _json({"detail": "Invalid credentials"}, 401)
            self.tokens += 1
            return _json({"access_token": f"token-{self.tokens}"}, 201)
        if request.headers.get("authorization") != f"Bearer token-{self.tokens}":
            return _json({"detail": "Unauthorized"}, 401)
        _, _, _, *parts = request.path.split("/")
        if (status := self.refused.get("/".join(parts))) is not None:
            return _json({"detail": "refused"}, status)
        match parts:
            case ["dags"]:
                entries = [
                    {"dag_id": each, "owners": [f"{each}-team"], "timetable_summary": "0 6 * * *"}
                    for each in self.dags
                ]
                return self._page("dags", entries, request)
            case ["assets"]:
                return self._page("assets", self.assets, request)
            case ["dags", dag, "tasks"]:
                tasks = [
                    {"task_id": each, "owner": f"{dag}-team"} for each in self.tasks.get(dag, ())
                ]
                return _json({"tasks": tasks, "total_entries": len(tasks)})
            case ["dags", _, "dagRuns"]:
                return self._page(
                    "dag_runs", [_run("r2", "failed"), _run("r1", "success")], request
                )
            case ["dags", dag, "dagRuns", "~", "taskInstances"]:
                runs = [
                    {**_run("r1", "success"), "task_id": each} for each in self.tasks.get(dag, ())
                ]
                return self._page("task_instances", [*runs, _run("r3", None)], request)
        return _json({"detail": "not found"}, 404)

    def _page(self, key: str, entries: list[Any], request: Request) -> Response:
        start = int(request.query["offset"])
        size = min(2, int(request.query["limit"]))
        page = entries[start : start + size]
        return _json({key: page, "total_entries": len(entries)})


def _run(id: str, state: str | None) -> dict[str, Any]:
    return {
        "dag_run_id": id, "state": state, "start_date": "2026-01-02T06:00:00Z",
        "end_date": "2026-01-02T06:10:00Z", "note": None,
    }  # fmt: skip


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), {"content-type": "application/json"})


@pytest.fixture
def stub() -> Iterator[AirflowStub]:
    with AirflowStub() as server:
        yield server


def lumos_for(url: str, folder: Path, **settings: Any) -> Lumos:
    server = {"url": url, "user": "ann", "password": "secret", **settings}
    return Lumos(overrides={"storage.path": str(folder / "lumos.db"), "airflow": [server]})


def edges(lumos: Lumos) -> dict[tuple[str, str], float]:
    stored = lumos._store.create().lineage.all()
    return {(each.upstream, each.downstream): each.confidence for each in stored}


def test_assets_are_edges_and_tasks_are_jobs_with_runs(stub: AirflowStub, workplace: Path) -> None:
    lumos = lumos_for(stub.url, workplace)
    report = lumos.lineage.ingest()
    assert (report.failed, report.problems, report.jobs, report.runs) == ((), (), 5, 7)
    assert edges(lumos) == {
        (RAW, MART): 1.0,
        (MART, "lumos://s3/lake/reports/daily"): 0.5,
    }
    jobs = {job.urn: job for job in lumos._store.create().lineage.jobs()}
    load = jobs["lumos://airflow/sales/load"]
    assert (load.owner, load.inputs, load.outputs) == ("sales-team", (RAW,), (MART,))
    dag = jobs["lumos://airflow/sales"]
    assert dag.schedule is not None
    assert dag.schedule.cron == "0 6 * * *"
    assert [(run.run_id, run.state) for run in dag.runs] == [("r1", "COMPLETE"), ("r2", "FAILED")]
    assert lumos.lineage.ingest(f"{stub.url}/").edges.unchanged == 2


def test_lists_are_read_to_the_last_page(stub: AirflowStub, workplace: Path) -> None:
    stub.dags = [f"dag_{number}" for number in range(5)]
    stub.tasks = {each: ["only"] for each in stub.dags}
    assert lumos_for(stub.url, workplace).lineage.ingest().jobs == 10
    assert (
        lumos_for(stub.url, workplace, dags=["dag_[12]"], exclude=["*2"]).lineage.ingest().jobs == 2
    )


def refused(stub: AirflowStub, workplace: Path, **settings: Any) -> LineageIngestReport:
    lumos = lumos_for(stub.url, workplace)
    lumos.lineage.ingest()
    before = edges(lumos)
    report = lumos_for(stub.url, workplace, **settings).lineage.ingest()
    assert edges(lumos) == before
    return report


def test_a_refused_login_keeps_the_lineage_and_names_no_secret(
    stub: AirflowStub, workplace: Path
) -> None:
    report = refused(stub, workplace, password="wrong-secret")
    (problem,) = report.problems
    assert report.failed == (stub.url,)
    assert "refuses the login of 'ann' (status 401)" in problem.reason
    assert "wrong-secret" not in problem.reason
    assert (
        "refuses the login"
        in refused(stub, workplace, user=None, password=None, token="old").problems[0].reason
    )


def test_missing_permissions_keep_the_lineage(stub: AirflowStub, workplace: Path) -> None:
    lumos = lumos_for(stub.url, workplace)
    lumos.lineage.ingest()
    stub.refused = {"dags/sales/tasks": 403}
    (remark,) = lumos.lineage.ingest().problems
    assert "The DAG sales cannot be read by this user" in remark.reason
    stub.refused = {"assets": 403}
    assert "may not list its assets" in lumos.lineage.ingest().problems[0].reason
    stub.refused = {}
    stub.dags = []
    report = lumos.lineage.ingest()
    assert (len(report.held), report.gone) == (2, ())
    assert len(edges(lumos)) == 2
    assert len(lumos.lineage.ingest(accept_removals=True).gone) == 2
    assert edges(lumos) == {}
    assert lumos.lineage.ingest(accept_removals=True).gone == ()


def test_a_dag_that_is_removed_while_reading_is_left_out(
    stub: AirflowStub, workplace: Path
) -> None:
    lumos = lumos_for(stub.url, workplace)
    lumos.lineage.ingest()
    stub.refused = {"dags/report/tasks": 404}
    report = lumos.lineage.ingest()
    assert "The DAG report was removed while reading" in report.problems[0].reason
    assert [name.rpartition("/")[2] for name in report.gone] == ["report"]
    assert list(edges(lumos)) == [(RAW, MART)]


def test_an_expired_token_and_a_busy_server_are_no_failure(
    stub: AirflowStub, workplace: Path
) -> None:
    answers = iter([_json({}, 503), Response(429, b"", {"retry-after": "0"})])
    expirations = iter([1])

    def answer(request: Request) -> Response | None:
        if request.path.endswith("/dags/sales/tasks"):
            stub.tokens += next(expirations, 0)
        return next(answers, None) if request.path == "/api/v2/assets" else None

    stub.answer = answer
    assert lumos_for(stub.url, workplace).lineage.ingest().failed == ()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "is not JSON"),
        (b"{}", "did not return 'dags'"),
        (b'{"dags": [{"dag_id": 7}], "total_entries": 1}', "Expected `str`"),
        (b'{"dags": [], "total_entries": 1000000}', ""),
    ],
)
def test_other_answers_are_named(stub: AirflowStub, workplace: Path, body, reason) -> None:
    stub.answer = lambda request: Response(200, body) if request.path == "/api/v2/dags" else None
    report = lumos_for(stub.url, workplace).lineage.ingest()
    assert [reason in each.reason for each in report.problems] == [True] * bool(reason)


def test_hostile_names_stay_names(stub: AirflowStub, workplace: Path) -> None:
    name = "../../x?y=1#'; DROP TABLE job; --"
    stub.dags, stub.tasks = [name], {}
    lumos_for(stub.url, workplace).lineage.ingest()
    asked = [each.target for each in stub.requests if "/tasks" in each.target]
    assert asked == [
        "/api/v2/dags/..%2F..%2Fx%3Fy%3D1%23%27%3B%20DROP%20TABLE%20job%3B%20--/tasks?limit=100&offset=0"
    ]


def test_an_address_that_is_not_configured_is_refused(stub: AirflowStub, workplace: Path) -> None:
    with pytest.raises(MisuseError, match="nor an Airflow server of the configuration"):
        lumos_for(stub.url, workplace).lineage.ingest("http://127.0.0.1:1")
    assert stub.requests == []


@pytest.mark.slow
def test_a_real_server_is_read_by_a_viewer(workplace: Path) -> None:
    with airflow_server() as server:
        viewer = {"user": "viewer", "password": server.passwords["viewer"]}
        lumos = lumos_for(server.url, workplace, **viewer)
        report = lumos.lineage.ingest()
        assert (report.failed, report.problems, report.jobs) == ((), (), 5)
        assert edges(lumos) == {
            (RAW, MART): 1.0,
            (MART, "lumos://s3/lake/reports/daily"): 0.5,
        }
        jobs = {job.urn: job for job in lumos._store.create().lineage.jobs()}
        assert [run.state for run in jobs["lumos://airflow/sales_daily/aggregate"].runs] == [
            "COMPLETE"
        ]
        assert jobs["lumos://airflow/sales_daily"].owner == "finance-team"
        wrong = lumos_for(server.url, workplace, user="viewer", password="x").lineage.ingest()
        assert "refuses the login of 'viewer' (status 401)" in wrong.problems[0].reason
