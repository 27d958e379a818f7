"""lumos lineage show and lumos lineage path"""

from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import typer

from lumos.cli.options import (
    CommonOptions,
    OutputFile,
    argument,
    choose_format,
    limit_option,
    print_json,
    with_options,
    write,
)
from lumos.cli.screen import stdout
from lumos.cli.text import Names, escape_line, print_remark
from lumos.errors import MisuseError
from lumos.rendering.text import plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text
    from rich.tree import Tree

    from lumos.lineage.drawing.picture import Arrow, Box, Picture, PictureStep
    from lumos.lineage.view import ColumnPathStep, PathReport, Side, ViewOptions

_MAX_TEXT_LENGTH: Final = 90


_FORMATS: Final = {
    ".json": "json",
    ".dot": "dot",
    ".gv": "dot",
    ".mmd": "mermaid",
    ".md": "mermaid",
    ".ndjson": "openlineage",
    ".jsonl": "openlineage",
    ".html": "html",
    ".htm": "html",
}

Direct = Annotated[
    bool,
    typer.Option("--direct", help="Follow only values, not columns used in joins and filters."),
]


app = typer.Typer()


@app.command(
    epilog="Examples:\n\nlumos lineage show orders\n\n"
    "lumos lineage show orders.customer_id --downstream --depth 3"
)
@with_options
def show(
    options: CommonOptions,
    dataset: Annotated[
        str,
        argument(
            "DATASET[.COLUMN]", "A dataset by URN, name or end of path, or one of its columns."
        ),
    ],
    column: Annotated[
        str | None, typer.Option("--column", metavar="COLUMN", help="Follow only this column.")
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Show only upstream lineage.")
    ] = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Show only downstream lineage.")
    ] = False,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=1, metavar="N", help="Follow at most this many steps."),
    ] = None,
    limit: Annotated[int, limit_option("Show at most this many datasets.")] = 500,
    direct: Direct = False,
    format: Annotated[
        Literal["tree", "json", "dot", "mermaid", "openlineage", "html"] | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="tree, json, dot, mermaid, openlineage or html. Default: tree, or by the "
            "extension of --output.",
        ),
    ] = None,
    output: OutputFile = None,
) -> None:
    """Show the upstream and downstream lineage of a dataset or a column.

    The page that --output map.html writes is self-contained; open it in a browser.
    """
    chosen_format = choose_format(format, output, _FORMATS, default="tree", json=options.json)
    side: Side = "both" if upstream == downstream else "upstream" if upstream else "downstream"
    lineage = options.lumos.lineage.view
    if column is None:
        dataset, column = lineage.split(dataset)
    view: ViewOptions = {
        "column": column, "side": side, "depth": depth, "limit": limit, "direct": direct
    }  # fmt: skip
    if chosen_format == "tree":
        if output is not None:
            raise MisuseError("A tree cannot be written to a file. Choose another --format.")
        _print_tree(lineage.picture(dataset, **view), side, options.names)
    elif chosen_format == "json" and output is None:
        print_json(lineage.show(dataset, **view))
    else:
        write(lineage.drawn(dataset, chosen_format, **view), output)


@app.command(epilog="Example: lumos lineage path raw/orders.amount revenue.total")
@with_options
def path(
    options: CommonOptions,
    ends: Annotated[
        list[str],
        argument("DATASET[.COLUMN]...", "A column or dataset, and another one downstream of it."),
    ],
    limit: Annotated[int, limit_option("Show at most this many paths.")] = 10,
    direct: Direct = False,
) -> None:
    """Show the paths from one column or dataset to another downstream, shortest first.

    Exits with 3 if there is none.
    """
    lineage = options.lumos.lineage.view
    if len(ends) == 4:
        # Earlier versions took datasets and columns as separate arguments.
        start: tuple[str, str | None] = ends[0], ends[1]
        end: tuple[str, str | None] = ends[2], ends[3]
    elif len(ends) == 2:
        start, end = (lineage.split(each) for each in ends)
    else:
        raise MisuseError(
            "Name two columns or two datasets: lumos lineage path orders.amount revenue.total"
        )
    report = lineage.paths(start, end, limit=limit, direct=direct)
    options.print(report, _print_paths, options.names)
    if not report.paths:
        raise typer.Exit(3)


def _print_tree(picture: "Picture", side: str, names: Names) -> None:
    console = stdout()
    boxes = {box.urn: box for box in picture.boxes}
    names.look_up(boxes)
    title = names(picture.urn)
    heading = title if picture.column is None else f"{title}  {picture.column}"
    console.print(heading, style="bold", end="")
    details = " · ".join(_box_text(boxes[picture.urn]))
    console.print(f"  {details}" if details else "", style="dim")
    if not picture.arrows and side == "both":
        if picture.column is None:
            console.print("No lineage is known. Record some with: lumos lineage ingest PATH")
        else:
            # Other columns or fields of the dataset may have lineage.
            console.print(
                f"No lineage of {picture.column} is known. "
                f"See that of the dataset with: lumos lineage show {quote(title)}",
                markup=False,
            )
        return
    for direction in ("upstream", "downstream"):
        if side in ("both", direction):
            tree = _Tree(picture, boxes, direction, names).draw()
            # Wrap lines on a terminal, which would cut off wider lines of a tree.
            console.print(tree, soft_wrap=not console.is_terminal)
    if picture.cycles:
        console.print(f"{plural(len(picture.cycles), 'cycle')}:", style="yellow")
        for cycle in picture.cycles:
            console.print(f"  {' -> '.join(map(names, (*cycle, cycle[0])))}")
    if picture.truncated:
        reached = plural(picture.total, "dataset")
        print_remark(f"{reached} reached, more not shown; raise --limit or --depth to see them")


class _TreeStep(NamedTuple):
    """A step of a tree: its end (`urn`, `column`), details to print, and whether values flow."""

    urn: str
    column: str | None
    details: tuple[str, ...]
    is_direct: bool = True
    origins: str = ""


class _Tree:
    """A tree of everything upstream or downstream; each dataset or column is expanded once."""

    def __init__(
        self, picture: "Picture", boxes: "dict[str, Box]", direction: str, names: Names
    ) -> None:
        self._names = names
        self._of_column = picture.column is not None
        self._start = (picture.urn, picture.column)
        self._boxes = boxes
        self._direction = direction
        self._drawn: set[tuple[str, str | None, bool]] = set()
        self._steps_by_node: dict[tuple[str, str | None], list[_TreeStep]] = {}
        is_up = direction == "upstream"
        for step in picture.steps:
            ends = (step.upstream, step.upstream_column), (step.downstream, step.downstream_column)
            near, far = ends[::-1] if is_up else ends
            tree_step = _TreeStep(*far, tuple(_step_text(step)), bool(step.columns))
            self._steps_by_node.setdefault(near, []).append(tree_step)
        for arrow in () if self._of_column else picture.arrows:
            urns = arrow.upstream, arrow.downstream
            before, after = urns[::-1] if is_up else urns
            tree_step = _TreeStep(
                after, None, tuple(_arrow_text(arrow)), origins=", ".join(arrow.origins)
            )
            self._steps_by_node.setdefault((before, None), []).append(tree_step)

    def draw(self) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(self._direction, style="bold"), guide_style="dim")
        self._drawn.add((*self._start, True))
        # A stack instead of recursion: a chain may be longer than Python's recursion limit.
        stack = [(tree, self._start, frozenset({self._start}), True)]
        while stack:
            branch, node, ancestors, was_direct = stack.pop()
            for step in self._steps_by_node.get(node, ()):
                end = (step.urn, step.column)
                is_direct = step.is_direct and was_direct
                line = self._line(step, is_direct=is_direct)
                is_drawn = bool({(*end, True), (*end, is_direct)} & self._drawn)
                if end in ancestors:
                    line.append("  (cycle)", style="yellow")
                elif is_drawn:
                    line.append("  (see above)", style="dim")
                subtree = branch.add(line)
                if not is_drawn and end not in ancestors:
                    self._drawn.add((*end, is_direct))
                    stack.append((subtree, end, ancestors | {end}, is_direct))
        if not self._steps_by_node.get(self._start):
            tree.add(Text("nothing", style="dim"))
        return tree

    def _line(self, step: _TreeStep, *, is_direct: bool) -> "Text":
        from rich.text import Text

        box = self._boxes[step.urn]
        line = Text(escape_line(self._names(step.urn)))
        if step.column is not None:
            line.append(f"  {escape_line(step.column)}", style="bold")
        elif self._of_column:
            line.append("  (all columns)")
        details = [*step.details]
        details += [] if is_direct else ["indirect"]
        details += _box_text(box)
        details += [step.origins] if step.origins else []
        line.append(f"  {' · '.join(details)}", style="dim")
        return line


def _box_text(box: "Box") -> "Iterator[str]":
    if box.owners:
        yield f"owner {', '.join(box.owners)}"
    if box.url:
        yield box.url
    if box.state != "live" and not box.kind:
        yield {"": "not scanned", "split": "split"}.get(box.state, "gone")


def _step_text(step: "PictureStep") -> "Iterator[str]":
    if step.columns:
        first = step.columns[0]
        text = _format_detail(first.transformation or "", first.file, first.line)
    elif step.uses:
        use = step.uses[0]
        text = _format_detail(f"{use.usage}: {use.expression or use.upstream}", use.file, use.line)
    else:
        return
    if text:
        yield text


def _arrow_text(arrow: "Arrow") -> "Iterator[str]":
    yield arrow.type
    columns = [plural(len(arrow.columns), "column")] if arrow.columns else []
    usages = dict.fromkeys(use.usage.value for use in arrow.uses)
    if columns or usages:
        yield ", ".join((*columns, *usages))


def _format_detail(text: str, file: str | None, line: int | None) -> str:
    position = "" if file is None else f"{file}:{line}" if line else file
    return ", ".join(filter(None, (shorten(text, _MAX_TEXT_LENGTH), position)))


def _print_paths(report: "PathReport", names: Names) -> None:
    console = stdout()
    names.look_up(step.downstream for steps in report.paths for step in steps)
    ends = (
        f"{names(report.upstream)} {report.upstream_column or ''}".rstrip(),
        f"{names(report.downstream)} {report.downstream_column or ''}".rstrip(),
    )
    of_datasets = report.upstream_column is None
    if not report.paths:
        console.print(f"No path is known from {ends[0]} to {ends[1]}.")
        if report.is_reversed:
            first, last = (quote(names(urn)) for urn in (report.downstream, report.upstream))
            console.print(f"Data flows the other way: lumos lineage path {first} {last}")
        return
    if not all(report.paths):
        console.print(f"The path starts and ends at {ends[0]}; there is no step between.")
        return
    more = " or more" if report.truncated else ""
    console.print(f"{plural(len(report.paths), 'path')}{more} from {ends[0]} to {ends[1]}")
    for number, steps in enumerate(report.paths, start=1):
        console.print()
        console.print(f"{number}. {plural(len(steps), 'step')}", style="bold")
        name = names(steps[0].upstream)
        column = steps[0].upstream_column
        console.print(f"   {name if of_datasets else _node_text(name, column)}")
        for step in steps:
            name = names(step.downstream)
            console.print(
                f"   -> {name if of_datasets else _node_text(name, step.downstream_column)}"
            )
            details = ", ".join(step.origins) if of_datasets else _step_details(step)
            console.print(f"      {details}", style="dim")


def _node_text(name: str, column: str | None) -> str:
    return f"{name}  {column}" if column is not None else f"{name}  (all columns)"


def _step_details(step: "ColumnPathStep") -> str:
    for mapping in step.columns:
        text = mapping.transformation or (mapping.derivation or "value").lower()
        return _format_detail(text, mapping.file, mapping.line) + f" · {', '.join(step.origins)}"
    for use in step.uses:
        text = f"used in {use.usage}: {use.expression or use.upstream}"
        return _format_detail(text, use.file, use.line) + f" · {', '.join(step.origins)}"
    return ", ".join(step.origins)
