"""Reads DAGs, tasks, runs and assets of an Airflow 3 server through its REST API."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import msgspec

from lumos.config.airflow import AirflowSettings
from lumos.errors import LumosError, MisuseError
from lumos.http.client import HttpClient, HttpError, HttpResponse, TimeLimits
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import RetryPolicy
from lumos.lineage.openlineage.naming import dataset_reference
from lumos.lineage.reported_lineage import (
    DatasetReference,
    JobFlow,
    LineageProblem,
    ReportedEdge,
    ReportedLineage,
)
from lumos.model.catalog import Job
from lumos.model.cron import parse_cron
from lumos.model.dataset import Schedule
from lumos.model.lineage import JobRun
from lumos.model.urn import Urn
from lumos.progress import Progress

_PLATFORM: Final = "airflow"
_API_PATH: Final = "/api/v2"
# The largest page that servers return by default.
_PAGE_SIZE: Final = 100
# A server that keeps returning pages is broken.
_MAX_PAGES: Final = 10_000
_MAX_RESPONSE_BYTES: Final = 64 * 1024**2
_RETRIES: Final = RetryPolicy(tries=6, seconds=60)
_OK, _CREATED = 200, 201
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 401, 403, 404
# The confidence of an edge from an asset that triggers a DAG to an asset that the DAG writes.
_TRIGGER_CONFIDENCE: Final = 0.5
_STATES: Final[Mapping[str, Literal["RUNNING", "COMPLETE", "FAILED", "ABORTED"]]] = {
    "success": "COMPLETE",
    "failed": "FAILED",
    "upstream_failed": "FAILED",
    "running": "RUNNING",
    "restarting": "RUNNING",
    "up_for_retry": "RUNNING",
    "deferred": "RUNNING",
    "removed": "ABORTED",
}


class AirflowUnavailable(LumosError):
    """The server cannot be read: it does not answer, or refuses the login."""


class _Refused(Exception):
    """A response that concerns one DAG only: it is gone, or not readable for this user."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


class _AirflowObject(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON object in a response; unknown keys are ignored."""


class _Tag(_AirflowObject, frozen=True, kw_only=True):
    name: str = ""


class _Dag(_AirflowObject, frozen=True, kw_only=True):
    dag_id: str
    dag_display_name: str | None = None
    description: str | None = None
    owners: list[str] = []
    tags: list[_Tag] = []
    timetable_summary: str | None = None
    relative_fileloc: str | None = None
    is_paused: bool = False


class _Task(_AirflowObject, frozen=True, kw_only=True):
    task_id: str
    owner: str | None = None
    operator_name: str | None = None


class _TaskReference(_AirflowObject, frozen=True, kw_only=True):
    dag_id: str
    task_id: str = ""


class _Asset(_AirflowObject, frozen=True, kw_only=True):
    uri: str
    name: str = ""
    scheduled_dags: list[_TaskReference] = []
    producing_tasks: list[_TaskReference] = []
    consuming_tasks: list[_TaskReference] = []


class _Run(_AirflowObject, frozen=True, kw_only=True):
    """A run of a DAG or of a task."""

    dag_run_id: str
    task_id: str = ""
    map_index: int = -1
    state: str | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None


def reporter_prefix(settings: AirflowSettings) -> str:
    """The prefix of the reporters of a server, one for each of its DAGs."""
    return f"airflow:{settings.base_url.partition('://')[2]}/"


class AirflowReader:
    """Reads the DAGs of one server; each DAG is a reporter."""

    def __init__(self, settings: AirflowSettings, progress: Progress) -> None:
        self._settings = settings
        self._progress = progress
        self._http = HttpClient(
            PooledTransport(
                limits=TimeLimits(min(10.0, settings.timeout), settings.timeout),
                ca_file=None if settings.ca_file is None else str(settings.ca_file),
            )
        )
        self._token: str | None = None
        self.problems: list[LineageProblem] = []
        # The DAGs that the server lists, even those that could not be read.
        self.listed: set[str] = set()

    def read(self) -> Iterator[ReportedLineage]:
        """Read all DAGs; raises AirflowUnavailable if the server cannot be read at all."""
        try:
            dags = [
                dag
                for dag in self._pages("/dags", "dags", _Dag)
                if _is_selected(dag.dag_id, self._settings)
            ]
            assets = list(self._pages("/assets", "assets", _Asset))
        except _Refused as refused:
            raise AirflowUnavailable(
                f"{self._settings.base_url} has no REST API of Airflow 3 (status "
                f"{refused.status}). Check its 'url'."
            ) from None
        self.listed = {dag.dag_id for dag in dags}
        for number, dag in enumerate(dags):
            self._progress("Reading DAGs", files=number, share=number / len(dags), unit="DAGs")
            try:
                yield self._report(dag, assets)
            except _Refused as refused:
                reason = (
                    "was removed while reading"
                    if refused.status == _NOT_FOUND
                    else "cannot be read by this user, so its earlier lineage is kept"
                )
                if refused.status == _NOT_FOUND:
                    self.listed.discard(dag.dag_id)
                self.problems.append(
                    LineageProblem(
                        place=self._reporter(dag.dag_id),
                        reason=f"The DAG {dag.dag_id} {reason}.",
                        severity="remark",
                    )
                )

    def close(self) -> None:
        self._http.close()

    def _report(self, dag: _Dag, assets: Sequence[_Asset]) -> ReportedLineage:
        path = f"/dags/{quote(dag.dag_id, safe='')}"
        tasks = list(self._pages(f"{path}/tasks", "tasks", _Task))
        runs = self._settings.runs
        newest = {"order_by": "-run_after"}
        dag_runs = self._pages(f"{path}/dagRuns", "dag_runs", _Run, limit=runs, **newest)
        task_runs = self._pages(
            f"{path}/dagRuns/~/taskInstances", "task_instances", _Run,
            limit=runs * len(tasks), **newest,
        )  # fmt: skip
        runs_by_task: dict[str, list[_Run]] = {"": list(dag_runs)}
        for run in task_runs:
            runs_by_task.setdefault(run.task_id, []).append(run)
        inlets = {task.task_id: _assets_of(assets, "consuming_tasks", dag, task) for task in tasks}
        outlets = {task.task_id: _assets_of(assets, "producing_tasks", dag, task) for task in tasks}
        triggers = [
            _reference(each.uri)
            for each in assets
            if any(scheduled.dag_id == dag.dag_id for scheduled in each.scheduled_dags)
        ]
        flows = [JobFlow(job=self._urn(dag.dag_id), inputs=tuple(triggers))] + [
            JobFlow(
                job=self._urn(dag.dag_id, task),
                inputs=tuple(inlets[task]),
                outputs=tuple(outlets[task]),
            )
            for task in inlets
        ]
        return ReportedLineage(
            reporter=self._reporter(dag.dag_id),
            edges=tuple(self._edges(dag, triggers, inlets, outlets)),
            jobs=(
                self._dag_job(dag, runs_by_task[""]),
                *(self._task_job(dag, task, runs_by_task.get(task.task_id, ())) for task in tasks),
            ),
            flows=tuple(flows),
        )

    def _edges(
        self,
        dag: _Dag,
        triggers: Sequence[DatasetReference],
        inlets: Mapping[str, Sequence[DatasetReference]],
        outlets: Mapping[str, Sequence[DatasetReference]],
    ) -> Iterator[ReportedEdge]:
        for task, outputs in outlets.items():
            for output in outputs:
                for source in inlets[task]:
                    if source != output:
                        job = self._urn(dag.dag_id, task)
                        yield ReportedEdge(upstream=source, downstream=output, job=job)
                for source in () if inlets[task] else triggers:
                    if source != output:
                        yield ReportedEdge(
                            upstream=source,
                            downstream=output,
                            job=self._urn(dag.dag_id),
                            confidence=_TRIGGER_CONFIDENCE,
                        )

    def _dag_job(self, dag: _Dag, runs: Sequence[_Run]) -> Job:
        urn = self._urn(dag.dag_id)
        properties = {
            "file": dag.relative_fileloc or "",
            "schedule": dag.timetable_summary or "",
            "tags": ", ".join(tag.name for tag in dag.tags),
            "paused": "true" if dag.is_paused else "",
            "url": f"{self._settings.base_url}/dags/{quote(dag.dag_id, safe='')}",
        }
        return Job(
            urn=urn,
            name=dag.dag_display_name or dag.dag_id,
            platform=_PLATFORM,
            owner=next(iter(dag.owners), None),
            description=dag.description,
            schedule=_schedule(dag.timetable_summary),
            runs=tuple(_job_runs(urn, runs)),
            properties={key: text for key, text in properties.items() if text},
        )

    def _task_job(self, dag: _Dag, task: _Task, runs: Sequence[_Run]) -> Job:
        urn = self._urn(dag.dag_id, task.task_id)
        return Job(
            urn=urn,
            name=f"{dag.dag_id}.{task.task_id}",
            platform=_PLATFORM,
            owner=task.owner or next(iter(dag.owners), None),
            runs=tuple(_job_runs(urn, runs)),
            properties={"operator": task.operator_name} if task.operator_name else {},
        )

    def _urn(self, *path: str) -> str:
        return str(Urn.of(_PLATFORM, path, instance=self._settings.instance))

    def _reporter(self, dag: str) -> str:
        return f"{reporter_prefix(self._settings)}{dag}"

    def _pages(
        self, path: str, key: str, kind: type[Any], *, limit: int | None = None, **query: str
    ) -> Iterator[Any]:
        """The entries of a list, page by page, up to `limit`."""
        offset = 0
        for _ in range(_MAX_PAGES):
            size = _PAGE_SIZE if limit is None else min(_PAGE_SIZE, limit - offset)
            if size <= 0:
                return
            parameters = urlencode({"limit": size, "offset": offset, **query})
            page = self._get(f"{path}?{parameters}")
            entries = page.get(key) if isinstance(page, dict) else None
            if not isinstance(entries, list):
                raise AirflowUnavailable(
                    f"{self._settings.base_url}{_API_PATH}{path} did not return '{key}'. "
                    "Is this an Airflow 3 server?"
                )
            for each in entries:
                try:
                    yield msgspec.convert(each, kind, strict=False)
                except msgspec.ValidationError as problem:
                    self.problems.append(
                        LineageProblem(
                            place=f"{self._settings.base_url}{_API_PATH}{path}",
                            reason=f"{problem}.",
                        )
                    )
            offset += len(entries)
            total = page.get("total_entries")
            # Lists of tasks have no pages: they ignore the offset.
            if not entries or len(entries) > size or (isinstance(total, int) and offset >= total):
                return

    def _get(self, path: str) -> Any:
        if self._token is None:
            self._token = self._log_in()
        response = self._send("GET", f"{self._settings.base_url}{_API_PATH}{path}")
        if response.status == _UNAUTHORIZED and self._settings.token is None:
            # The token may have expired during a long reading.
            self._token = self._log_in()
            response = self._send("GET", f"{self._settings.base_url}{_API_PATH}{path}")
        if response.status == _UNAUTHORIZED:
            raise AirflowUnavailable(
                f"{self._settings.base_url} refuses the login. Check 'token', or 'user' and "
                "'password', in the section 'airflow'."
            )
        if response.status == _FORBIDDEN and path.startswith(("/dags?", "/assets?")):
            collection = path[1:].partition("?")[0]
            raise AirflowUnavailable(
                f"This user of {self._settings.base_url} may not list its {collection}. "
                "Give the user the role Viewer."
            )
        if response.status in (_FORBIDDEN, _NOT_FOUND):
            raise _Refused(response.status)
        if response.status != _OK:
            raise AirflowUnavailable(
                f"{self._settings.base_url} answers with status {response.status}."
            )
        return self._decode(response)

    def _log_in(self) -> str:
        settings = self._settings
        if settings.token is not None:
            return settings.token.reveal().strip()
        if settings.user is None or settings.password is None:
            raise MisuseError(
                f"The Airflow server {settings.base_url} needs a 'token', or 'user' and 'password'."
            )
        body = msgspec.json.encode(
            {"username": settings.user, "password": settings.password.reveal()}
        )
        response = self._send("POST", f"{settings.base_url}/auth/token", body)
        decoded = self._decode(response) if response.status in (_OK, _CREATED) else None
        token = decoded.get("access_token") if isinstance(decoded, dict) else None
        if not isinstance(token, str):
            raise AirflowUnavailable(
                f"{settings.base_url} refuses the login of '{settings.user}' (status "
                f"{response.status}). Check 'user' and 'password' in the section 'airflow'."
            )
        return token

    def _send(self, method: str, url: str, body: bytes = b"") -> HttpResponse:
        headers = {"Accept": "application/json"}
        if body:
            headers["Content-Type"] = "application/json"
        elif self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            return self._http.send(
                method,
                url,
                headers=lambda: headers,
                body=body,
                retries=_RETRIES,
                max_bytes=_MAX_RESPONSE_BYTES,
            )
        except HttpError as problem:
            raise AirflowUnavailable(f"{problem}.") from problem

    def _decode(self, response: HttpResponse) -> Any:
        try:
            return msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise AirflowUnavailable(
                f"The response of {self._settings.base_url} is not JSON."
            ) from None


def _is_selected(dag: str, settings: AirflowSettings) -> bool:
    is_included = not settings.dags or any(fnmatchcase(dag, each) for each in settings.dags)
    return is_included and not any(fnmatchcase(dag, each) for each in settings.exclude)


def _assets_of(
    assets: Sequence[_Asset],
    relation: Literal["consuming_tasks", "producing_tasks"],
    dag: _Dag,
    task: _Task,
) -> list[DatasetReference]:
    task_key = dag.dag_id, task.task_id
    return [
        _reference(asset.uri)
        for asset in assets
        if any((each.dag_id, each.task_id) == task_key for each in getattr(asset, relation))
    ]


def _reference(uri: str) -> DatasetReference:
    """The dataset of an asset, from its URI or name.

    Examples: s3://bucket/path, postgres://host/database/schema/table.
    """
    scheme, has_scheme, rest = uri.partition("://")
    if not has_scheme:
        return dataset_reference("", uri)
    authority, _, path = rest.partition("/")
    path = path.partition("?")[0].strip("/")
    if scheme == "bigquery":
        return dataset_reference(scheme, ".".join((authority, *path.split("/"))))
    if scheme in ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs") or not path:
        return dataset_reference(f"{scheme}://{authority}", path or authority)
    return dataset_reference(f"{scheme}://{authority}", ".".join(path.split("/")))


def _schedule(timetable: str | None) -> Schedule | None:
    """The schedule of a DAG whose timetable is a cron expression."""
    try:
        parse_cron(timetable or "")
    except MisuseError:
        return None
    return Schedule(cron=timetable or "")


def _job_runs(job: str, runs: Sequence[_Run]) -> Iterator[JobRun]:
    for run in runs:
        state = _STATES.get(run.state or "")
        if state is None or run.start_date is None:
            # Scheduled, queued or skipped.
            continue
        suffix = f"/{run.map_index}" if run.map_index >= 0 else ""
        yield JobRun(
            run_id=f"{run.dag_run_id}{suffix}",
            job=job,
            started_at=run.start_date,
            ended_at=run.end_date,
            state=state,
        )
