"""lumos lineage show and lumos lineage path"""

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from lumos.cli.forms import by_ending, write
from lumos.cli.lines import one_line, remark
from lumos.cli.names import Names
from lumos.cli.options import (
    CommonOptions,
    OutputFile,
    common_options,
    print_json,
)
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text
    from rich.tree import Tree

    from lumos.lineage.drawing.picture import Arrow, Box, Picture, PictureStep
    from lumos.lineage.view import ColumnPathStep, LineageViewer, PathReport, Side, ViewOptions

_LONGEST: Final = 90


class LineageForm(enum.StrEnum):
    """How lineage is shown."""

    TREE = "tree"
    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"
    OPENLINEAGE = "openlineage"
    HTML = "html"


_BY_ENDING: Final = {
    ".json": LineageForm.JSON,
    ".dot": LineageForm.DOT,
    ".gv": LineageForm.DOT,
    ".mmd": LineageForm.MERMAID,
    ".md": LineageForm.MERMAID,
    ".ndjson": LineageForm.OPENLINEAGE,
    ".jsonl": LineageForm.OPENLINEAGE,
    ".html": LineageForm.HTML,
    ".htm": LineageForm.HTML,
}

Direct = Annotated[
    bool,
    typer.Option("--direct", help="Follow values only, not joins and filters."),
]


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the group."""
    app.command(
        epilog="Examples:\n\nlumos lineage show orders\n\n"
        "lumos lineage show orders.customer_id --downstream --depth 3"
    )(show)
    app.command(epilog="Example: lumos lineage path raw/orders.amount revenue.total")(path)


@common_options
def show(
    options: CommonOptions,
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET[.COLUMN]",
            help="A dataset by URN, name or end of path, or one of its columns.",
            show_default=False,
        ),
    ],
    column: Annotated[
        str | None,
        typer.Option("--column", metavar="COLUMN", help="Follow only this column."),
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Only what it is made from.")
    ] = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Only what is made from it.")
    ] = False,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=1, metavar="N", help="Follow at most this many steps."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many datasets.")
    ] = 500,
    direct: Direct = False,
    format: Annotated[
        LineageForm | None,
        typer.Option("--format", help="Default: tree, or by the ending of --output."),
    ] = None,
    output: OutputFile = None,
) -> None:
    """Show what a dataset or a column is made from, and what is made from it.

    The page that --output map.html writes is self-contained; open it in a browser.
    """
    form = _form(format, output, json=options.json)
    side: Side = "both" if upstream == downstream else "upstream" if upstream else "downstream"
    lumos = options.lumos
    lineage = lumos.lineage.view
    if column is None:
        dataset, column = lineage.split(dataset)
    view: ViewOptions = {
        "column": column, "side": side, "depth": depth, "limit": limit, "direct": direct
    }  # fmt: skip
    if form is LineageForm.TREE:
        if output is not None:
            raise MisuseError("A tree cannot be written to a file. Choose another --format.")
        _print_tree(lineage.picture(dataset, **view), side, Names(lumos))
    elif form is LineageForm.JSON and output is None:
        print_json(lineage.show(dataset, **view))
    else:
        write(lineage.drawn(dataset, form.value, **view), output)


@common_options
def path(
    options: CommonOptions,
    ends: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET.COLUMN DATASET.COLUMN",
            help="A column, and one downstream of it.",
            show_default=False,
        ),
    ],
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="Show at most this many paths.")
    ] = 10,
    direct: Direct = False,
) -> None:
    """Show the paths from one column to another downstream, shortest first.

    Exits with 3 if there is none.
    """
    lumos = options.lumos
    lineage = lumos.lineage.view
    if len(ends) == 4:
        # Datasets and columns apart, as in earlier versions.
        start, goal = (ends[0], ends[1]), (ends[2], ends[3])
    elif len(ends) == 2:
        start, goal = (_end(lineage, each) for each in ends)
    else:
        raise MisuseError("Name two columns: lumos lineage path DATASET.COLUMN DATASET.COLUMN")
    report = lineage.paths(start, goal, limit=limit, direct=direct)
    if options.json:
        print_json(report)
    else:
        _print_paths(report, Names(lumos))
    if not report.paths:
        raise typer.Exit(3)


def _end(lineage: "LineageViewer", text: str) -> tuple[str, str]:
    dataset, column = lineage.split(text)
    if column is None:
        raise MisuseError(f"Name a column of {text}, such as: {text}.COLUMN")
    return dataset, column


def _form(format: LineageForm | None, output: Path | None, *, json: bool) -> LineageForm:
    if json:
        if format not in (None, LineageForm.JSON):
            raise MisuseError(f"--json and --format {format} contradict each other. Give one.")
        return LineageForm.JSON
    if format is not None:
        return format
    if output is None:
        return LineageForm.TREE
    return by_ending(output, _BY_ENDING)


def _print_tree(picture: "Picture", side: str, names: Names) -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    boxes = {box.urn: box for box in picture.boxes}
    names.learn(boxes)
    title = names(picture.urn)
    console.print(title if picture.column is None else f"{title}  {picture.column}", style="bold")
    if not picture.arrows and side == "both":
        console.print("No lineage is known. Record some with: lumos lineage ingest PATH")
        return
    for direction in ("upstream", "downstream"):
        if side in ("both", direction):
            drawn = _Tree(picture, boxes, direction, names).drawn()
            # A tree that is not wrapped loses what is wider than the terminal.
            console.print(drawn, soft_wrap=not console.is_terminal)
    if picture.cycles:
        console.print(f"{plural(len(picture.cycles), 'cycle')}:", style="yellow")
        for cycle in picture.cycles:
            console.print(f"  {' -> '.join(map(names, (*cycle, cycle[0])))}")
    if picture.truncated:
        reached = plural(picture.total, "dataset")
        remark(f"{reached} reached, more not shown; raise --limit or --depth to see them")


class _Way(NamedTuple):
    """A step of a tree: where it leads, what is known of it, and whether as a value."""

    urn: str
    column: str | None
    facts: tuple[str, ...]
    is_direct: bool = True
    origins: str = ""


class _Tree:
    """Everything upstream or downstream, each dataset or column in full once."""

    def __init__(
        self, picture: "Picture", boxes: "dict[str, Box]", direction: str, names: Names
    ) -> None:
        self._names = names
        self._of_column = picture.column is not None
        self._start = (picture.urn, picture.column)
        self._boxes = boxes
        self._direction = direction
        self._told: set[tuple[str, str | None, bool]] = set()
        self._ways: dict[tuple[str, str | None], list[_Way]] = {}
        is_up = direction == "upstream"
        for step in picture.steps:
            ends = (step.upstream, step.upstream_column), (step.downstream, step.downstream_column)
            near, far = ends[::-1] if is_up else ends
            way = _Way(*far, tuple(_step_in_words(step)), bool(step.columns))
            self._ways.setdefault(near, []).append(way)
        for arrow in () if self._of_column else picture.arrows:
            urns = arrow.upstream, arrow.downstream
            before, after = urns[::-1] if is_up else urns
            way = _Way(after, None, tuple(_arrow_in_words(arrow)), origins=", ".join(arrow.origins))
            self._ways.setdefault((before, None), []).append(way)

    def drawn(self) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(self._direction, style="bold"), guide_style="dim")
        self._told.add((*self._start, True))
        # Without recursion: a chain may be longer than Python's stack.
        waiting = [(tree, self._start, frozenset({self._start}), True)]
        while waiting:
            branch, node, above, was_direct = waiting.pop()
            for way in self._ways.get(node, ()):
                end = (way.urn, way.column)
                is_direct = way.is_direct and was_direct
                line = self._line(way, is_direct=is_direct)
                is_told = bool({(*end, True), (*end, is_direct)} & self._told)
                if end in above:
                    line.append("  (cycle)", style="yellow")
                elif is_told:
                    line.append("  (see above)", style="dim")
                grown = branch.add(line)
                if not is_told and end not in above:
                    self._told.add((*end, is_direct))
                    waiting.append((grown, end, above | {end}, is_direct))
        if not self._ways.get(self._start):
            tree.add(Text("nothing", style="dim"))
        return tree

    def _line(self, way: _Way, *, is_direct: bool) -> "Text":
        from rich.text import Text

        box = self._boxes[way.urn]
        line = Text(one_line(self._names(way.urn)))
        if way.column is not None:
            line.append(f"  {one_line(way.column)}", style="bold")
        elif self._of_column:
            line.append("  (all columns)")
        facts = [*way.facts]
        facts += [] if is_direct else ["indirect"]
        facts += [f"owner {', '.join(box.owners)}"] if box.owners else []
        if not box.state:
            facts.append("not scanned")
        elif box.state != "live":
            facts.append("split" if box.state == "split" else "gone")
        facts += [way.origins] if way.origins else []
        line.append(f"  {' · '.join(facts)}", style="dim")
        return line


def _step_in_words(step: "PictureStep") -> "Iterator[str]":
    if step.columns:
        first = step.columns[0]
        text = _detail(first.transformation or "", first.file, first.line)
    elif step.uses:
        use = step.uses[0]
        text = _detail(f"{use.usage}: {use.expression or use.upstream}", use.file, use.line)
    else:
        return
    if text:
        yield text


def _arrow_in_words(arrow: "Arrow") -> "Iterator[str]":
    yield arrow.type
    if words := _columns_in_words(arrow):
        yield words


def _columns_in_words(arrow: "Arrow") -> str:
    from lumos.cli.screen import plural

    kinds = dict.fromkeys(use.usage.value for use in arrow.uses)
    parts = [plural(len(arrow.columns), "column")] if arrow.columns else []
    return ", ".join([*parts, *kinds])


def _detail(text: str, file: str | None, line: int | None) -> str:
    text = " ".join(text.split())
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    place = "" if file is None else f"{file}:{line}" if line else file
    return ", ".join(part for part in (text, place) if part)


def _print_paths(report: "PathReport", names: Names) -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    names.learn(step.downstream for steps in report.paths for step in steps)
    ends = (
        f"{names(report.upstream)} {report.upstream_column}",
        f"{names(report.downstream)} {report.downstream_column}",
    )
    if not report.paths:
        console.print(f"No path is known from {ends[0]} to {ends[1]}.")
        return
    if not all(report.paths):
        console.print(f"The path starts and ends at {ends[0]}; there is no step between.")
        return
    more = " or more" if report.truncated else ""
    console.print(f"{plural(len(report.paths), 'path')}{more} from {ends[0]} to {ends[1]}")
    for number, steps in enumerate(report.paths, start=1):
        console.print()
        console.print(f"{number}. {plural(len(steps), 'step')}", style="bold")
        console.print(f"   {_node(names(steps[0].upstream), steps[0].upstream_column)}")
        for step in steps:
            console.print(f"   -> {_node(names(step.downstream), step.downstream_column)}")
            console.print(f"      {_how(step)}", style="dim")


def _node(name: str, column: str | None) -> str:
    return f"{name}  {column}" if column is not None else f"{name}  (all columns)"


def _how(step: "ColumnPathStep") -> str:
    for mapping in step.columns:
        said = mapping.transformation or (mapping.derivation or "value").lower()
        return _detail(said, mapping.file, mapping.line) + f" · {', '.join(step.origins)}"
    for use in step.uses:
        said = f"used in {use.usage}: {use.expression or use.upstream}"
        return _detail(said, use.file, use.line) + f" · {', '.join(step.origins)}"
    return ", ".join(step.origins)
