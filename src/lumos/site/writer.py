"""Writes a site: the built web page, the API responses that it needs, and a search index."""

import zlib
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from lumos.annotations.reports import ListedAnnotation
from lumos.datasets.reports import ShowReport
from lumos.errors import MisuseError
from lumos.lineage.drawing.picture import Arrow
from lumos.model.json_codec import to_json, to_plain
from lumos.model.period import month_before, month_of
from lumos.model.report import FORMAT_VERSION, Report
from lumos.progress import Progress, no_progress
from lumos.schemas.report_parts import SchemaReport
from lumos.sdk import Lumos
from lumos.server import page
from lumos.server.routes import ROUTES
from lumos.site.folder import SiteFolder
from lumos.site.search_index import ROWS_PER_FILE, SearchIndex
from lumos.store.garbage_collection import paused_gc
from lumos.version import __version__

# The build of the web page that reads static files instead of the API.
_SITE_BUILD: Final = "site"
_DATASETS_PER_FILE: Final = 40
# The datasets of this many files are read at once.
_FILES_PER_BATCH: Final = 25
_EDGES_PER_FILE: Final = 400
_MAX_EVENTS: Final = 300
_MAX_COST_REPORTS: Final = 2_000
# The page can compare any two of the latest versions; older ones only with the next.
_COMPARED_VERSIONS: Final = 6
_DATA_EVENTS: Final = (
    "CREATED", "DELETED", "MERGED", "MODIFIED", "RENAMED", "RESTORED", "SCHEMA_CHANGED", "SPLIT",
)  # fmt: skip
# Features that need a server: the page disables them.
_NEEDS_SERVER: Final = ("impact", "jobs")
_EMPTY_SCHEMA: Final = SchemaReport(fields=())
_SDK_PATHS: Final = {route.path: route.sdk_path for route in ROUTES if route.method == "GET"}


class SiteReport(Report, frozen=True, kw_only=True):
    """The result of `lumos site`: what the site contains, and its files."""

    format_version: str = FORMAT_VERSION
    folder: str
    datasets: int
    lineage_edges: int
    files: int
    size_bytes: int


def write_site(
    lumos: Lumos,
    folder: str | Path,
    *,
    snapshot: str | Path | None = None,
    progress: Progress = no_progress,
    now: datetime | None = None,
) -> SiteReport:
    """Write the pages of the store, or of a snapshot, as static files.

    The folder is created, or contains an earlier site, which is replaced.
    """
    at = (now or datetime.now(UTC)).replace(microsecond=0)
    if not (page.FOLDER / _SITE_BUILD / "index.html").is_file():
        raise page.PageNotBuilt
    if snapshot is None:
        return _Writer(lumos, SiteFolder(Path(folder)), at, progress).write(str(folder))
    with TemporaryDirectory(prefix="lumos-site-") as temporary:
        progress("Reading the snapshot")
        other = lumos.with_store(Path(temporary) / "store.db")
        other.snapshot.load(snapshot)
        return _Writer(other, SiteFolder(Path(folder)), at, progress).write(str(folder))


class _Writer:
    """Writes one site."""

    def __init__(self, lumos: Lumos, folder: SiteFolder, at: datetime, progress: Progress) -> None:
        self._lumos = lumos
        self._folder = folder
        self._at = at
        self._progress = progress
        self._switches = lumos.settings.switches

    def write(self, name: str) -> SiteReport:
        """Write all files of the site; `name` is the folder as it was given."""
        # The garbage collector would visit the millions of values of the search index repeatedly.
        with paused_gc():
            return self._write(name)

    def _write(self, name: str) -> SiteReport:
        live = {each.urn: each for each in self._lumos.list().datasets}
        edges = self._lineage_edges()
        events = self._events()
        self._folder.write_data("changes", events)
        others = {end for each in edges for end in (each.upstream, each.downstream)}
        others |= {str(each["urn"]) for each in events}
        index = SearchIndex({urn: _text(each.updated_at) for urn, each in live.items()})
        other_datasets = self._write_datasets(live, others - live.keys(), index)
        self._write_lineage(edges, other_datasets)
        vocabulary, rows = index.build()
        self._folder.write_data("vocabulary", vocabulary)
        for number in range(vocabulary.files):
            part = rows[number * ROWS_PER_FILE : (number + 1) * ROWS_PER_FILE]
            self._folder.write_data(f"index-{number}", part)
        self._folder.write_data("answers", self._answers())
        self._write_page(self._folder.publish_data())
        files, size = self._folder.finish()
        return SiteReport(
            folder=name,
            datasets=len(live),
            lineage_edges=len(edges),
            files=files,
            size_bytes=size,
        )

    def _lineage_edges(self) -> tuple[Arrow, ...]:
        if not self._switches.is_on("lineage"):
            return ()
        self._progress("Reading lineage")
        return self._lumos.lineage.view.arrows()

    def _events(self) -> list[dict[str, Any]]:
        """The latest changes for each filter of the home page, newest first."""
        if not self._switches.is_on("schema_tracking"):
            return []
        selections: tuple[Mapping[str, Any], ...] = (
            {},
            {"types": _DATA_EVENTS},
            {"breaking": True},
        )
        events_by_id = {
            each.event_id: each
            for selection in selections
            for each in self._lumos.changes(limit=_MAX_EVENTS, **selection).events
        }
        newest = sorted(events_by_id.values(), key=lambda each: each.timestamp, reverse=True)
        # The page does not show the schemas of events.
        return [
            to_plain(msgspec.structs.replace(each, old_schema=None, new_schema=None))
            for each in newest
        ]

    def _has_costs(self) -> bool:
        return self._switches.is_on("cost_attribution") and self._lumos.cost.has_prices()

    def _write_datasets(
        self, live: Mapping[str, object], others: Iterable[str], index: SearchIndex
    ) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
        """Write everything about each dataset.

        Returns name, platform, state and owners of the datasets that are not live: deleted, or
        only known from lineage.
        """
        urns = [*live, *others]
        count = max(1, -(-len(urns) // _DATASETS_PER_FILE))
        annotations = self._annotations()
        costs = self._cost_reports()
        partitions = self._lumos.partitions.reader()
        other_datasets: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
        files = _by_file(urns, count)
        for start in range(0, count, _FILES_PER_BATCH):
            self._progress("Writing datasets", share=start / count)
            batch = files[start : start + _FILES_PER_BATCH]
            # Events may be about datasets that the store no longer has.
            reports = self._lumos.datasets.show_many([urn for members in batch for urn in members])
            recorded = {
                each.dataset["urn"]: each.dataset
                for each in reports.values()
                if each.state != "assumed"
            }
            histories = self._histories(recorded)
            usage = self._usage(recorded)
            partitioned = [
                urn
                for urn, each in recorded.items()
                if (each.get("location") or {}).get("partition_keys")
            ]
            partition_reports = partitions.show_many(partitioned)
            for number, members in enumerate(batch, start=start):
                records: dict[str, Any] = {}
                for urn in members:
                    if urn not in reports:
                        continue
                    dataset = reports[urn].dataset
                    if urn in live:
                        index.add(dataset)
                    else:
                        other_datasets[urn] = _other_dataset(reports[urn])
                    records[urn] = {
                        "show": reports[urn],
                        **histories.get(dataset["urn"], {}),
                        **usage.get(dataset["urn"], {}),
                        "annotations": annotations.get(urn, []),
                        **costs.get(urn, {}),
                    }
                    if dataset["urn"] in partition_reports:
                        records[urn]["partitions"] = partition_reports[dataset["urn"]]
                self._folder.write_data(f"datasets-{number}", records)
        self._dataset_files = count
        return other_datasets

    def _histories(self, urns: Collection[str]) -> dict[str, dict[str, Any]]:
        """The versions of datasets without their schemas, and comparisons of versions."""
        if not self._switches.is_on("schema_tracking"):
            return {}
        compared = self._lumos.schema.compared_histories(urns, latest=_COMPARED_VERSIONS)
        histories = {}
        for urn, (history, diffs) in compared.items():
            versions = [
                msgspec.structs.replace(each, schema=_EMPTY_SCHEMA) for each in history.versions
            ]
            plain = to_plain(msgspec.structs.replace(history, versions=tuple(versions)))
            for version in plain["versions"]:
                del version["schema"]
            histories[urn] = {
                "history": plain,
                "diffs": {f"{old} {new}": diff for (old, new), diff in diffs.items()},
            }
        return histories

    def _usage(self, datasets: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """The usage of all datasets or, without any ingested log, of those with imported usage."""
        if not self._switches.is_on("usage"):
            return {}
        has_logs = bool(self._lumos.usage.logs().logs)
        urns = [urn for urn, each in datasets.items() if has_logs or each.get("usage")]
        return {urn: {"usage": each} for urn, each in self._lumos.usage.show_many(urns).items()}

    def _annotations(self) -> dict[str, list[ListedAnnotation]]:
        """The annotations by dataset."""
        annotations: dict[str, list[ListedAnnotation]] = {}
        for each in self._lumos.annotations.list().annotations:
            annotations.setdefault(each.urn, []).append(each)
        return annotations

    def _cost_reports(self) -> dict[str, dict[str, Any]]:
        if not self._has_costs():
            return {}
        reports = self._lumos.cost.reports(_MAX_COST_REPORTS)
        return {
            report.dataset: {"cost": report, **({"trend": trend} if trend.points else {})}
            for report, trend in reports
        }

    def _write_lineage(
        self,
        edges: tuple[Arrow, ...],
        other_datasets: Mapping[str, tuple[str, str, str, tuple[str, ...]]],
    ) -> None:
        """Write which datasets are connected, and the details of edges by downstream dataset."""
        count = max(1, -(-len(edges) // _EDGES_PER_FILE))
        urns = sorted({end for each in edges for end in (each.upstream, each.downstream)})
        numbers = {urn: number for number, urn in enumerate(urns)}
        self._folder.write_data(
            "lineage",
            {
                "urns": urns,
                "upstream": [numbers[each.upstream] for each in edges],
                "downstream": [numbers[each.downstream] for each in edges],
                "others": {urn: other_datasets[urn] for urn in urns if urn in other_datasets},
            },
        )
        edges_by_file: dict[int, list[Arrow]] = {number: [] for number in range(count)}
        for each in edges:
            edges_by_file[file_of(each.downstream, count)].append(each)
        for number, members in edges_by_file.items():
            self._folder.write_data(f"edges-{number}", members)
        self._edge_files = count

    def _answers(self) -> dict[str, Any]:
        """The responses to requests without a dataset, and the number of files of each kind."""
        month = month_before(month_of(self._at.date()))
        answers = {
            "identity": {
                "name": "Static site",
                "role": "read",
                "version": __version__,
                "disabled": [*self._switches.disabled, *_NEEDS_SERVER],
            },
            "overview": self._lumos.overview(),
            "cost/configured": self._has_costs(),
        }
        answers |= self._record("/overview/trends")
        answers |= self._record("/catalogs")
        answers |= self._record("/gate/results", limit=50)
        for result in self._lumos.gate_results.list(limit=50).results:
            answers |= self._record("/gate/results/show", id=result.id)
        if self._switches.is_on("releases"):
            answers |= self._record("/releases")
        if self._has_costs():
            answers |= self._record("/cost/top", limit=1000)
            for ranking in ({}, {"period": month.name}, {"period": month_before(month).name}):
                answers |= self._record("/cost/top", limit=1000, ranked_by="own", **ranking)
            for group in ("team", "domain", "platform", "tag"):
                answers |= self._record("/cost/by", by=group)
            answers |= self._record("/cost/trend")
            answers |= self._record("/cost/retire", top=5)
        return {
            "answers": answers,
            "dataset_files": self._dataset_files,
            "edge_files": self._edge_files,
        }

    def _record(self, path: str, **query: Any) -> dict[str, Any]:
        """The response of a route, or its error message."""
        parts = "&".join(f"{name}={value}" for name, value in sorted(query.items()))
        key = path.removeprefix("/") + (f"?{parts}" if parts else "")
        try:
            return {key: attrgetter(_SDK_PATHS[path])(self._lumos)(**query)}
        except MisuseError as problem:
            return {key: {"refused": str(problem)}}

    def _write_page(self, data: str) -> None:
        """Write the built page, with the folder of the data and the time of the site."""
        root = page.FOLDER / _SITE_BUILD
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.name != "index.html":
                self._folder.write(file.relative_to(root).as_posix(), file.read_bytes())
        html = (root / "index.html").read_text()
        meta = {"lumos-data": data, "lumos-as-of": _text(self._at)}
        tags = "".join(
            f'<meta name="{name}" content="{escape(value)}" />' for name, value in meta.items()
        )
        self._folder.write("index.html", html.replace("<title>", f"{tags}<title>", 1).encode())


def file_of(urn: str, count: int) -> int:
    """The number of the file with a dataset; web/src/site/shards.ts computes the same."""
    return zlib.crc32(urn.encode()) % count


def _by_file(urns: Iterable[str], count: int) -> list[list[str]]:
    files: list[list[str]] = [[] for _ in range(count)]
    for urn in sorted(urns):
        files[file_of(urn, count)].append(urn)
    return files


def _other_dataset(report: ShowReport) -> tuple[str, str, str, tuple[str, ...]]:
    """The name, platform, state and owners of a dataset."""
    owners = (report.dataset.get("ownership") or {}).get("owners", ())
    return (
        report.dataset["name"],
        report.dataset["platform"],
        "" if report.state == "assumed" else report.state,
        tuple(each["name"] for each in owners),
    )


def _text(at: datetime) -> str:
    """A time in the format of JSON reports."""
    return str(msgspec.json.decode(to_json(at)))
