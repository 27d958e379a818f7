"""Jinja templates as plain SQL, parsed by jinja2 and never executed.

Line numbers do not change. `ref` and `source` become the tables that they name. As in a first run,
incremental parts are left out; other conditions take their first branch, and loops run once. No
template code runs and nothing is repeated, so a malicious template can neither loop nor grow.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.parser import Parser

# Placeholder for values that the dbt project defines.
UNKNOWN_NAME: Final = "__jinja__"

# dbt templates are a few kilobytes; jinja2 may take seconds for a template of this length.
_MAX_LENGTH: Final = 256 * 1024
_MAX_GAPS: Final = 1000
_SILENT_CALLS: Final = frozenset(("config", "log", "print", "exceptions.warn", "return"))
_TAG_NAME: Final = re.compile(r"\{%[-+]?\s*(\w+)")
_TAG_START: Final = re.compile(r"\{[{%#]")
_TAG_END: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}


class TemplateGap(NamedTuple):
    """An expression whose value is unknown; a remark means that no lineage is lost by it."""

    line: int
    text: str
    is_remark: bool = False


class RenderedTemplate(NamedTuple):
    """Plain SQL, and the expressions whose values are unknown."""

    text: str
    gaps: tuple[TemplateGap, ...]


def is_template(text: str) -> bool:
    """Whether a text contains Jinja."""
    return "{{" in text or "{%" in text or "{#" in text


def render_template(text: str, *, this: str | None = None) -> RenderedTemplate:
    """The SQL of a template; `this` is the table that it creates, if known."""
    # Imported late: few SQL files are templates.
    from jinja2 import TemplateSyntaxError

    if len(text) <= _MAX_LENGTH:
        try:
            return _Renderer(text, this).render()
        except (TemplateSyntaxError, RecursionError, ValueError):
            # Not Jinja, such as the array '{{1,2},{3,4}}', nested too deeply, or a huge number.
            pass
    return _blank_tags(text)


class _Renderer:
    """Writes the syntax tree of one template as SQL."""

    def __init__(self, text: str, this: str | None) -> None:
        from jinja2 import Environment
        from jinja2.ext import Extension

        tag_names = frozenset(_TAG_NAME.findall(text))

        class OtherTags(Extension):
            """Accepts the tags of dbt and others; their blocks keep their content."""

            tags = set(tag_names)  # noqa: RUF012

            def parse(self, parser: "Parser") -> "list[nodes.Node]":
                name = next(parser.stream).value
                while parser.stream.current.type != "block_end":
                    next(parser.stream)
                if f"end{name}" not in tag_names:
                    return []
                return parser.parse_statements((f"name:end{name}",), drop_needle=True)

        environment = Environment(keep_trailing_newline=True, extensions=[OtherTags])
        self._body = environment.parse(text).body
        # The syntax tree has no end positions: the lexer gives the texts of the expressions.
        self._expressions = _expressions(environment.lex(text))
        self._this = this
        self._output: list[str] = []
        self._line = 1
        self._gaps: list[TemplateGap] = []

    def render(self) -> RenderedTemplate:
        self._visit(self._body, is_used=True)
        return RenderedTemplate("".join(self._output), tuple(self._gaps))

    def _visit(self, body: "Iterable[nodes.Node]", *, is_used: bool) -> None:
        """Write some nodes; unused ones are visited as well, to consume their expressions."""
        from jinja2 import nodes

        for node in body:
            if isinstance(node, nodes.Output):
                for part in node.nodes:
                    if not isinstance(part, nodes.TemplateData):
                        self._expression(part, is_used=is_used)
                    elif is_used:
                        self._write(part.data, part.lineno)
            elif isinstance(node, nodes.If):
                takes_first = not _is_incremental(node.test)
                self._visit(node.body, is_used=is_used and takes_first)
                takes_next = is_used and not takes_first
                for branch in node.elif_:
                    self._visit(branch.body, is_used=takes_next)
                    takes_next = False
                self._visit(node.else_, is_used=takes_next)
            elif isinstance(node, nodes.For):
                self._visit(node.body, is_used=is_used)
                self._visit(node.else_, is_used=False)
            elif isinstance(node, nodes.Macro | nodes.CallBlock | nodes.AssignBlock):
                self._visit(node.body, is_used=False)
            elif isinstance(
                node,
                nodes.FilterBlock | nodes.Block | nodes.With | nodes.Scope
                | nodes.ScopedEvalContextModifier,
            ):  # fmt: skip
                self._visit(node.body, is_used=is_used)

    def _expression(self, node: "nodes.Expr", *, is_used: bool) -> None:
        line, source = next(self._expressions)
        if not is_used:
            return
        text = _known_value(node, self._this)
        if text is None:
            self._gaps.append(TemplateGap(line, source))
        self._write(UNKNOWN_NAME if text is None else text, line)

    def _write(self, text: str, line: int) -> None:
        self._output.append("\n" * (line - self._line) + text)
        self._line = max(line, self._line) + text.count("\n")


def _expressions(tokens: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, str]]:
    """The line and the text of every {{ expression }}, and of what {% print %} writes."""
    line, pieces = 0, list[str]()
    for number, kind, value in tokens:
        if kind in ("variable_begin", "block_begin"):
            line, pieces = number, []
        elif kind == "variable_end" or (
            kind == "block_end" and "".join(pieces).split()[:1] == ["print"]
        ):
            text = "".join(pieces)
            yield line, " ".join(f"{{{{{text}}}}}".split())
        else:
            pieces.append(value)


def _known_value(node: "nodes.Expr", this: str | None) -> str | None:
    """The text of an expression, if it is known without the template's project."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name) and node.name == "this":
        return this
    if not isinstance(node, nodes.Call):
        return None
    name = _dotted_name(node.node)
    if name in _SILENT_CALLS:
        return ""
    arguments = [each.value for each in node.args if isinstance(each, nodes.Const)]
    if len(arguments) < len(node.args):
        return None
    match name, arguments:
        case "ref", [str(table)] | [str(), str(table)]:
            return _quoted(table)
        case "source", [str(source), str(table)]:
            return f"{_quoted(source)}.{_quoted(table)}"
        case "var" | "env_var", [_, default]:
            return str(default)
    return None


def _dotted_name(node: "nodes.Expr") -> str:
    from jinja2 import nodes

    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return f"{node.node.name}.{node.attr}"
    return node.name if isinstance(node, nodes.Name) else ""


def _is_incremental(test: "nodes.Node") -> bool:
    """Whether a condition only holds in runs after the first one."""
    from jinja2 import nodes

    first = test
    while isinstance(first, nodes.And | nodes.Or):
        first = first.left
    calls = [test] if isinstance(test, nodes.Call) else test.find_all(nodes.Call)
    return not isinstance(first, nodes.Not) and any(
        _dotted_name(call.node) == "is_incremental" for call in calls
    )


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def _blank_tags(text: str) -> RenderedTemplate:
    """A text that jinja2 does not parse: expressions are unknown, other tags are left out."""
    output: list[str] = []
    gaps: list[TemplateGap] = []
    offset, line = 0, 1
    unclosed: set[str] = set()
    for match in _TAG_START.finditer(text):
        kind = match.group()
        if match.start() < offset or kind in unclosed:
            continue
        end = text.find(_TAG_END[kind], match.end())
        if end < 0:
            # Searched only once: a text of opening tags would take quadratic time.
            unclosed.add(kind)
            continue
        line += text.count("\n", offset, match.start())
        output.append(text[offset : match.start()])
        offset = end + len(kind)
        tag = text[match.start() : offset]
        if kind == "{{":
            output.append(UNKNOWN_NAME)
            if len(gaps) < _MAX_GAPS:
                gaps.append(TemplateGap(line, " ".join(tag.split())))
        output.append("\n" * tag.count("\n"))
        line += tag.count("\n")
    output.append(text[offset:])
    return RenderedTemplate("".join(output), tuple(gaps))
