"""The `lumos` command."""

import errno
import gc
import inspect
import io
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from typing import Annotated, Any, Final

import typer

from lumos.cli import (
    audit,
    changes,
    config,
    cost,
    datasets,
    db,
    diff,
    discover,
    doc,
    doctor,
    enrich,
    explain,
    export,
    gate,
    hint,
    impact,
    import_,
    ingest,
    init,
    job,
    labels,
    lineage,
    logs,
    migrate,
    notify,
    owner,
    profile,
    property,
    reconcile,
    release,
    schedule,
    schema,
    search,
    serve,
    site,
    sync,
    term,
    token,
    usage,
    validate,
    version,
    watch,
)
from lumos.cli.logs import LogFormat
from lumos.cli.options import SERVER_VARIABLE, stop_printing
from lumos.cli.switches import SwitchedGroup
from lumos.cli.text import DEBUG, QUIET, VERBOSE, escape
from lumos.config.secret import mask_arguments
from lumos.errors import FAILED, LumosError, MisuseError, did_you_mean, nearest
from lumos.version import __version__

_GLOBAL_OPTIONS: Final = frozenset({"--quiet", "-q", "--verbose", "-v", "--debug"})
_WRONG_CHOICE: Final = re.compile(r"'(?P<given>[^']*)' is not one of (?P<known>'.+')")
_QUOTED: Final = re.compile(r"'([^']*)'")
_EXTRA_ARGUMENTS: Final = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)
_EXAMPLE: Final = re.compile(r"^(?:Example: )?(lumos .*)", re.MULTILINE)
# Commands that act on the local machine and cannot use a server.
_LOCAL_COMMANDS: Final = frozenset(
    {"discover", "doctor", "ingest", "init", "serve", "site", "watch"}
)


# The sections of lumos --help.
_SECTIONS: Final = {
    "Find data": "ingest discover overview list show search explain profile reconcile hint",
    "Changes and their impact": "changes history impact schema version gate watch notify release",
    "Lineage, usage and cost": "lineage usage cost",
    "Annotations": "owner tag compliance doc property term enrich",
    "Snapshots and catalogs": "export validate import diff migrate sync",
    "Server and jobs": "serve site run worker job schedule token audit",
    "Set-up": "init config doctor db",
}


class _Commands(SwitchedGroup):
    """All commands by section; wrong arguments are reported like all other errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        commands: dict[str, Any] = dict(self.commands)
        for section, names in _SECTIONS.items():
            for name in names.split():
                commands[name].rich_help_panel = section

    def list_commands(self, ctx: Any) -> list[str]:
        names = " ".join(_SECTIONS.values()).split()
        return list(dict.fromkeys([*names, *super().list_commands(ctx)]))

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _report_misuse():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _report_misuse():
            return super().invoke(ctx)


@contextmanager
def _report_misuse() -> Iterator[None]:
    try:
        yield
    except typer.TyperException as problem:
        sentence = problem.format_message().removeprefix("Invalid value: ").strip()
        if not sentence:
            # Typer has printed help: the name of a command is missing after its group.
            raise
        context = getattr(problem, "ctx", None)
        command = "lumos" if context is None else context.command_path
        example = ""
        if context is not None:
            sentence, example = _improve_message(problem, sentence, context)
        if (choice := _WRONG_CHOICE.search(sentence)) is not None:
            question = did_you_mean(choice["given"], _QUOTED.findall(choice["known"]))
            sentence = f"{sentence.rstrip('.')}.{question}"
        end = "" if sentence.endswith((".", "?")) else "."
        raise MisuseError(
            f"{sentence[0].upper()}{sentence[1:]}{end} See: {command} --help{example}"
        ) from problem


def _improve_message(problem: Any, sentence: str, context: Any) -> tuple[str, str]:
    """Add similar options or the commands of a group to a message of Typer.

    Returns the message, and an example of the command or "".
    """
    command = context.command
    if hasattr(problem, "possibilities"):
        option: str = problem.option_name
        # Compare names without dashes, which would make short options similar.
        known = [
            name[2:]
            for each in command.params
            if not getattr(each, "hidden", False)
            for name in each.opts
            if name.startswith("--")
        ]
        similar = nearest(option.lstrip("-"), known)
        if similar:
            return f"No such option: {option}. Did you mean '--{similar[0]}'?", ""
        sentence = f"No such option: {option}."
    elif sentence.startswith("No such command"):
        if context.parent is None or "Did you mean" in sentence:
            return sentence, ""
        names = [name for name, each in command.commands.items() if not each.hidden]
        return f"{sentence} Commands: {', '.join(names)}.", ""
    elif extra := _EXTRA_ARGUMENTS.fullmatch(sentence):
        sentence = f"Unexpected argument '{extra[1]}'."
    elif not sentence.startswith("Missing"):
        return sentence, ""
    example = _EXAMPLE.search(command.epilog or "")
    return sentence, f". Example: {example[1]}" if example else ""


app = typer.Typer(
    name="lumos",
    cls=_Commands,
    epilog="Start with: lumos ingest PATH",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (
    ingest.app, discover.app, datasets.app, schema.history_app, changes.app, impact.app,
    search.app, export.app, validate.app, import_.app, diff.app, migrate.app, sync.app, enrich.app,
    explain.app, profile.app, reconcile.app, job.run_app, job.worker_app, doctor.app, init.app,
    serve.app, site.app,
):  # fmt: skip
    app.add_typer(commands)
app.add_typer(watch.app, name="watch")
app.add_typer(schema.app, name="schema")
app.add_typer(gate.app, name="gate")
app.add_typer(version.app, name="version")
app.add_typer(lineage.app, name="lineage")
app.add_typer(hint.app, name="hint")
app.add_typer(owner.app, name="owner")
app.add_typer(labels.app)
app.add_typer(doc.app, name="doc")
app.add_typer(property.app, name="property")
app.add_typer(term.app, name="term")
app.add_typer(config.app, name="config")
app.add_typer(db.app, name="db")
app.add_typer(notify.app, name="notify")
app.add_typer(usage.app, name="usage")
app.add_typer(cost.app, name="cost")
app.add_typer(release.app, name="release")
app.add_typer(job.app, name="job")
app.add_typer(schedule.app, name="schedule")
app.add_typer(token.app, name="token")
app.add_typer(audit.app, name="audit")


def _unwrap_help(group: typer.Typer) -> None:
    """Join the lines of each paragraph of help, so that only the terminal wraps them."""
    for each in group.registered_commands:
        paragraphs = (each.help or inspect.getdoc(each.callback) or "").split("\n\n")
        each.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    for subgroup in group.registered_groups:
        if subgroup.typer_instance is not None:
            _unwrap_help(subgroup.typer_instance)


_unwrap_help(app)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"lumos {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print results and errors only.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Log every step to stderr and print URNs in full."),
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="Log as text, or as one JSON object per line.")
    ] = "text",
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="LUMOS_SERVER",
            help="Use the store of a server, such as http://127.0.0.1:8765.",
        ),
    ] = None,
    debug: Annotated[  # noqa: ARG001 - read by `_fail`, which also runs if options are wrong
        bool, typer.Option("--debug", envvar=DEBUG, help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Find every dataset in storage, track schema changes and keep catalogs up to date.

    The options below can be given anywhere on the command line.
    """
    logs.set_up(format=log_format, verbose=verbose, quiet=quiet)
    # Reset the variables first: one process may run several commands, as tests do.
    for switch, is_on in ((QUIET, quiet or log_format == "json"), (VERBOSE, verbose)):
        os.environ.pop(switch, None)
        if is_on:
            os.environ[switch] = "1"
    os.environ.pop(SERVER_VARIABLE, None)
    if server:
        if (command := context.invoked_subcommand) in _LOCAL_COMMANDS:
            raise MisuseError(
                f"lumos {command} does not work on a server: it is about this machine. "
                "Run it without --server and LUMOS_SERVER."
            )
        os.environ[SERVER_VARIABLE] = server


def command() -> None:
    """Run `main` and exit at once.

    A normal exit would free all objects of a scan one by one.
    """
    # A scan creates few reference cycles, so less frequent garbage collection saves a tenth of the
    # driver's time.
    gc.set_threshold(50_000, 20, 50)
    code: int | str | None = 0
    try:
        main()
    except SystemExit as exit_request:
        code = exit_request.code
    # A second Ctrl-C ends the wait.
    with suppress(KeyboardInterrupt):
        _wait_for_threads()
    if not isinstance(code, int):
        sys.exit(code)
    logging.shutdown()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wait_for_threads() -> None:
    """Wait for the threads of Lumos, but not for those of libraries, which may never end."""
    for thread in threading.enumerate():
        if thread.name.startswith("lumos-") and not thread.daemon:
            thread.join()


def main() -> None:
    """Run the command; an error is printed as one sentence on stderr and sets the exit code."""
    _prepare_streams()
    try:
        _check_encoding()
        app(_move_options_first(sys.argv[1:]), prog_name="lumos")
    except LumosError as problem:
        _fail(str(problem), problem.exit_code)
    except BrokenPipeError:
        stop_printing()
    except OSError as problem:
        if isinstance(problem, FileNotFoundError) and not _has_working_directory():
            _fail(
                "The working directory no longer exists. Change to another one, as with: cd ~",
                FAILED,
            )
        if problem.errno == errno.ENOSPC:
            _fail("No space left on the disk. Free some space and run the command again.", FAILED)
        if problem.filename is None:
            # An error of a remote store, whose message is complete.
            _fail(str(problem), FAILED)
        path = problem.filename
        if isinstance(problem, PermissionError):
            _fail(f"No permission for {path}. Grant access, or choose another path.", FAILED)
        _fail(f"{path}: {problem.strerror or problem}.", FAILED)
    except KeyboardInterrupt:
        _fail("Interrupted.", 130)


def _check_encoding() -> None:
    """Reject arguments and variables that are not UTF-8, since stores cannot contain them."""
    texts = [(f"argument '{word}'", word) for word in sys.argv[1:]]
    if _has_working_directory():
        texts.append(("name of the working directory", os.getcwd()))
    texts += [
        (f"environment variable {name}", value)
        for name, value in os.environ.items()
        if name.startswith("LUMOS_")
    ]
    for label, text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise MisuseError(
                f"The {label} is not valid UTF-8. Use UTF-8; a file or a folder with such "
                "a name has to be renamed first."
            ) from None


def _has_working_directory() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _prepare_streams() -> None:
    """Escape characters that a stream cannot encode, and discard output to closed streams."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            # Otherwise the next opened file would get the descriptor and receive the output.
            null_device = os.open(os.devnull, os.O_RDWR)
            if null_device != number:
                os.dup2(null_device, number)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))
        elif number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _move_options_first(words: list[str]) -> list[str]:
    """Move the global options before the command, where Typer expects them."""
    global_options: list[str] = []
    others: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            others += [word, *remaining]
        elif word in _GLOBAL_OPTIONS or word.startswith(("--log-format=", "--server=")):
            global_options.append(word)
        elif word in ("--log-format", "--server"):
            global_options += [word, *islice(remaining, 1)]
        else:
            others.append(word)
    return global_options + others


def _fail(sentence: str, exit_code: int) -> None:
    # Read --debug from the arguments, since Typer may have failed before parsing it.
    if os.environ.get(DEBUG) or "--debug" in takewhile(lambda word: word != "--", sys.argv[1:]):
        typer.echo(escape(mask_arguments(sys.argv, traceback.format_exc())), err=True)
    typer.echo(f"lumos: {escape(mask_arguments(sys.argv, sentence))}", err=True)
    sys.exit(exit_code)
