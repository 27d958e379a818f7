"""lumos owner: users, groups and the datasets they own."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.annotations import print_changed, suggest_dataset_first
from lumos.cli.options import (
    CommonOptions,
    Datasets,
    DryRun,
    OptionalDatasets,
    Owner,
    accept_old_options,
    argument,
    with_options,
)
from lumos.cli.screen import Table, stdout
from lumos.cli.text import Names, print_line, print_problem
from lumos.rendering.text import few, plural

if TYPE_CHECKING:
    from lumos.annotations.reports import (
        OwnerAddReport,
        OwnerImportReport,
        OwnerListReport,
        OwnerShowReport,
    )

_MAX_LISTED: Final = 50
app = typer.Typer(help="Manage users, groups and the datasets they own.", no_args_is_help=True)

_Type = Annotated[
    str,
    typer.Option("--type", help="TECHNICAL_OWNER, DATA_STEWARD, BUSINESS_OWNER or another role."),
]


@app.command(
    epilog="Examples:\n\nlumos owner add jane.smith --email jane@example.com\n\n"
    "lumos owner add analytics-team --group --member jane.smith --member li.wei"
)
@with_options
def add(
    options: CommonOptions,
    name: Owner,
    group: Annotated[
        bool | None,
        typer.Option(
            "--group/--user",
            help="Whether it is a group or a user. Default: by 'owners' in lumos.yaml; without "
            "it, names such as sales-team are groups.",
            show_default=False,
        ),
    ] = None,
    email: Annotated[str | None, typer.Option(help="E-mail address.")] = None,
    member: Annotated[
        list[str] | None, typer.Option(metavar="OWNER", help="A member of the group. Repeatable.")
    ] = None,
    display_name: Annotated[str | None, typer.Option(help="The name to show.")] = None,
    title: Annotated[str | None, typer.Option(help="Job title of a user.")] = None,
    description: Annotated[str | None, typer.Option(help="Purpose of a group.")] = None,
) -> None:
    """Add a user or a group, or update one."""
    report = options.lumos.annotations.owners.add(
        name,
        group=group,
        email=email,
        display_name=display_name,
        title=title,
        description=description,
        members=member or (),
    )
    options.print(report, _print_owner)


@app.command(
    "list",
    epilog="Examples:\n\nlumos owner list\n\nlumos owner list 'sales/*'\n\n"
    "lumos owner list --unowned",
    cls=accept_old_options(first=("--dataset",)),
)
@with_options
def list_(
    options: CommonOptions,
    dataset: OptionalDatasets = None,
    unowned: Annotated[
        bool, typer.Option("--unowned", help="List the datasets without an owner.")
    ] = False,
) -> None:
    """List users and groups with what they own, or the owners of datasets."""
    report = options.lumos.annotations.owners.list(dataset, unowned=unowned)
    options.print(report, _print_list, options.names, unowned=unowned)


@app.command(epilog="Example: lumos owner show analytics-team")
@with_options
def show(options: CommonOptions, name: Owner) -> None:
    """Show a user or group and the datasets they own."""
    options.print(options.lumos.annotations.owners.show(name), _print_one, options.names)


@app.command(
    epilog="Examples:\n\nlumos owner assign orders jane.smith\n\n"
    "lumos owner assign 'sales/*' analytics-team --type DATA_STEWARD"
)
@with_options
def assign(
    options: CommonOptions,
    dataset: Datasets,
    owner: Owner,
    type: _Type = "TECHNICAL_OWNER",
    remove: Annotated[bool, typer.Option("--remove", hidden=True)] = False,
    dry_run: DryRun = False,
) -> None:
    """Assign an owner to a dataset, or to all datasets that match a pattern."""
    lumos = options.lumos
    with suggest_dataset_first(lumos, "owner assign", dataset, [owner]):
        report = lumos.annotations.owners.assign(
            owner, dataset, type=type, remove=remove, dry_run=dry_run
        )
    options.print(report, print_changed, options.names)


@app.command(epilog="Example: lumos owner remove orders jane.smith")
@with_options
def remove(
    options: CommonOptions,
    dataset: Datasets,
    owner: Owner,
    type: _Type = "TECHNICAL_OWNER",
    dry_run: DryRun = False,
) -> None:
    """Remove an owner from a dataset, or from all datasets that match a pattern."""
    lumos = options.lumos
    with suggest_dataset_first(lumos, "owner remove", dataset, [owner]):
        report = lumos.annotations.owners.assign(
            owner, dataset, type=type, remove=True, dry_run=dry_run
        )
    options.print(report, print_changed, options.names)


@app.command(
    "import",
    epilog="Examples:\n\nlumos owner import .github/CODEOWNERS\n\n"
    "lumos owner import target/manifest.json --dry-run",
)
@with_options
def import_(
    options: CommonOptions,
    file: Annotated[Path, argument("FILE", "A CODEOWNERS file or a dbt manifest.json.")],
    root: Annotated[
        Path | None,
        typer.Option(
            help="The folder to which paths in CODEOWNERS are relative. Default: the root of its "
            "repository."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="The name of this source. A later import with the same name replaces its owners. "
            "Default: the path of the file, relative to the store's folder or its repository.",
            show_default=False,
        ),
    ] = None,
    type: _Type = "TECHNICAL_OWNER",
    dry_run: DryRun = False,
) -> None:
    """Import owners from CODEOWNERS or from the owners and groups of a dbt project."""
    owners = options.lumos.annotations.owners
    report = owners.load(file, root=root, name=name, type=type, dry_run=dry_run)
    options.print(report, _print_import, options.names)


def _print_owner(report: "OwnerAddReport") -> None:
    outcome = "added" if report.created else "changed" if report.changed else "unchanged"
    print_line(f"{report.kind} {report.name}: {outcome}")


def _print_one(report: "OwnerShowReport", names: Names) -> None:
    owner = report.owner
    stdout().print(owner.name, style="bold")
    details = Table("", "")
    details.add("kind", owner.kind)
    for label, value in (
        ("name", owner.display_name),
        ("e-mail", owner.email),
        ("members", ", ".join(owner.members)),
    ):
        if value:
            details.add(label, value)
    stdout().print(details)
    if not report.owned:
        print_line(
            f"Owns nothing yet. Assign a dataset with: lumos owner assign DATASET {owner.name}"
        )
        return
    listed, more = few(report.owned, _MAX_LISTED)
    names.look_up(each.urn for each in listed)
    table = Table("DATASET", "TYPE")
    for each in listed:
        table.add(names(each.urn), ", ".join(role["type"] for role in each.owners))
    print_line("")
    stdout().print(table)
    if more:
        print_line(f"... and {more:,} more datasets; --json lists them.")


def _print_import(report: "OwnerImportReport", names: Names) -> None:
    print_changed(report, names)
    for unmatched in report.unmatched[:_MAX_LISTED]:
        print_problem(f"{unmatched}: no dataset or several datasets have this name")


def _print_list(report: "OwnerListReport", names: Names, *, unowned: bool) -> None:
    if report.owned:
        listed, more = few(report.owned, _MAX_LISTED)
        names.look_up(each.urn for each in listed)
        table = Table("") if unowned else Table("DATASET", "OWNERS")
        for each in listed:
            owners = ", ".join(f"{role['name']} ({role['type']})" for role in each.owners)
            table.add(names(each.urn), *(() if unowned else (owners or "-",)))
        stdout().print(table)
        if more:
            print_line(f"... and {more:,} more datasets; --json lists them.")
    elif not unowned:
        empty = "No owners yet. Add one with: lumos owner add NAME"
        table = Table("OWNER", "KIND", "E-MAIL", "OWNS", empty=empty)
        for owner in report.owners:
            owns = ", ".join(f"{count:,} {type}" for type, count in owner.datasets.items())
            table.add(owner.name, owner.kind, owner.email or "", owns or "-")
        stdout().print(table)
    verb = "has" if report.unowned == 1 else "have"
    print_line(
        f"{report.unowned:,} of {plural(report.datasets, 'dataset')} {verb} no owner "
        f"({report.unowned_share:.0%})."
    )
