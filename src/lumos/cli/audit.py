"""lumos audit list, verify and export"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lumos.cli.options import (
    CommonOptions,
    accept_old_options,
    argument,
    limit_option,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line, print_problem
from lumos.rendering.text import format_time, plural

if TYPE_CHECKING:
    from lumos.audit.reports import AuditExportReport, AuditListReport, AuditVerifyReport

app = typer.Typer(help="Show and verify who did what, when and from where.", no_args_is_help=True)


@app.command(
    "list", epilog="Examples:\n\nlumos audit list --since 7d\n\nlumos audit list --target orders"
)
@with_options
def list_(
    options: CommonOptions,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="As in 7d or 2024-01-15.")
    ] = None,
    actor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this user, token or CI account.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(metavar="ACTION", help="Only this action, such as 'token create'.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only targets that contain this.")
    ] = None,
    limit: Annotated[int, limit_option("Only the newest ones.")] = 50,
) -> None:
    """List the newest actions."""
    report = options.lumos.audit.list(
        since=since, actor=actor, action=action, target=target, limit=limit
    )
    is_filtered = any((since, actor, action, target))
    options.print(report, _print_entries, options.names, is_filtered=is_filtered)


@app.command(epilog="Example: lumos audit verify --head 3f2a...")
@with_options
def verify(
    options: CommonOptions,
    head: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The hash printed by an earlier verification or export."),
    ] = None,
) -> None:
    """Check that no action was changed, removed or inserted. Exits with 1 if one was.

    Each action contains a hash of all actions before it. Store the printed hash elsewhere and pass
    it with --head later: only this proves that the entire log was not rewritten.
    """
    report = options.lumos.audit.verify(head=head)
    options.print(report, _print_verified)
    if report.problems:
        raise typer.Exit(1)


@app.command(
    epilog="Example: lumos audit export audit.jsonl",
    cls=accept_old_options(first=("--output", "-o")),
)
@with_options
def export(
    options: CommonOptions,
    file: Annotated[Path, argument("FILE", "The file to write, one JSON object per line.")],
) -> None:
    """Write all actions to a file, oldest first."""
    options.print(options.lumos.audit.export(file), _print_exported)


def _print_entries(report: "AuditListReport", names: Names, *, is_filtered: bool) -> None:
    if not report.entries:
        advice = "No recorded action matches. See the newest ones with: lumos audit list"
        print_line(advice if is_filtered else "No action is recorded.")
        return
    names.look_up(each.target for each in report.entries)
    table = Table(">#", "TIME (UTC)", "WHO", "FROM", "ACTION", "TARGET", "DETAILS")
    for each in report.entries:
        table.add(
            str(each.sequence),
            format_time(each.at),
            f"{each.kind} {each.actor}",
            each.origin,
            each.action,
            names(each.target),
            each.details,
        )
    stdout().print(table)


def _print_verified(report: "AuditVerifyReport") -> None:
    for each in report.problems:
        print_problem(each.sentence)
    if not report.problems:
        print_line(f"{plural(report.rows, 'action')} verified. Head: {report.head}")


def _print_exported(report: "AuditExportReport") -> None:
    print_line(f"Wrote {plural(report.rows, 'action')} to {report.file}. Head: {report.head}")
