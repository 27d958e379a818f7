"""The routes of the API: the only list of what a server can do, and of the roles it requires.

Request handlers, the OpenAPI document, access control and the client are derived from this table.
"""

from collections.abc import Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import msgspec

from lumos.server.sdk_methods import SdkMethod
from lumos.store.tokens import Role

PREFIX: Final = "/api/v1"
HttpMethod = Literal["GET", "POST", "PUT", "DELETE"]
# Parameters for a file on the client's machine, which the client writes itself.
_OUTPUT: Final = ("output",)


class Page(NamedTuple):
    """How a long list is divided into pages of at most `size` items.

    `items` is the field of the report with the list, `key` the field of an item that identifies its
    position, and `cursor` the parameter that takes the key of the last item of a page.
    """

    items: str
    cursor: str
    key: str
    size: int


class UploadedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of the client; `name` is its path there, which reports show."""

    name: str
    content: bytes


class UploadedPath(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of the client, or a folder with all its files, whose names are relative paths.

    `name` identifies the file or folder in reports and at the next upload: what came from files
    that a folder no longer contains is removed.
    """

    name: str
    is_folder: bool
    files: tuple[UploadedFile, ...]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A method of the SDK (`sdk_path`) under an HTTP method and a path.

    - `aliases`: other methods that do the same.
    - `omitted`: parameters that a client cannot set, since they concern the machine of the server.
    - `fixed`: values for parameters that a client cannot set.
    - `files`: parameters whose files the client sends; folders too if the parameter is a list.
    - `has_stable_file_names`: the store identifies these files by a name that is the same in all
      checkouts of a repository.
    - `catalogs`: parameters with the name of a configured catalog.
    - `conditional`: the parameter with the dataset whose ETag a client may send in If-Match.
    - `output`: the parameter for a file that the method writes; its content is the response.
    """

    method: HttpMethod
    path: str
    sdk_path: str
    role: Role
    aliases: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = MappingProxyType({})
    files: tuple[str, ...] = ()
    has_stable_file_names: bool = False
    catalogs: tuple[str, ...] = ()
    page: Page | None = None
    conditional: str | None = None
    output: str | None = None

    @property
    def url(self) -> str:
        """The path of the route from the root of the server."""
        return f"{PREFIX}{self.path}"

    @property
    def has_body(self) -> bool:
        """Whether arguments are sent as a JSON object in the body, instead of in the query."""
        return self.method in ("POST", "PUT")

    @property
    def sdk_method(self) -> SdkMethod:
        """The method of the SDK."""
        output = () if self.output is None else (self.output,)
        return _sdk_method(self.sdk_path, (*self.omitted, *self.fixed, *output))


@cache
def _sdk_method(path: str, omitted: tuple[str, ...]) -> SdkMethod:
    return SdkMethod(path, omitted)


def _get(path: str, sdk_path: str, role: Role = "read", **settings: Any) -> Route:
    return Route(method="GET", path=path, sdk_path=sdk_path, role=role, **settings)


def _post(path: str, sdk_path: str, role: Role = "write", **settings: Any) -> Route:
    return Route(method="POST", path=path, sdk_path=sdk_path, role=role, **settings)


def _put(path: str, sdk_path: str, role: Role = "write", **settings: Any) -> Route:
    return Route(method="PUT", path=path, sdk_path=sdk_path, role=role, **settings)


def _delete(path: str, sdk_path: str, role: Role = "write", **settings: Any) -> Route:
    return Route(method="DELETE", path=path, sdk_path=sdk_path, role=role, **settings)


def _annotations(name: str) -> tuple[Route, ...]:
    """The routes of one kind of annotation."""
    path, sdk_path = f"/annotations/{name}", f"annotations.{name}"
    return (
        _get(path, f"{sdk_path}.list"),
        _put(path, f"{sdk_path}.set", conditional="dataset"),
        _delete(path, f"{sdk_path}.remove", conditional="dataset"),
    )


ROUTES: Final[tuple[Route, ...]] = (
    # Datasets.
    _get("/datasets", "list", aliases=("datasets.list",),
         page=Page("datasets", "after", "urn", 1_000)),
    _get("/datasets/show", "show", catalogs=("catalog",)),
    _get("/datasets/partitions", "partitions.show"),
    _get("/datasets/platforms", "datasets.data_platforms"),
    _post("/datasets/names", "datasets.display_names", "read"),
    _get("/search", "search", catalogs=("catalog",)),
    _get("/overview", "overview", aliases=("datasets.overview",)),
    _get("/overview/trends", "datasets.trends"),
    # Schemas, changes and versions.
    _get("/schemas/history", "schema.history", aliases=("history",)),
    _get("/schemas/timeline", "schema.timeline"),
    _get("/schemas/evolution", "schema.evolution"),
    _get("/schemas/diff", "schema.diff", omitted=_OUTPUT, fixed={"read_files": False}),
    _post("/schemas/predict", "schema.predict", "read", files=("proposed",), omitted=_OUTPUT),
    _get("/changes", "changes", page=Page("events", "after", "event_id", 100)),
    _get("/changes/export", "change_history.iterate"),
    _get("/changes/latest", "change_history.latest"),
    _get("/versions/show", "version.show"),
    _get("/versions/map", "version.map"),
    _get("/versions/scan", "version.scan", omitted=("update",)),
    _post("/versions/bump", "version.bump", omitted=("author",)),
    # Lineage and impact.
    _get("/lineage/show", "lineage.view.show"),
    _get("/lineage/picture", "lineage.view.picture"),
    _get("/lineage/drawing", "lineage.view.drawn"),
    _post("/lineage/paths", "lineage.view.paths", "read"),
    _get("/lineage/reference", "lineage.view.split"),
    _post("/lineage/files", "lineage.ingest", files=("paths",), has_stable_file_names=True),
    _put("/lineage/edges", "lineage.add"),
    _delete("/lineage/edges", "lineage.remove"),
    _post("/impact", "impact.of", "read", files=("proposed",), omitted=("check_on_spark",)),
    _post("/impact/changes", "impact.of_changes", "read", files=("file",),
          omitted=("check_on_spark",)),
    # Annotations and owners.
    _get("/annotations", "annotations.list"),
    *_annotations("tags"),
    *_annotations("compliance"),
    *_annotations("terms"),
    *_annotations("docs"),
    *_annotations("properties"),
    _post("/annotations/enrich", "annotations.enrich", files=("file",), has_stable_file_names=True),
    _put("/annotations/schedules", "annotations.schedules.set", conditional="dataset"),
    _delete("/annotations/schedules", "annotations.schedules.remove", conditional="dataset"),
    _get("/annotations/missing", "annotations.missing"),
    _get("/annotations/is-dataset", "annotations.is_dataset"),
    _post("/annotations/infer", "annotations.infer"),
    _put("/terms", "annotations.terms.define"),
    _delete("/terms", "annotations.terms.undefine"),
    _get("/owners", "annotations.owners.list"),
    _get("/owners/show", "annotations.owners.show"),
    _put("/owners", "annotations.owners.add"),
    _put("/owners/assignments", "annotations.owners.assign", conditional="dataset"),
    # Usage and cost.
    _get("/reconcile", "reconciliation.compare"),
    _get("/usage/show", "usage.show"),
    _get("/usage/unread", "usage.unread"),
    _get("/usage/top", "usage.top"),
    _get("/usage/logs", "usage.logs"),
    _post("/usage/logs", "usage.ingest", files=("paths",)),
    _delete("/usage/logs", "usage.forget"),
    _get("/cost/configured", "cost.has_prices"),
    _get("/cost/report", "cost.report"),
    _get("/cost/top", "cost.top"),
    _get("/cost/by", "cost.by"),
    _get("/cost/trend", "cost.trend"),
    _get("/cost/explain", "cost.explain"),
    _get("/cost/savings", "cost.savings"),
    _get("/cost/retire", "cost.retire"),
    _get("/cost/page", "cost.page"),
    _post("/cost/records", "cost.record"),
    _get("/cost/overrides", "cost_sources.overrides"),
    _put("/cost/overrides", "cost_sources.set"),
    _delete("/cost/overrides", "cost_sources.unset"),
    _get("/cost/meters", "cost_sources.meters"),
    _delete("/cost/meters", "cost_sources.forget"),
    # Snapshots.
    _get("/snapshots/export", "snapshot.export", output="output", omitted=("since",),
         catalogs=("platform",)),
    _post("/snapshots/import", "snapshot.load", "admin", files=("file",), catalogs=("platform",)),
    _post("/snapshots/preview", "snapshot.try_load", "admin", files=("file",),
          catalogs=("platform",)),
    _post("/snapshots/rollback", "snapshot.roll_back", "admin", files=("file",),
          catalogs=("platform",)),
    # The gate.
    _get("/gate/results", "gate_results.list"),
    _get("/gate/results/show", "gate_results.show"),
    _post("/gate/results", "gate_results.record"),
    # Catalogs.
    _get("/catalogs", "catalog_status"),
    # Jobs and schedules. Their arguments may name any file of the machine that runs them, so only
    # admins may create them.
    _get("/jobs", "jobs.list"),
    _get("/jobs/show", "jobs.show"),
    _post("/jobs", "jobs.submit", "admin", omitted=("requested_by",)),
    _post("/jobs/cancel", "jobs.cancel"),
    _post("/jobs/retry", "jobs.retry"),
    _get("/schedules", "schedules.list"),
    _get("/schedules/show", "schedules.show"),
    _post("/schedules", "schedules.add", "admin", omitted=("created_by",)),
    _delete("/schedules", "schedules.remove", "admin"),
    _post("/schedules/pause", "schedules.pause"),
    _post("/schedules/resume", "schedules.resume"),
    _post("/schedules/run", "schedules.run", omitted=("requested_by",)),
    # Releases, without the methods that scan sources: jobs do that.
    _get("/releases", "releases.list"),
    _get("/releases/show", "releases.show"),
    _post("/releases", "releases.notify"),
    _get("/releases/schedules", "releases.schedules"),
    # Hints and notifications.
    _get("/hints", "hints.list"),
    _get("/notifications", "notifications.status"),
    _post("/notifications/send", "notifications.send"),
    _post("/notifications/test", "notifications.test", "admin"),
    _post("/notifications/remind", "notifications.remind"),
    # Administration.
    _get("/store", "store_status"),
    _post("/store/prune", "change_history.forget_old", "admin"),
    _get("/config", "config_check", "admin"),
    _get("/tokens", "tokens.list", "admin"),
    _post("/tokens", "tokens.create", "admin"),
    _delete("/tokens", "tokens.revoke", "admin"),
    _get("/audit", "audit.list", "admin", page=Page("entries", "before", "sequence", 100)),
    _get("/audit/verify", "audit.verify", "admin"),
    _get("/audit/export", "audit.entries", "admin"),
)  # fmt: skip


class RouteTable:
    """The routes by SDK method, for the client."""

    @cached_property
    def by_sdk_path(self) -> dict[str, Route]:
        """The route of each SDK method and of its aliases."""
        return {name: route for route in ROUTES for name in (route.sdk_path, *route.aliases)}

    @cached_property
    def owners(self) -> frozenset[str]:
        """The paths that lead to methods: `annotations` and `annotations.tags`."""
        return frozenset(
            ".".join(parts[:length])
            for parts in (name.split(".") for name in self.by_sdk_path)
            for length in range(1, len(parts))
        )


TABLE: Final = RouteTable()
