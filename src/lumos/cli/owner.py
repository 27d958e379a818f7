"""lumos owner: users, groups and what they answer for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.lines import say
from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.cli.words import Datasets, DryRun, print_words

if TYPE_CHECKING:
    from lumos.engine.people.reports import OwnerListReport

_MOST: Final = 50
app = typer.Typer(help="Who answers for which data.", no_args_is_help=True)

_Type = Annotated[
    str,
    typer.Option("--type", help="TECHNICAL_OWNER, DATA_STEWARD, BUSINESS_OWNER or another kind."),
]


@app.command(
    epilog="Examples:\n\nlumos owner add jane.smith --email jane@example.com\n\n"
    "lumos owner add analytics-team --group --member jane.smith --member li.wei"
)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    group: Annotated[bool, typer.Option("--group", help="A group of users.")] = False,
    email: Annotated[str | None, typer.Option(help="The e-mail address.")] = None,
    member: Annotated[
        list[str] | None, typer.Option(help="A user of the group; several times if needed.")
    ] = None,
    display_name: Annotated[str | None, typer.Option(help="As it is shown.")] = None,
    title: Annotated[str | None, typer.Option(help="A user's title.")] = None,
    description: Annotated[str | None, typer.Option(help="What a group is for.")] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Add a user or a group, or say more about one."""
    report = lumos_of(config, store).people.owners.add(
        name,
        group=group,
        email=email,
        display_name=display_name,
        title=title,
        description=description,
        members=member or (),
    )
    if json:
        print_json(report)
    else:
        verb = "added" if report.created else "changed" if report.changed else "unchanged"
        say(f"{report.kind} {report.name}: {verb}")


@app.command(
    "list",
    epilog="Examples:\n\nlumos owner list\n\nlumos owner list --dataset 'sales/*'\n\n"
    "lumos owner list --unowned",
)
def list_(
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="URN|PATTERN", help="Only of these datasets, and which."),
    ] = None,
    unowned: Annotated[bool, typer.Option("--unowned", help="Which datasets nobody owns.")] = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """List users and groups with what they own, and the share of datasets that nobody owns."""
    report = lumos_of(config, store).people.owners.list(dataset, unowned=unowned)
    print_json(report) if json else _print_list(report, unowned=unowned)


@app.command(
    epilog="Examples:\n\nlumos owner assign analytics-team 'sales/*' --type DATA_STEWARD\n\n"
    "lumos owner assign jane.smith orders --remove"
)
def assign(
    owner: Annotated[
        str, typer.Argument(metavar="OWNER", help="A user or a group.", show_default=False)
    ],
    dataset: Datasets,
    type: _Type = "TECHNICAL_OWNER",
    remove: Annotated[bool, typer.Option("--remove", help="No longer an owner.")] = False,
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Make somebody an owner of a dataset, or of all that fit a pattern."""
    report = lumos_of(config, store).people.owners.assign(
        owner, dataset, type=type, remove=remove, dry_run=dry_run
    )
    print_json(report) if json else print_words(report)


@app.command(
    "import",
    epilog="Examples:\n\nlumos owner import .github/CODEOWNERS\n\n"
    "lumos owner import target/manifest.json --dry-run",
)
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A CODEOWNERS file or a dbt manifest.json.", show_default=False
        ),
    ],
    root: Annotated[
        Path | None,
        typer.Option(help="What paths of CODEOWNERS hang on. Default: the file's repository."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="What the file is known by, so that it takes back only its own words. Default: "
            "its path from the store's folder, or its repository and path.",
            show_default=False,
        ),
    ] = None,
    type: _Type = "TECHNICAL_OWNER",
    dry_run: DryRun = False,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Take owners over from CODEOWNERS or from a dbt project's meta, owner and groups."""
    report = lumos_of(config, store).people.owners.load(
        file, root=root, name=name, type=type, dry_run=dry_run
    )
    if json:
        print_json(report)
        return
    print_words(report)
    for name in report.unmatched[:_MOST]:
        say(f"{name}: no dataset, or several, of that name.", err=True)


def _print_list(report: "OwnerListReport", *, unowned: bool) -> None:
    from lumos.cli.screen import aligned, plural

    if report.owned:
        rows = [
            (
                each.name,
                ", ".join(f"{owner['name']} ({owner['type']})" for owner in each.owners) or "-",
                each.urn,
            )
            for each in report.owned[:_MOST]
        ]
        for line in aligned(("DATASET", "OWNERS", "URN"), rows):
            say(line)
        if (more := len(report.owned) - _MOST) > 0:
            say(f"... and {plural(more, 'more dataset')}; --json lists them.")
    elif not unowned:
        people = [
            (
                each.name,
                each.kind,
                each.email or "",
                ", ".join(f"{count:,} {type}" for type, count in each.datasets.items())
                or "nothing",
            )
            for each in report.owners
        ]
        for line in aligned(("OWNER", "KIND", "E-MAIL", "OWNS"), people):
            say(line)
    say(
        f"{report.unowned:,} of {plural(report.datasets, 'dataset')} without an owner "
        f"({report.unowned_share:.0%})."
    )
