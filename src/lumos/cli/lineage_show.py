"""lumos lineage show and lumos lineage path"""

import enum
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from lumos.cli.options import AsJson, ConfigFile, StorePath, lumos_of, print_json
from lumos.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text
    from rich.tree import Tree

    from lumos.engine.lineage.showing import PathReport, PathStep, Side
    from lumos.lineage.drawing.picture import Arrow, Box, Picture

_LONGEST: Final = 90


class Form(enum.StrEnum):
    """How lineage is shown."""

    TREE = "tree"
    JSON = "json"
    DOT = "dot"
    MERMAID = "mermaid"
    OPENLINEAGE = "openlineage"
    HTML = "html"


_BY_ENDING: Final = {
    ".json": Form.JSON,
    ".dot": Form.DOT,
    ".gv": Form.DOT,
    ".mmd": Form.MERMAID,
    ".md": Form.MERMAID,
    ".ndjson": Form.OPENLINEAGE,
    ".jsonl": Form.OPENLINEAGE,
    ".html": Form.HTML,
    ".htm": Form.HTML,
}

Dataset = Annotated[
    str,
    typer.Argument(
        metavar="URN", help="A dataset by URN, name or end of path.", show_default=False
    ),
]


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the group."""
    app.command(
        epilog="Example: lumos lineage show orders --column customer_id --downstream --depth 3"
    )(show)
    app.command(epilog="Example: lumos lineage path raw.orders amount revenue total")(path)


def show(
    urn: Dataset,
    column: Annotated[
        str | None, typer.Option("--column", metavar="C", help="Follow this column alone.")
    ] = None,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Only what it is made from.")
    ] = False,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Only what is made from it.")
    ] = False,
    depth: Annotated[
        int | None,
        typer.Option("--depth", min=1, metavar="N", help="At most so many steps away."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="At most so many datasets.")
    ] = 500,
    format: Annotated[
        Form | None,
        typer.Option("--format", help="Default: a tree, or what the ending of --output says."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to a file, such as map.html."),
    ] = None,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Show what a dataset or a column is made from, and what is made from it.

    A page written with --output map.html is self-contained: open it in a browser to pan, zoom and
    click.
    """
    form = _form(format, output, json=json)
    side: Side = "both" if upstream == downstream else "upstream" if upstream else "downstream"
    lineage = lumos_of(config, store).lineage.view
    if form is Form.TREE:
        if output is not None:
            raise MisuseError("A tree is for the screen. Choose another --format for a file.")
        _print_tree(lineage.picture(urn, column=column, side=side, depth=depth, limit=limit), side)
    elif form is Form.JSON and output is None:
        print_json(lineage.show(urn, column=column, side=side, depth=depth, limit=limit))
    else:
        drawn = lineage.drawn(urn, form.value, column=column, side=side, depth=depth, limit=limit)
        _write(drawn, output)


def path(
    urn: Dataset,
    column: Annotated[str, typer.Argument(metavar="COLUMN", show_default=False)],
    to: Annotated[
        str, typer.Argument(metavar="URN", help="A dataset downstream.", show_default=False)
    ],
    to_column: Annotated[str, typer.Argument(metavar="COLUMN", show_default=False)],
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="At most so many ways.")
    ] = 10,
    config: ConfigFile = None,
    store: StorePath = None,
    json: AsJson = False,
) -> None:
    """Show the ways from one column down the stream to another, shortest first.

    Exits with 3 where there is none.
    """
    report = lumos_of(config, store).lineage.view.paths((urn, column), (to, to_column), limit=limit)
    if json:
        print_json(report)
    else:
        _print_paths(report)
    if not report.paths:
        raise typer.Exit(3)


def _form(format: Form | None, output: Path | None, *, json: bool) -> Form:
    if json:
        if format not in (None, Form.JSON):
            raise MisuseError(f"--json and --format {format} contradict each other. Give one.")
        return Form.JSON
    if format is not None:
        return format
    if output is None:
        return Form.TREE
    form = _BY_ENDING.get(output.suffix.lower())
    if form is None:
        endings = ", ".join(_BY_ENDING)
        raise MisuseError(f"{output} does not say its format. End it with {endings}.")
    return form


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    from lumos.cli.screen import stderr

    stderr().print(f"[ok] {output} is written.")


def _print_tree(picture: "Picture", side: str) -> None:
    from lumos.cli.screen import plural, stderr, stdout

    console = stdout()
    boxes = {box.urn: box for box in picture.boxes}
    title = picture.urn if picture.column is None else f"{picture.urn}  {picture.column}"
    console.print(title, style="bold")
    if not picture.arrows:
        console.print("No lineage is known. 'lumos lineage ingest PATH' reads SQL, dbt and others.")
        return
    for direction in ("upstream", "downstream"):
        if side in ("both", direction):
            console.print(_Tree(picture, boxes, direction).drawn())
    if picture.cycles:
        console.print(f"{plural(len(picture.cycles), 'cycle')}:", style="yellow")
        for cycle in picture.cycles:
            console.print(f"  {' -> '.join((*cycle, cycle[0]))}")
    if picture.truncated:
        remark = f"{plural(picture.total, 'dataset')} within reach; more lie beyond what is shown."
        stderr().print(remark, style="dim")


class _Tree:
    """What lies up or down the stream, each dataset or column told in full once."""

    def __init__(self, picture: "Picture", boxes: "dict[str, Box]", direction: str) -> None:
        self._picture = picture
        self._boxes = boxes
        self._direction = direction
        self._told: set[tuple[str, str | None]] = set()
        self._arrows: dict[str, list[Arrow]] = {}
        for arrow in picture.arrows:
            near = arrow.downstream if direction == "upstream" else arrow.upstream
            self._arrows.setdefault(near, []).append(arrow)

    def drawn(self) -> "Tree":
        from rich.text import Text
        from rich.tree import Tree

        tree = Tree(Text(self._direction, style="bold"), guide_style="dim")
        start = (self._picture.urn, self._picture.column)
        self._told.add(start)
        # Without recursion: a chain may be longer than Python's stack.
        waiting = [(tree, start, frozenset({start}))]
        is_empty = True
        while waiting:
            branch, node, above = waiting.pop()
            for arrow, end, detail in self._onward(node):
                is_empty = False
                line = self._line(arrow, end, detail)
                if end in above:
                    line.append("  (cycle)", style="yellow")
                elif end in self._told:
                    line.append("  (see above)", style="dim")
                grown = branch.add(line)
                if end not in self._told:
                    self._told.add(end)
                    waiting.append((grown, end, above | {end}))
        if is_empty:
            tree.add(Text("nothing", style="dim"))
        return tree

    def _onward(
        self, node: tuple[str, str | None]
    ) -> "Iterable[tuple[Arrow, tuple[str, str | None], str]]":
        urn, column = node
        is_up = self._direction == "upstream"
        for arrow in self._arrows.get(urn, ()):
            far = arrow.upstream if is_up else arrow.downstream
            if self._picture.column is None:
                yield arrow, (far, None), _columns_in_words(arrow)
                continue
            for mapping in arrow.columns:
                near, other = (mapping.downstream, mapping.upstream)
                near, other = (near, other) if is_up else (other, near)
                if near == column:
                    said = mapping.transformation or ""
                    yield arrow, (far, other), _detail(said, mapping.file, mapping.line)
            for use in arrow.uses:
                near_use = use.downstream if is_up else use.upstream
                if near_use == column or (is_up and near_use is None and column is not None):
                    other_use = use.upstream if is_up else use.downstream
                    said = f"{use.usage}: {use.expression or use.upstream}"
                    yield arrow, (far, other_use), _detail(said, use.file, use.line)

    def _line(self, arrow: "Arrow", end: tuple[str, str | None], detail: str) -> "Text":
        from rich.text import Text

        urn, column = end
        box = self._boxes[urn]
        line = Text(urn)
        if column is not None:
            line.append(f"  {column}", style="bold")
        facts: list[str] = [] if self._picture.column else [arrow.type]
        facts += [detail] if detail else []
        facts += [f"owner {', '.join(box.owners)}"] if box.owners else []
        if not box.state:
            facts.append("not scanned")
        elif box.state != "live":
            facts.append("gone")
        if self._picture.column is None:
            facts.append(", ".join(arrow.origins))
        line.append(f"  {' · '.join(facts)}", style="dim")
        return line


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


def _print_paths(report: "PathReport") -> None:
    from lumos.cli.screen import plural, stdout

    console = stdout()
    ends = (
        f"{report.upstream} {report.upstream_column}",
        f"{report.downstream} {report.downstream_column}",
    )
    if not report.paths:
        console.print(f"No way is known from {ends[0]} to {ends[1]}.")
        return
    more = " or more" if report.truncated else ""
    console.print(f"{plural(len(report.paths), 'way')}{more} from {ends[0]} to {ends[1]}")
    for number, steps in enumerate(report.paths, start=1):
        console.print(f"\n{number}. {plural(len(steps), 'step')}", style="bold")
        console.print(f"   {_node(steps[0].upstream, steps[0].upstream_column)}")
        for step in steps:
            console.print(f"   -> {_node(step.downstream, step.downstream_column)}")
            console.print(f"      {_how(step)}", style="dim")


def _node(urn: str, column: str | None) -> str:
    return f"{urn}  {column}" if column is not None else f"{urn}  (all columns)"


def _how(step: "PathStep") -> str:
    for mapping in step.columns:
        said = mapping.transformation or (mapping.derivation or "value").lower()
        return _detail(said, mapping.file, mapping.line) + f" · {', '.join(step.origins)}"
    for use in step.uses:
        said = f"only decides, {use.usage}: {use.expression or use.upstream}"
        return _detail(said, use.file, use.line) + f" · {', '.join(step.origins)}"
    return ", ".join(step.origins)
