"""lumos token create, list and revoke"""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lumos.cli.options import CommonOptions, add_command, argument, with_options
from lumos.cli.screen import Table, stdout
from lumos.cli.text import print_line, print_remark
from lumos.rendering.text import format_time

if TYPE_CHECKING:
    from lumos.access.reports import TokenCreateReport, TokenListReport, TokenRevokeReport

app = typer.Typer(help="Manage API tokens of the server.", no_args_is_help=True)


@add_command(
    app,
    "create",
    "add",
    epilog="Examples:\n\nlumos token create ci --role write\n\nlumos token create bi --expires 30d",
)
@with_options
def create(
    options: CommonOptions,
    name: Annotated[str, argument("NAME", "Who or what uses the token.")],
    role: Annotated[
        Literal["read", "write", "admin"],
        typer.Option(help="The rights of the token: each role includes those before it."),
    ] = "read",
    expires: Annotated[
        str, typer.Option(metavar="AGE", help="Lifetime such as 90d or 12h, or never.")
    ] = "90d",
) -> None:
    """Create a token and print it. It is not shown again: the store only has its hash."""
    report = options.lumos.tokens.create(name, role=role, expires=expires)
    options.print(report, _print_created)


@app.command("list", epilog="Example: lumos token list --json")
@with_options
def list_(options: CommonOptions) -> None:
    """List tokens with their roles and when they expire, without the tokens themselves."""
    options.print(options.lumos.tokens.list(), _print_tokens)


@add_command(app, "revoke", "remove", epilog="Example: lumos token revoke ci")
@with_options
def revoke(
    options: CommonOptions,
    token: Annotated[str, argument("TOKEN", "The id or the name of a token.")],
) -> None:
    """Make a token invalid at once."""
    options.print(options.lumos.tokens.revoke(token), _print_revoked)


def _print_created(report: "TokenCreateReport") -> None:
    # Only the token goes to stdout, so that it can be redirected to a file or a variable.
    print_line(report.secret)
    token = report.token
    end = (
        "never expires" if token.expires_at is None else f"expires {format_time(token.expires_at)}"
    )
    print_remark(
        f"Token {token.id} '{token.name}' with the role {token.role} {end}. It is not shown again."
    )


def _print_tokens(report: "TokenListReport") -> None:
    if not report.tokens:
        print_line("There is no token. Create one with: lumos token create NAME")
        return
    table = Table("ID", "NAME", "ROLE", "STATE", "EXPIRES (UTC)", "LAST USED (UTC)")
    for each in report.tokens:
        expires = "never" if each.expires_at is None else format_time(each.expires_at)
        used = "never" if each.last_used_at is None else format_time(each.last_used_at)
        table.add(each.id, each.name, each.role, each.state, expires, used)
    stdout().print(table)


def _print_revoked(report: "TokenRevokeReport") -> None:
    token = report.token
    if report.changed:
        print_line(f"Revoked the token {token.id} '{token.name}'.")
    else:
        print_line(f"The token {token.id} '{token.name}' was revoked before.")
