"""The grammar of the command line: arguments and options that commands share, earlier spellings
that stay valid, and how results are printed."""

import inspect
import os
import re
import sys
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lumos.sdk import Lumos

DEBUG: Final = "LUMOS_DEBUG"
QUIET: Final = "LUMOS_QUIET"
VERBOSE: Final = "LUMOS_VERBOSE"
# A path has lost one of the slashes.
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# What commands leave with where somebody asked for it.
BREAKING: Final = 10
UNDETERMINED: Final = 11
# The name of a file that means stdout, or stdin.
STDOUT: Final = "-"

AnyPath = TypeVar("AnyPath", str, Path, Path | None)


def local_path(path: AnyPath) -> AnyPath:
    """Refuses a URL where a path is expected: it would be taken for folders, password and all."""
    if path is not None and _URL.match(str(path)):
        raise typer.BadParameter(f"'{path}' is a URL. Give a path on this machine.")
    return path


def _store_file(path: Path | None) -> Path | None:
    try:
        return local_path(path)
    except typer.BadParameter as problem:
        problem.message += " A PostgreSQL store is set in lumos.yaml: storage.connection_string"
        raise


def _output_file(path: Path | None) -> Path | None:
    """The file to write; `-` prints as if no file was given."""
    return None if str(path) == STDOUT else local_path(path)


# Arguments. A dataset always comes first.
Dataset = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A dataset's URN, or a name or end of path that only one dataset has.",
        show_default=False,
    ),
]
OptionalDataset = Annotated[
    str | None,
    typer.Argument(metavar="[DATASET]", help="One dataset. Default: all.", show_default=False),
]
DatasetOrJob = Annotated[
    str,
    typer.Argument(
        metavar="DATASET", help="A dataset or job by URN, name or end of path.", show_default=False
    ),
]
Datasets = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="A URN, a name that only one dataset has, or a pattern such as 'sales/*'.",
        show_default=False,
    ),
]
OptionalDatasets = Annotated[
    str | None,
    typer.Argument(
        metavar="[DATASET]",
        help="Only this dataset, or those that fit a pattern such as 'sales/*'.",
        show_default=False,
    ),
]
Owner = Annotated[
    str, typer.Argument(metavar="OWNER", help="A user or a group.", show_default=False)
]
Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH]...",
        help="Folders, files or addresses "
        "(s3://bucket/folder, gs://, abfss://, hdfs://, postgresql://).",
        show_default=False,
    ),
]
Snapshot = Annotated[Path, typer.Argument(metavar="FILE", help="The snapshot.", show_default=False)]
OptionalSnapshot = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="The snapshot.", show_default=False)
]

# Options.
_A_PLATFORM: Final = "a configured catalog, KIND:ADDRESS such as datahub-file:estate.json, or local"
Platform = Annotated[
    str, typer.Option("--platform", metavar="PLATFORM", help=f"The catalog: {_A_PLATFORM}.")
]
Platforms = Annotated[
    list[str] | None,
    typer.Option(
        "--platform",
        metavar="PLATFORM",
        help="The catalog to publish to: a configured one, or KIND:ADDRESS. Repeatable. "
        "Default: the platform of the configuration.",
        show_default=False,
    ),
]
DataPlatform = Annotated[
    str | None,
    typer.Option(
        "--data-platform",
        metavar="PLATFORM",
        help="Only datasets that are stored there, such as s3, file or postgres.",
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file; its ending says the format. - prints.",
        callback=_output_file,
    ),
]
ReportFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Also write the JSON report there; - prints it instead.",
        callback=local_path,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what would change, and change nothing.")
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file. Default: $LUMOS_CONFIG, else lumos.yaml.",
    ),
]
StorePath = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="Store file. Default: .lumos/lumos.db.",
        callback=_store_file,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
# A file with a proposed schema.
FileKind = Annotated[
    Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"] | None,
    typer.Option("--as", help="The kind of file. Default: by its content."),
]
FileModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The table or model in the file. Default: the dataset's name."
    ),
]


class CommonOptions:
    """The values of --config, --store and --json, which most commands take."""

    def __init__(self, config: Path | None, store: Path | None, json: bool) -> None:
        self.config, self.store, self.json = config, store, json

    @cached_property
    def lumos(self) -> "Lumos":
        """Lumos with that configuration and store."""
        return lumos_of(self.config, self.store)

    def print(self, report: object, show: "Callable[[Any, Lumos], None]") -> None:
        """Print a report as JSON with --json, else by `show`."""
        print_json(report) if self.json else show(report, self.lumos)


def common_options(function: "Callable[..., None]") -> "Callable[..., None]":
    """Add --config, --store and --json to a command that takes `options: CommonOptions`."""
    signature = inspect.signature(function)
    own = [each for name, each in signature.parameters.items() if name != "options"]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type)
        for name, type, default in (
            ("config", ConfigFile, None),
            ("store", StorePath, None),
            ("json", AsJson, False),
        )
    ]

    @wraps(function)
    def command(
        *args: Any,
        config: Path | None = None,
        store: Path | None = None,
        json: bool = False,
        **given: Any,
    ) -> None:
        function(CommonOptions(config, store, json), *args, **given)

    command.__dict__["__signature__"] = signature.replace(parameters=[*own, *common])
    command.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
    return command


class _Command(TyperCommand):
    """A command that also takes earlier spellings of its arguments, which help does not show.

    `first` and `last` are options whose value is an argument today, the first or the last one;
    `renamed` are options that have another name today.
    """

    first: ClassVar[frozenset[str]] = frozenset()
    last: ClassVar[frozenset[str]] = frozenset()
    renamed: ClassVar["Mapping[str, str]"] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._spelled_today(ctx, args))

    def _spelled_today(self, ctx: Any, words: "Iterable[str]") -> list[str]:
        first: list[str] = []
        rest: list[str] = []
        last: list[str] = []
        waiting = iter(words)
        for word in waiting:
            if word == "--":
                rest += [word, *waiting]
                break
            name, equals, value = word.partition("=")
            if name in self.renamed:
                rest.append(f"{self.renamed[name]}{equals}{value}")
            elif name in self.first or name in self.last:
                given = value if equals else next(waiting, None)
                if given is None:
                    raise typer.BadParameter(f"Option '{name}' requires an argument.", ctx)
                (first if name in self.first else last).append(given)
            else:
                rest.append(word)
        return [*first, *rest, *last]


def earlier_options(
    *, first: "Iterable[str]" = (), last: "Iterable[str]" = (), **renamed: str
) -> type[TyperCommand]:
    """The class of a command that had other options before: `keep="--output"` renames --keep."""
    names = {f"--{old.replace('_', '-')}": new for old, new in renamed.items()}
    spelled = {"first": frozenset(first), "last": frozenset(last), "renamed": names}
    return type("_CommandWithEarlierOptions", (_Command,), spelled)


def add_command(
    app: typer.Typer,
    name: str,
    *aliases: str,
    **options: Any,
) -> "Callable[[Callable[..., None]], Callable[..., None]]":
    """Adds a command under its name, and under earlier names that help does not show."""

    def add(function: "Callable[..., None]") -> "Callable[..., None]":
        app.command(name, **options)(function)
        for alias in aliases:
            app.command(alias, hidden=True, **options)(function)
        return function

    return add


def lumos_of(config: Path | None, store: Path | None = None) -> "Lumos":
    """Lumos as the shared options want it."""
    from lumos.sdk import Lumos

    overrides = {} if store is None else {"storage.path": str(store.absolute())}
    return Lumos(config, overrides=overrides)


def check_data_platform(lumos: "Lumos", name: str | None) -> None:
    """Refuses a platform that no dataset is stored on, such as the name of a catalog."""
    known = lumos.data_platforms() if name else ()
    if name and known and name not in known:
        from lumos import plugins
        from lumos.errors import UnknownName

        is_catalog = name.partition(":")[0] in plugins.names(plugins.PLATFORMS)
        step = "To see what a catalog holds: lumos export FILE --platform " + name
        raise UnknownName(
            "data platform", name, known, listed="Datasets are on", next=step if is_catalog else ""
        )


def start_spark_ahead(paths: "Sequence[str]", config: Path | None, *, short: bool = True) -> None:
    """Start Spark in the background, while the engine is imported, if these paths need a scan."""
    from lumos.config import find_file, load
    from lumos.config.sources import FileStoreSettings

    file = find_file(Path.cwd(), os.environ) if config is None else config
    settings = load(file, environment=os.environ)
    if paths:
        will_scan = any("://" not in path and os.path.exists(path) for path in paths)
    else:
        will_scan = any(isinstance(source, FileStoreSettings) for source in settings.sources)
    if will_scan:
        from lumos.spark.session import start_ahead

        start_ahead(master=settings.spark.master, settings=settings.spark.properties(), short=short)


def stop_printing() -> None:
    """For when the reader of our output went away (`lumos list | head`): nothing is wrong."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(report: object) -> None:
    """One JSON object on stdout, indented for a terminal."""
    from lumos.model.json_codec import to_json

    data = to_json(report, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.flush()
