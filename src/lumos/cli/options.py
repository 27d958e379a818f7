"""Arguments and options that commands share, including former ones, and output functions."""

import inspect
import os
import re
import sys
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
)

import typer
from typer.core import TyperCommand

from lumos.cli.text import Names, print_remark
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lumos.sdk import Lumos

# One slash, since pathlib turns s3://bucket into s3:/bucket.
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# Exit codes of --exit-code.
BREAKING: Final = 10
UNDETERMINED: Final = 11
# The environment variable with the value of --server while a command runs.
SERVER_VARIABLE: Final = "_LUMOS_SERVER"
# File names that mean stdin and stdout.
STDIN: Final = "-"
STDOUT: Final = "-"

AnyPath = TypeVar("AnyPath", str, Path, Path | None)
ReportT = TypeVar("ReportT")
P = ParamSpec("P")


def local_path(path: AnyPath) -> AnyPath:
    """Reject a URL: as a path, it would create folders whose names may contain a password."""
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


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """An argument of a command."""
    return typer.Argument(metavar=metavar, help=help, show_default=False, **settings)


def limit_option(help: str, *short: str, maximum: int | None = None) -> Any:
    """The option --limit N."""
    return typer.Option("--limit", *short, metavar="N", min=1, max=maximum, help=help)


def output_option(help: str, **settings: Any) -> Any:
    """The option -o, --output FILE."""
    return typer.Option("--output", "-o", metavar="FILE", help=help, **settings)


# Arguments. A dataset always comes first.
Dataset = Annotated[
    str, argument("DATASET", "A dataset: its URN, or its name or the end of its path if unique.")
]
OptionalDataset = Annotated[str | None, argument("[DATASET]", "One dataset. Default: all.")]
DatasetOrJob = Annotated[str, argument("DATASET", "A dataset or job by URN, name or end of path.")]
Datasets = Annotated[
    str,
    argument("DATASET", "A URN, a unique name, or a pattern for datasets such as 'sales/*'."),
]
OptionalDatasets = Annotated[
    str | None,
    argument("[DATASET]", "Only this dataset, or those that match a pattern such as 'sales/*'."),
]
Owner = Annotated[str, argument("OWNER", "A user or a group.")]
Paths = Annotated[
    list[str] | None,
    argument(
        "[PATH]...",
        "Folders, files or addresses (s3://bucket/folder, gs://, abfss://, hdfs://, "
        "postgresql://).",
    ),
]
Snapshot = Annotated[Path, argument("FILE", "The snapshot.")]
OptionalSnapshot = Annotated[Path | None, argument("[FILE]", "The snapshot.")]

# Options.
_PLATFORM_HELP: Final = (
    "a configured catalog, KIND:ADDRESS such as datahub-file:metadata.json, or local"
)
Platform = Annotated[
    str, typer.Option("--platform", metavar="PLATFORM", help=f"The catalog: {_PLATFORM_HELP}.")
]
ReadFrom = Annotated[
    str | None,
    typer.Option(
        "--platform",
        metavar="PLATFORM",
        help=f"The catalog to read instead of the store: {_PLATFORM_HELP}.",
    ),
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
        help="Only datasets stored on this data platform, such as s3, file or postgres.",
    ),
]
OutputFile = Annotated[
    Path | None,
    output_option(
        "Output file. Its extension sets the format. Use - for stdout.",
        callback=_output_file,
    ),
]
ReportFile = Annotated[
    str | None,
    output_option(
        "Also write the JSON report to this file. Use - for stdout.",
        callback=local_path,
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change without changing anything.")
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
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
OnlyFormat = Annotated[str | None, typer.Option(metavar="FORMAT", help="Only this format.")]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="With --exit-code: exit with 11 if any change is undetermined."),
]
# Hidden, for compatibility: the opposite of --accept-removals.
NoAcceptRemovals = Annotated[bool, typer.Option("--no-accept-removals", hidden=True)]
# A file with a proposed schema.
FileKind = Annotated[
    Literal["lumos", "json-schema", "avro", "sql", "dbt", "parquet"] | None,
    typer.Option(
        "--as",
        metavar="KIND",
        help="The kind of file: lumos, json-schema, avro, sql, dbt or parquet. "
        "Default: by its content.",
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        metavar="DIALECT",
        help="SQL dialect: postgres, snowflake, bigquery, spark, tsql, ...",
        show_default=False,
    ),
]
TypeDialect = Annotated[
    Literal["postgres", "snowflake", "bigquery", "hive"] | None,
    typer.Option(
        metavar="DIALECT",
        help="The SQL dialect of types: postgres, snowflake, bigquery or hive. "
        "Default: the dataset's.",
    ),
]
FileModel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The table or model in the file. Default: the dataset's name."
    ),
]


class SharedOptions:
    """The values of options that several commands share, and objects that are created from them."""

    config: Path | None = None
    store: Path | None = None
    json: bool = False

    @cached_property
    def lumos(self) -> "Lumos":
        """Lumos with the configuration and store of the options."""
        return open_lumos(self.config, self.store)

    @cached_property
    def names(self) -> Names:
        """The names of datasets in the store."""
        return Names(self.lumos)

    def print(
        self,
        report: ReportT,
        show: "Callable[Concatenate[ReportT, P], None]",
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        """Print a report as JSON with --json, else with `show`."""
        print_json(report) if self.json else show(report, *args, **kwargs)


@dataclass(kw_only=True)
class JsonOptions(SharedOptions):
    """The option --json."""

    json: AsJson = False


@dataclass(kw_only=True)
class ConfigOptions(SharedOptions):
    """The options of commands that use no store."""

    config: ConfigFile = None
    json: AsJson = False


@dataclass(kw_only=True)
class CommonOptions(SharedOptions):
    """The options that most commands take."""

    config: ConfigFile = None
    store: StorePath = None
    json: AsJson = False


def with_options(function: "Callable[..., None]") -> "Callable[..., None]":
    """Add options to a command: one for each field of the class of its parameter `options`."""
    signature = inspect.signature(function)
    options_class = signature.parameters["options"].annotation
    own_parameters = [each for name, each in signature.parameters.items() if name != "options"]
    shared = [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )
        for each in fields(options_class)
    ]

    @wraps(function)
    def command(*args: Any, **arguments: Any) -> None:
        values = {each.name: arguments.pop(each.name, each.default) for each in shared}
        options = options_class(**values)
        try:
            function(options, *args, **arguments)
        except MisuseError as problem:
            if not isinstance(options, JsonOptions | ConfigOptions):
                problem.args = (options.names.in_error(str(problem)),)
            raise

    parameters = [*own_parameters, *shared]
    command.__dict__["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


class _CommandWithOldOptions(TyperCommand):
    """A command that also accepts former options, which help does not show.

    `first` and `last` are former options that are now the first or the last positional argument.
    `renamed` maps former names of options to current names.
    """

    first: ClassVar[frozenset[str]] = frozenset()
    last: ClassVar[frozenset[str]] = frozenset()
    renamed: ClassVar["Mapping[str, str]"] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._to_current_options(ctx, args))

    def _to_current_options(self, ctx: Any, arguments: "Iterable[str]") -> list[str]:
        first: list[str] = []
        others: list[str] = []
        last: list[str] = []
        remaining = iter(arguments)
        for word in remaining:
            if word == "--":
                others += [word, *remaining]
                break
            name, equals, value = word.partition("=")
            if name in self.renamed:
                others.append(f"{self.renamed[name]}{equals}{value}")
            elif name in self.first or name in self.last:
                given_value = value if equals else next(remaining, None)
                if given_value is None:
                    raise typer.BadParameter(f"Option '{name}' requires an argument.", ctx)
                (first if name in self.first else last).append(given_value)
            else:
                others.append(word)
        return [*first, *others, *last]


def accept_old_options(
    *, first: "Iterable[str]" = (), last: "Iterable[str]" = (), **renamed: str
) -> type[TyperCommand]:
    """A command class that accepts former options: `keep="--output"` accepts --keep as --output."""
    names = {f"--{old.replace('_', '-')}": new for old, new in renamed.items()}
    attributes = {"first": frozenset(first), "last": frozenset(last), "renamed": names}
    return type("_CommandWithOldOptions", (_CommandWithOldOptions,), attributes)


def add_command(
    app: typer.Typer,
    name: str,
    *aliases: str,
    **options: Any,
) -> "Callable[[Callable[..., None]], Callable[..., None]]":
    """Add a command with a name, and with aliases that help does not show."""

    def add(function: "Callable[..., None]") -> "Callable[..., None]":
        app.command(name, **options)(function)
        for alias in aliases:
            app.command(alias, hidden=True, **options)(function)
        return function

    return add


def open_lumos(config: Path | None, store: Path | None = None) -> "Lumos":
    """Lumos with the configuration and store of the options, or on the server of --server."""
    if server := os.environ.get(SERVER_VARIABLE):
        if store is not None:
            raise MisuseError("--store and --server contradict each other. Give one.")
        from lumos.server.client import connect

        return connect(server)
    from lumos.sdk import Lumos

    overrides = {} if store is None else {"storage.path": str(store.absolute())}
    return Lumos(config, overrides=overrides)


def is_catalog(name: str) -> bool:
    """Whether a text names a catalog: its kind, KIND:ADDRESS, or local."""
    from lumos import plugins

    kind = name.partition(":")[0]
    return kind == "local" or kind in plugins.names(plugins.PLATFORMS)


def check_data_platform(lumos: "Lumos", name: str | None) -> None:
    """Reject a platform without datasets, such as the name of a catalog."""
    platforms = lumos.datasets.data_platforms() if name else ()
    if name and platforms and name not in platforms:
        from lumos.errors import UnknownName

        step = f"To search a catalog: lumos search TEXT --platform {name}"
        raise UnknownName(
            "data platform",
            name,
            platforms,
            listed="Datasets are on",
            next=step if is_catalog(name) else "",
        )


def start_spark_early(paths: "Sequence[str]", config: Path | None, *, short: bool = True) -> None:
    """Start Spark in the background, while modules are imported, if these paths need a scan."""
    from lumos.config import find_file, load
    from lumos.config.sources import FileStoreSettings

    file = find_file(Path.cwd(), os.environ) if config is None else config
    settings = load(file, environment=os.environ)
    if paths:
        will_scan = any("://" not in path and os.path.exists(path) for path in paths)
    else:
        will_scan = any(isinstance(source, FileStoreSettings) for source in settings.sources)
    if will_scan:
        from lumos.spark.session import start_jvm_early

        start_jvm_early(
            master=settings.spark.master, settings=settings.spark.properties(), short=short
        )


def choose_format(
    format: str | None,
    output: Path | None,
    extensions: "Mapping[str, str]",
    *,
    default: str,
    **switches: bool,
) -> str:
    """The format from --format, from options such as --json, or from the extension of --output."""
    requested = {f"--{name}": name for name, is_given in switches.items() if is_given}
    requested |= {f"--format {format}": format} if format else {}
    if len(set(requested.values())) > 1:
        raise MisuseError(f"{' and '.join(requested)} contradict each other. Give one.")
    if requested:
        return next(iter(requested.values()))
    if output is None:
        return default
    extension = output.suffix.lower()
    if extension not in extensions:
        valid = ", ".join(extensions)
        raise MisuseError(f"Unknown format of {output}. Use one of these extensions: {valid}.")
    return extensions[extension]


def write(text: str, output: Path | None, *, remark: str = "") -> None:
    """Write a text to stdout, or atomically to a file; missing folders are created."""
    if output is None:
        sys.stdout.write(text)
        return
    from lumos.cli.screen import stderr
    from lumos.schemas.output import write_output

    output.parent.mkdir(parents=True, exist_ok=True)
    write_output(output, text.encode())
    stderr().print(f"[ok] Wrote {output}. {remark}".rstrip())


def check_strict(*, strict: bool, exit_code: bool) -> None:
    """Print a remark if --strict has no effect."""
    if strict and not exit_code:
        print_remark("--strict has no effect without --exit-code")


def exit_by_verdict(
    *, exit_code: bool, strict: bool, is_breaking: object, is_undetermined: object
) -> None:
    """Exit with the code for a verdict, if --exit-code and --strict request it."""
    if exit_code and is_breaking:
        raise typer.Exit(BREAKING)
    if exit_code and strict and is_undetermined:
        raise typer.Exit(UNDETERMINED)


def stop_printing() -> None:
    """Discard further output after the reader has closed the pipe, as in `lumos list | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(report: object) -> None:
    """Print one JSON object on stdout, indented on a terminal."""
    from lumos.model.compressed_list import json_parts
    from lumos.model.json_codec import to_json

    parts = [to_json(report, indent=2)] if sys.stdout.isatty() else json_parts(report)
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
