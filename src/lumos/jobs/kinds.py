"""The kinds of jobs: the SDK method that each one calls, and its arguments.

Arguments are checked when a job is requested, so that mistakes are reported at once and not hours
later in a log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Self

import msgspec

from lumos.config import Settings
from lumos.config.secret import has_secret
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.json_codec import from_plain, to_json, to_plain
from lumos.progress import Progress
from lumos.rendering.text import join_names

if TYPE_CHECKING:
    from lumos.catalogs.migration.service import Migrations
    from lumos.cost.service import Costs
    from lumos.discovery.reports import IngestReport
    from lumos.discovery.watcher import WatchReport
    from lumos.lineage.service import LineageService
    from lumos.notifications.service import NotificationService
    from lumos.profiles.service import Profiles
    from lumos.releases.service import Releases
    from lumos.schemas.version_service import VersionService
    from lumos.snapshots.service import Snapshots
    from lumos.usage.service import UsageService

CHAIN: Final = "chain"
# Jobs of this kind run until they are stopped, so they do not occupy a slot for other jobs.
WATCH: Final = "watch"
MAX_STEPS: Final = 50
_MAX_ARGUMENT_BYTES: Final = 64 * 1024
_MAX_RESULT_BYTES: Final = 256 * 1024
_CONFIG_EXTENSIONS: Final = (".yaml", ".yml")
_MAX_REASONS: Final = 3


class JobMethods(Protocol):
    """The methods of the SDK that jobs call."""

    def ingest(
        self,
        *paths: str,
        accept_removals: bool = False,
        column_stats: bool = False,
        profile: bool = False,
        progress: Progress = ...,
    ) -> "IngestReport": ...
    def watch(self, *, begun: Callable[[str, float], None] = ...) -> "WatchReport": ...
    def with_sources(self, config: str | Path) -> Self: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def profiles(self) -> "Profiles": ...
    @property
    def migration(self) -> "Migrations": ...
    @property
    def snapshot(self) -> "Snapshots": ...
    @property
    def cost(self) -> "Costs": ...
    @property
    def lineage(self) -> "LineageService": ...
    @property
    def usage(self) -> "UsageService": ...
    @property
    def version(self) -> "VersionService": ...
    @property
    def releases(self) -> "Releases": ...
    @property
    def notifications(self) -> "NotificationService": ...


class IncompleteJob(LumosError):
    """A job whose method returned a report in which a part of the work failed."""


class JobArguments(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The arguments of a kind of job; local paths in them are absolute."""

    @classmethod
    def of_step(cls, text: str) -> "JobArguments":
        """Parse the text after the colon in a step such as `ingest:sources.yaml`."""
        raise NotImplementedError

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        """The concurrency key: only a limited number of jobs with the same key run at once."""
        return None

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        """Run the job and return its report."""
        raise NotImplementedError


class IngestArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos ingest`: scan paths, or the sources of a configuration file."""

    paths: tuple[str, ...] = ()
    config: str | None = None
    accept_removals: bool = False
    column_stats: bool = False
    profile: bool = False

    def __post_init__(self) -> None:
        if self.paths and self.config:
            raise MisuseError("Give 'paths' or 'config' to ingest, not both.")
        _make_absolute(self, "paths", "config")

    @classmethod
    def of_step(cls, text: str) -> "IngestArguments":
        if text.endswith(_CONFIG_EXTENSIONS):
            return cls(config=text)
        return cls(paths=(text,)) if text else cls()

    def key(self, settings: Settings) -> str | None:
        if self.config is not None:
            return f"source:{self.config}"
        sources = tuple(each.name or each.type for each in settings.sources)
        return f"source:{','.join(self.paths or sources)}"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        target = lumos if self.config is None else lumos.with_sources(self.config)
        report = target.ingest(
            *self.paths,
            accept_removals=self.accept_removals,
            column_stats=self.column_stats,
            profile=self.profile,
            progress=progress,
        )
        failed = [each for each in report.problems if each.code == "source_failed"]
        if failed:
            reasons = [f"{each.path}: {each.reason}" for each in failed]
            raise IncompleteJob(f"Not scanned: {join_names(reasons, _MAX_REASONS)}")
        return report


class ProfileArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos profile`: profile the rows of a dataset."""

    dataset: str
    sample: float | None = None
    rows: int | None = None
    columns: tuple[str, ...] = ()
    full: bool = False

    @classmethod
    def of_step(cls, text: str) -> "ProfileArguments":
        return cls(dataset=_required(text, "profile:orders"))

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return f"profile:{self.dataset}"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        report = lumos.profiles.profile(
            self.dataset,
            sample=self.sample,
            rows=self.rows,
            columns=self.columns,
            full=self.full,
            progress=progress,
        )
        if not report.kept:
            raise IncompleteJob(f"No file of {self.dataset} could be read.")
        return report


class SyncArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos sync`: scan sources if `scan`, and publish to catalogs."""

    sources: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    scan: bool = False
    full: bool = False

    @classmethod
    def of_step(cls, text: str) -> "SyncArguments":
        return cls(platforms=(text,)) if text else cls()

    def key(self, settings: Settings) -> str | None:
        return f"catalog:{','.join(self.platforms or (settings.platform,))}"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        report = lumos.migration.sync(
            *self.sources,
            outputs=self.platforms,
            scan=self.scan or bool(self.sources),
            full=self.full,
            progress=progress,
        )
        if not report.is_complete:
            reasons = [f"{each.path}: {each.reason}" for each in report.failed]
            reasons += [each.pending_message for each in report.published if each.pending_message]
            named = join_names(reasons, _MAX_REASONS) or "some entries were refused"
            raise IncompleteJob(f"Not everything was published: {named}")
        return report


class ExportArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos export`: write a snapshot."""

    output: str
    platform: str = "local"
    datasets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _make_absolute(self, "output")

    @classmethod
    def of_step(cls, text: str) -> "ExportArguments":
        return cls(output=_required(text, "export:nightly.json"))

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        return lumos.snapshot.export(
            self.output, platform=self.platform, patterns=self.datasets, progress=progress
        )


class CostRecordArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos cost record`: record the costs of a period, by default of the last full month."""

    period: str | None = None

    @classmethod
    def of_step(cls, text: str) -> "CostRecordArguments":
        return cls(period=text or None)

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return "cost"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        progress("recording costs")
        return lumos.cost.record(self.period)


class LineageArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos lineage ingest`: read SQL, dbt artefacts, OpenLineage events and query logs."""

    paths: tuple[str, ...]
    dialect: str | None = None
    accept_removals: bool = False

    def __post_init__(self) -> None:
        if not self.paths:
            raise MisuseError("Name files or folders with lineage, as in: lineage:models/")
        _make_absolute(self, "paths")

    @classmethod
    def of_step(cls, text: str) -> "LineageArguments":
        return cls(paths=(_required(text, "lineage:models/"),))

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return "lineage"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        return lumos.lineage.ingest(
            *self.paths,
            dialect=self.dialect,
            accept_removals=self.accept_removals,
            progress=progress,
        )


class UsageArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos usage ingest`: record reads from query logs."""

    paths: tuple[str, ...]
    dialect: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not self.paths:
            raise MisuseError("Name query logs, as in: usage:queries.csv")
        _make_absolute(self, "paths")

    @classmethod
    def of_step(cls, text: str) -> "UsageArguments":
        return cls(paths=(_required(text, "usage:queries.csv"),))

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return "usage"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        return lumos.usage.ingest(
            *self.paths, dialect=self.dialect, name=self.name, progress=progress
        )


class VersionArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos version update --auto-increment`, or `lumos version scan`."""

    mode: Literal["auto", "scan"] = "auto"

    @classmethod
    def of_step(cls, text: str) -> "VersionArguments":
        if text not in ("", "auto", "scan"):
            raise UnknownName("mode of version", text, ("auto", "scan"))
        return cls(mode="scan" if text == "scan" else "auto")

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return "version"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        progress("comparing versions")
        if self.mode == "scan":
            return lumos.version.scan()
        return lumos.version.update(auto_increment=True)


class ReleaseRefreshArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos release refresh`: look for data that is expected by now after a release."""

    release: str
    source: str | None = None

    @classmethod
    def of_step(cls, text: str) -> "ReleaseRefreshArguments":
        return cls(release=_required(text, "release-refresh:2026.11"))

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return None if self.source is None else f"source:{self.source.partition(':')[2]}"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        progress("looking for data after the release")
        return lumos.releases.refresh(self.release, source=self.source, due_only=True)


class RemindArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos notify remind`: write and send the messages of a reminder, or of all."""

    name: str | None = None

    @classmethod
    def of_step(cls, text: str) -> "RemindArguments":
        return cls(name=text or None)

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return "remind"

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        progress("writing reminders")
        return lumos.notifications.remind(self.name)


class WatchArguments(JobArguments, frozen=True, kw_only=True):
    """`lumos watch`: watch the sources of the configuration until the job is stopped."""

    @classmethod
    def of_step(cls, text: str) -> "WatchArguments":
        if text:
            raise MisuseError(
                "The step 'watch' takes no value: it watches the sources of change_detection."
            )
        return cls()

    def key(self, settings: Settings) -> str | None:  # noqa: ARG002
        return WATCH

    def run(self, lumos: JobMethods, progress: Progress) -> object:
        return lumos.watch(begun=lambda source, _interval: progress(f"watching {source}"))


KINDS: Final[Mapping[str, type[JobArguments]]] = {
    "ingest": IngestArguments,
    "profile": ProfileArguments,
    "sync": SyncArguments,
    "export": ExportArguments,
    "cost-record": CostRecordArguments,
    "lineage": LineageArguments,
    "usage": UsageArguments,
    "version": VersionArguments,
    "release-refresh": ReleaseRefreshArguments,
    "remind": RemindArguments,
    WATCH: WatchArguments,
}


class JobStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of a chain: a kind and its arguments."""

    kind: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)


class JobPlan(NamedTuple):
    """A checked job: its kind and arguments as they are stored, and the arguments of its steps."""

    kind: str
    arguments: dict[str, Any]
    steps: tuple[JobArguments, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of all steps."""
        if self.kind != CHAIN:
            return (self.kind,)
        return tuple(step["kind"] for step in self.arguments["steps"])

    def key(self, settings: Settings) -> str | None:
        """The concurrency key: the key of the first step that has one."""
        keys = (step.key(settings) for step in self.steps)
        return next((key for key in keys if key is not None), None)


def plan_job(kind: str, arguments: Mapping[str, Any]) -> JobPlan:
    """Check the kind and the arguments of a job."""
    if len(to_json(arguments)) > _MAX_ARGUMENT_BYTES:
        raise MisuseError(f"The arguments of a job take more than {_MAX_ARGUMENT_BYTES:,} bytes.")
    if kind != CHAIN:
        checked = _check(kind, arguments)
        return JobPlan(kind, to_plain(checked), (checked,))
    try:
        steps = msgspec.convert(arguments.get("steps"), tuple[JobStep, ...])
    except msgspec.ValidationError as problem:
        raise MisuseError(f"The steps of a chain are wrong: {problem}.") from None
    if not 1 <= len(steps) <= MAX_STEPS or set(arguments) != {"steps"}:
        raise MisuseError(f"A chain has 1 to {MAX_STEPS} 'steps' and no other arguments.")
    if any(step.kind == WATCH for step in steps):
        raise MisuseError("A watcher runs until it is stopped, so it cannot be a step of a chain.")
    checked_steps = tuple(_check(step.kind, step.arguments) for step in steps)
    stored = [
        {"kind": step.kind, "arguments": to_plain(each)}
        for step, each in zip(steps, checked_steps, strict=True)
    ]
    return JobPlan(CHAIN, {"steps": stored}, checked_steps)


def plan_steps(texts: Sequence[str]) -> JobPlan:
    """Parse steps such as `ingest:sources.yaml` to a job of one kind, or to a chain."""
    if not texts:
        raise MisuseError(
            "Name at least one step, as in: lumos run ingest:sources.yaml export:nightly.json"
        )
    steps = []
    for text in texts:
        kind, _, rest = text.partition(":")
        steps.append((kind, to_plain(_arguments_class(kind).of_step(rest))))
    if len(steps) == 1:
        return plan_job(*steps[0])
    return plan_job(CHAIN, {"steps": [{"kind": kind, "arguments": given} for kind, given in steps]})


def run_steps(
    plan: JobPlan,
    lumos: JobMethods,
    *,
    done: Sequence[Any],
    progress: Progress,
    completed: Callable[[Sequence[Any]], None],
) -> Any:
    """Run the steps after those in `done`; call `completed` with all results after each step."""
    if plan.kind != CHAIN:
        return limit_size(plan.steps[0].run(lumos, progress))
    results = list(done)
    for step in plan.steps[len(results) :]:
        results.append(limit_size(step.run(lumos, progress)))
        completed(results)
    return {"steps": results}


def limit_size(report: object) -> Any:
    """The report as plain values; of a large report, the largest fields are omitted."""
    plain = to_plain(report)
    if not isinstance(plain, dict) or len(to_json(plain)) <= _MAX_RESULT_BYTES:
        return plain
    sizes = {name: len(to_json(value)) for name, value in plain.items()}
    omitted: dict[str, int] = {}
    for name in sorted(sizes, key=lambda each: sizes[each], reverse=True):
        if sum(sizes.values()) <= _MAX_RESULT_BYTES // 2:
            break
        value = plain.pop(name)
        del sizes[name]
        omitted[name] = len(value) if isinstance(value, list | tuple | dict) else 1
    return plain | {"left_out": omitted}


def is_permanent(problem: BaseException) -> bool:
    """Whether another attempt would fail in the same way."""
    return isinstance(problem, MisuseError)


def _arguments_class(name: str) -> type[JobArguments]:
    if name not in KINDS:
        raise UnknownName("kind of job", name, KINDS)
    return KINDS[name]


def _check(kind: str, arguments: Mapping[str, Any]) -> JobArguments:
    arguments_class = _arguments_class(kind)
    if any(map(has_secret, _texts(arguments))):
        raise MisuseError(
            f"The arguments of {kind} contain a password or token, and jobs store no secrets. "
            "Configure the source in lumos.yaml, with the secret in a variable."
        )
    try:
        return from_plain(dict(arguments), arguments_class)
    except msgspec.ValidationError as problem:
        text = (
            str(problem).replace("Object contains", "it has").replace("Object missing", "it has no")
        )
        names = ", ".join(arguments_class.__struct_fields__)
        raise MisuseError(
            f"The arguments of {kind} are wrong: {text}. Known arguments: {names}."
        ) from None


def _texts(value: object) -> Iterator[str]:
    """All texts in plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def _required(text: str, example: str) -> str:
    if not text:
        raise MisuseError(f"The step '{example.partition(':')[0]}' needs a value, as in: {example}")
    return text


def _make_absolute(arguments: JobArguments, *names: str) -> None:
    """Make local paths absolute, since workers run in other folders."""
    for name in names:
        value = getattr(arguments, name)
        if isinstance(value, tuple):
            value = tuple(map(_absolute, value))
        elif value is not None:
            value = _absolute(value)
        msgspec.structs.force_setattr(arguments, name, value)


def _absolute(path: str) -> str:
    return path if "://" in path else str(Path(path).absolute())
