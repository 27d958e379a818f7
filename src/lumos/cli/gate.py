"""lumos gate"""

import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from lumos.cli.options import STDOUT, CommonOptions, ConfigFile, argument, with_options, write
from lumos.cli.screen import stdout, steps
from lumos.cli.text import print_line, print_problem
from lumos.rendering.text import plural

if TYPE_CHECKING:
    from lumos.gate.reports import CommentReport, GateInitReport, GateReport, WaiverReport

_STYLES: Final = {"BREAKING": "red", "UNDETERMINED": "yellow", "UNDOCUMENTED": "yellow", "ok": ""}
_COMMENT_STATUS: Final = {
    "created": "Created the comment on",
    "updated": "Updated the comment on",
    "unchanged": "The comment is up to date on",
    "skipped": "Nothing to report, so no comment on",
}

PullRequest = Annotated[
    int | None,
    typer.Option("--pr", metavar="NUMBER", help="The pull request. Default: that of the job."),
]
Repository = Annotated[
    str | None,
    typer.Option(
        metavar="OWNER/NAME", help="The repository of the pull request. Default: that of the job."
    ),
]
Forge = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="github, gitlab or bitbucket. Default: that of the job."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the comment instead of posting it.")]


app = typer.Typer(
    invoke_without_command=True,
    help="Check what the changes of a git branch break downstream.",
)


@app.callback(
    epilog="Examples:\n\n"
    "lumos gate --base main\n\n"
    "lumos gate --base origin/main --output sarif=gate.sarif --output junit=gate.xml\n\n"
    "lumos gate --base origin/main --comment\n\n"
    "lumos gate waive 1f2e3d4c5b6a7980 --reason 'Reader is retired' --approver analytics-team\n\n"
    "lumos gate init",
)
def gate(
    context: typer.Context,
    base: Annotated[
        str | None,
        typer.Option(metavar="REF", help="The branch that the change is for, such as main."),
    ] = None,
    head: Annotated[
        str, typer.Option(metavar="REF", help="The revision with the changes. Default: HEAD.")
    ] = "HEAD",
    dialect: Annotated[
        str | None, typer.Option(metavar="DIALECT", help="The SQL dialect of models.")
    ] = None,
    lineage: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|STORE",
            help="Also use the lineage of a snapshot, of a store, or of a file that lumos lineage "
            "ingest reads; local is the configured store.",
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT=FILE",
            help="Also write the report: text, json, markdown, github, gitlab, junit or sarif; "
            "- prints it. Repeatable.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 11 if a change is undetermined.")
    ] = False,
    warn_only: Annotated[
        bool, typer.Option("--warn-only", help="Exit with 0 even if something is found.")
    ] = False,
    comment: Annotated[
        bool,
        typer.Option(
            "--comment", help="Also create or update the comment on the pull request of the job."
        ),
    ] = False,
    pr: PullRequest = None,
    repository: Repository = None,
    forge: Forge = None,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check what the changes of a git branch break downstream, without a store or Spark.

    Compares schemas and SQL models with the merge base, and checks every reader. Exits with 0 if
    nothing blocks, 10 for breaking changes, 11 for undetermined ones, 12 for the cost threshold.
    """
    if context.invoked_subcommand is not None:
        return
    if base is None:
        raise typer.BadParameter("Missing option '--base'", context)
    if dry_run and (json or not comment):
        raise typer.BadParameter("--dry-run needs --comment, and prints no JSON", context)
    from lumos.gate.outputs import RENDERERS

    outputs = parse_outputs(output)
    options = CommonOptions(config=config, store=None, json=json)
    report = _cached_report(config, base, head, dialect) if lineage is None else None
    if report is None:
        with steps() as progress:
            report = options.lumos.gate.check(
                base, head, dialect=dialect, lineage=lineage, progress=progress
            )
    for format, file in outputs:
        write(RENDERERS[format](report), None if file == STDOUT else Path(file))
    if not dry_run and not any(file == STDOUT for _, file in outputs):
        options.print(report, _print_report)
    if comment:
        posted = options.lumos.gate.comment(
            report, pr=pr, repository=repository, forge=forge, dry_run=dry_run
        )
        # To stderr, since the report is on stdout.
        print_comment(posted, err=not dry_run)
    if code := report.exit_code(strict=strict, warn_only=warn_only):
        raise typer.Exit(code)


@app.command(
    epilog="Example: lumos gate waive 1f2e3d4c5b6a7980 --reason 'Reader is retired' "
    "--approver analytics-team"
)
@with_options
def waive(
    options: CommonOptions,
    fingerprint: Annotated[str, argument("FINGERPRINT", "The fingerprint of a finding.")],
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why the change may be merged anyway.")
    ],
    approver: Annotated[
        str, typer.Option(metavar="NAME", help="The approver: an owner, if owners are known.")
    ],
    expires: Annotated[
        str | None, typer.Option(metavar="DATE", help="The last day. Default: in 30 days.")
    ] = None,
    from_ci: Annotated[
        bool,
        typer.Option(
            "--from-ci", help="Accept a fingerprint that was only reported by a run in CI."
        ),
    ] = False,
) -> None:
    """Approve one finding of this change in .lumos/waivers.yaml; commit it with the change.

    The fingerprint is in the output of lumos gate. A fingerprint from a comment on a pull request
    needs --from-ci, since it cannot be checked here.
    """
    try:
        until = None if expires is None else date.fromisoformat(expires)
    except ValueError:
        raise typer.BadParameter(f"'{expires}' is not a date such as 2026-12-31.") from None
    report = options.lumos.gate.waive(
        fingerprint, reason=reason, approver=approver, expires=until, from_ci=from_ci
    )
    options.print(report, _print_waiver)


@app.command(epilog="Example: lumos gate init --forge github")
@with_options
def init(
    options: CommonOptions,
    forge: Annotated[
        Literal["github", "gitlab", "bitbucket", "jenkins"] | None,
        typer.Option(
            metavar="FORGE",
            help="github, gitlab, bitbucket or jenkins. Default: by the CI files and the remote.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="REF", help="The branch that changes are for. Default: by the remote."
        ),
    ] = None,
) -> None:
    """Write a workflow with the gate, a policy, and a baseline with the current findings.

    Existing files are not changed. Findings in the baseline do not block the change that introduces
    the gate, and documentation that is already missing does not block lumos doc check.
    """
    with steps() as progress:
        report = options.lumos.gate.init(forge=forge, base=base, progress=progress)
    options.print(report, _print_init)


def _print_init(report: "GateInitReport") -> None:
    for file in report.files:
        hint = f": {file.hint}" if file.hint else ""
        print_line(f"Wrote {file.path}." if file.written else f"Kept {file.path}{hint}.")
    entries = plural(report.findings, "finding")
    undocumented = plural(report.documentation, "missing field")
    print_line(f"The baseline has {entries} and {undocumented} of documentation.")
    for path in report.ignored:
        print_line(f"git ignores {path}. Add it with: git add --force {path}")
    written = " ".join(file.path for file in report.files if file.written)
    if written:
        print_line(f"Commit them: git add {written}")


def _print_waiver(report: "WaiverReport") -> None:
    print_line(f"Added a waiver to {report.file}. Commit it: git add {report.file}")


def parse_outputs(texts: list[str] | None) -> list[tuple[str, str]]:
    """The formats and files of --output."""
    return [_output(text) for text in texts or ()]


def _output(text: str) -> tuple[str, str]:
    from lumos.gate.outputs import RENDERERS

    format, equals, file = text.partition("=")
    if not equals or not file or format not in RENDERERS:
        formats = ", ".join(RENDERERS)
        raise typer.BadParameter(
            f"'{text}' is not FORMAT=FILE. Formats: {formats}. Example: --output sarif=gate.sarif"
        )
    return format, file


def print_comment(report: "CommentReport", *, err: bool = False) -> None:
    """Print the comment of a dry run, or a message that it was posted; failures go to stderr."""
    if report.problem is not None:
        print_problem(report.problem)
    elif report.status == "printed":
        write(report.body, None)
    else:
        where = f"{report.repository} {report.pr}{f': {report.url}' if report.url else '.'}"
        print_line(f"{_COMMENT_STATUS[report.status]} {where}", err=err)


def _cached_report(
    config: Path | None, base: str, head: str, dialect: str | None
) -> "GateReport | None":
    """The cached report of an earlier run, which is faster to read than importing the SDK."""
    from lumos.config import find_file, load
    from lumos.gate.report_cache import find_report

    file = find_file(Path.cwd(), os.environ) if config is None else config
    settings = load(file, environment=os.environ)
    return find_report(settings, base, head, dialect=dialect)


def _print_report(report: "GateReport") -> None:
    from lumos.gate.outputs import render_text

    console = stdout()
    for line in render_text(report).splitlines():
        title, gap, text = line.partition("  ")
        if gap and title in _STYLES:
            console.print(title, style=_STYLES[title], end="")
            print_line(f"{gap}{text}")
        else:
            print_line(line)
