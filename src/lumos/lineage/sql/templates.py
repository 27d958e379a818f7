"""Renders Jinja templates as plain SQL; templates are parsed by jinja2, but never executed.

Line numbers do not change. `ref` and `source` become the tables that they name, and calls of the
project's macros are replaced by the text of the macro. As in a first run, incremental parts are
left out. Of other conditions, the first branch is rendered, and the body of a loop is rendered
once. Macros only expand up to a limit, so a malicious template can neither run code nor render
endless text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from lumos.model.lineage import UNKNOWN_NAME

if TYPE_CHECKING:
    from jinja2 import Environment, nodes
    from jinja2.parser import Parser

Macros: TypeAlias = Mapping[str, "nodes.Macro"]

# jinja2 may take seconds for a template of this length; dbt templates have a few kilobytes.
_MAX_LENGTH: Final = 256 * 1024
_MAX_GAPS: Final = 1000
# Limits of macros: the length of a file, the depth of calls within macros, and all calls of a
# template.
MAX_MACRO_FILE: Final = 64 * 1024
_MAX_DEPTH: Final = 10
_MAX_CALLS: Final = 500
_NO_MACROS: Final[Macros] = MappingProxyType({})
# The macro that most dbt projects use: a hash of the columns that its argument names.
_SURROGATE_KEYS: Final = frozenset(("dbt_utils.generate_surrogate_key", "dbt_utils.surrogate_key"))
# The macro for one row per day or other period, in a column such as date_day.
_DATE_SPINES: Final = frozenset(("dbt_utils.date_spine", "dbt.date_spine", "date_spine"))
# The value of arguments that are none, false or an empty list.
_ABSENT: Final = ""
# Strings, which may contain the start of a comment, and comments.
_STRING_OR_COMMENT: Final = re.compile(r"""('(?:[^'\\]|''|\\.)*'|"[^"]*")|--[^\n]*""")
_CALLS_WITHOUT_OUTPUT: Final = frozenset(("config", "log", "print", "exceptions.warn", "return"))
_TAG_NAME: Final = re.compile(r"\{%[-+]?\s*(\w+)")
_TAG_START: Final = re.compile(r"\{[{%#]")
_TAG_END: Final = {"{{": "}}", "{%": "%}", "{#": "#}"}


class TemplateGap(NamedTuple):
    """An expression whose value is unknown; with `is_remark`, no lineage is lost."""

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


def read_macros(texts: Iterable[str]) -> Macros:
    """The macros that files of a dbt project define, by name."""
    from jinja2 import TemplateSyntaxError, nodes

    macros: dict[str, nodes.Macro] = {}
    for text in texts:
        if len(text) > MAX_MACRO_FILE:
            continue
        try:
            tree = _environment(text).parse(text)
            macros |= {each.name: each for each in tree.find_all(nodes.Macro)}
        except (TemplateSyntaxError, RecursionError, ValueError):
            # As in render_template: calls of its macros stay unknown.
            continue
    return macros


def render_template(
    text: str, *, this: str | None = None, macros: Macros = _NO_MACROS
) -> RenderedTemplate:
    """Render a template as SQL; `this` is the table that it creates, if known."""
    # Imported late: few SQL files are templates.
    from jinja2 import TemplateSyntaxError

    if len(text) <= _MAX_LENGTH:
        try:
            return _Renderer(text, _ExpressionTexts(this, macros)).render()
        except (TemplateSyntaxError, RecursionError, ValueError):
            # Not Jinja, such as the array '{{1,2},{3,4}}', nested too deeply, or a huge number.
            pass
    return _blank_tags(text)


def _environment(text: str) -> "Environment":
    """A parser that accepts all tags of a text."""
    from jinja2 import Environment
    from jinja2.ext import Extension

    tag_names = frozenset(_TAG_NAME.findall(text))

    class OtherTags(Extension):
        """Accepts the tags of dbt and others; the content of their blocks is rendered."""

        tags = set(tag_names)  # noqa: RUF012

        def parse(self, parser: "Parser") -> "list[nodes.Node]":
            name = next(parser.stream).value
            while parser.stream.current.type != "block_end":
                next(parser.stream)
            if f"end{name}" not in tag_names:
                return []
            return parser.parse_statements((f"name:end{name}",), drop_needle=True)

    return Environment(keep_trailing_newline=True, extensions=[OtherTags])


class _Renderer:
    """Writes the syntax tree of one template as SQL."""

    def __init__(self, text: str, values: "_ExpressionTexts") -> None:
        environment = _environment(text)
        self._body = environment.parse(text).body
        # The lexer gives the texts of expressions, since the syntax tree has no end positions.
        self._expressions = _expressions(environment.lex(text))
        self._values = values
        self._output: list[str] = []
        self._line = 1
        self._gaps: list[TemplateGap] = []

    def render(self) -> RenderedTemplate:
        self._visit(self._body, is_used=True)
        return RenderedTemplate("".join(self._output), tuple(self._gaps))

    def _visit(self, body: "Iterable[nodes.Node]", *, is_used: bool) -> None:
        """Render the nodes of a body; unused nodes are visited only to skip their expressions."""
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
        text = self._values.of(node)
        if text is None or UNKNOWN_NAME in text:
            self._gaps.append(TemplateGap(line, source))
        self._write(UNKNOWN_NAME if text is None else text, line)

    def _write(self, text: str, line: int) -> None:
        self._output.append("\n" * (line - self._line) + text)
        self._line = max(line, self._line) + text.count("\n")


def _expressions(tokens: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, str]]:
    """The line and the text of every {{ expression }} and {% print expression %}."""
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


class _ExpressionTexts:
    """The texts of expressions, as far as the template and the project's macros define them."""

    def __init__(self, this: str | None, macros: Macros) -> None:
        self._this = this
        self._macros = macros
        self._calls_left = _MAX_CALLS
        self._length_left = _MAX_LENGTH

    def of(self, node: "nodes.Expr") -> str | None:
        """The text of an expression of the template; None if it is unknown."""
        return self._of(node, MappingProxyType({}), 0)

    def _of(self, node: "nodes.Node", bound: Mapping[str, str | None], depth: int) -> str | None:
        from jinja2 import nodes

        if isinstance(node, nodes.Name):
            return self._this if node.name == "this" else bound.get(node.name)
        if depth and isinstance(node, nodes.Const):
            return _ABSENT if node.value is None or node.value is False else str(node.value)
        if depth and isinstance(node, nodes.List) and not node.items:
            return _ABSENT
        if not isinstance(node, nodes.Call):
            return None
        name = _dotted_name(node.node)
        if name in _CALLS_WITHOUT_OUTPUT:
            return ""
        if name in self._macros and depth < _MAX_DEPTH:
            return self._expand(self._macros[name], node, bound, depth + 1)
        if name in _SURROGATE_KEYS and node.args and isinstance(node.args[0], nodes.List):
            columns = [self._of(each, bound, depth + 1) for each in node.args[0].items]
            casts = [f"CAST({each} AS VARCHAR)" for each in columns if each is not None]
            return f"MD5(CONCAT({', '.join(casts)}))" if len(casts) == len(columns) > 0 else None
        if name in _DATE_SPINES:
            spine_arguments = {**dict(zip(("datepart", "start_date"), node.args, strict=False)),
                               **{each.key: each.value for each in node.kwargs}}  # fmt: skip
            part, start = (
                None
                if key not in spine_arguments
                else self._of(spine_arguments[key], bound, depth + 1)
                for key in ("datepart", "start_date")
            )
            return None if part is None else f"SELECT {start or 'NULL'} AS date_{part}"
        arguments = [
            each.value if isinstance(each, nodes.Const) else self._of(each, bound, depth)
            for each in node.args
        ]
        if None in arguments:
            return None
        match name, arguments:
            case "ref", [str(table)] | [str(), str(table)]:
                return _quoted(table)
            case "source", [str(source), str(table)]:
                return f"{_quoted(source)}.{_quoted(table)}"
            case "var" | "env_var", [_, default]:
                return str(default)
        return None

    def _expand(
        self, macro: "nodes.Macro", call: "nodes.Call", bound: Mapping[str, str | None], depth: int
    ) -> str | None:
        """The text of a macro on one line, so that the line numbers of the template stay valid."""
        self._calls_left -= 1
        if self._calls_left < 0 or self._length_left < 0:
            return None
        names = [each.name for each in macro.args]
        defaults = dict(zip(reversed(names), reversed(macro.defaults), strict=False))
        arguments = {
            **dict(zip(names, call.args, strict=False)),
            **{each.key: each.value for each in call.kwargs},
        }
        values = {
            name: self._of(arguments[name], bound, depth)
            if name in arguments
            else self._of(defaults[name], {}, depth)
            if name in defaults
            else None
            for name in names
        }
        text = "".join(self._body(macro.body, values, depth))
        text = " ".join(_STRING_OR_COMMENT.sub(lambda match: match[1] or "", text).split())
        self._length_left -= len(text)
        is_known = bool(text.replace(UNKNOWN_NAME, "").strip())
        return text if is_known and self._length_left >= 0 else None

    def _body(
        self, body: "Iterable[nodes.Node]", bound: dict[str, str | None], depth: int
    ) -> Iterator[str]:
        from jinja2 import nodes

        for node in body:
            if isinstance(node, nodes.Output):
                for part in node.nodes:
                    if isinstance(part, nodes.TemplateData):
                        yield part.data
                    else:
                        text = self._of(part, bound, depth)
                        yield UNKNOWN_NAME if text is None else text
            elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Name):
                bound[node.target.name] = self._of(node.node, bound, depth)
            elif isinstance(node, nodes.If):
                branches = [node.body, *(each.body for each in node.elif_), node.else_]
                takes_next = _is_absent(node.test, bound) or _is_incremental(node.test)
                yield from self._body(branches[takes_next], bound, depth)
            elif isinstance(node, nodes.For):
                yield from self._body(node.body, bound, depth)


def _dotted_name(node: "nodes.Expr") -> str:
    from jinja2 import nodes

    if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name):
        return f"{node.node.name}.{node.attr}"
    return node.name if isinstance(node, nodes.Name) else ""


def _is_incremental(test: "nodes.Node") -> bool:
    """Whether a condition is only true in runs after the first one."""
    from jinja2 import nodes

    first = test
    while isinstance(first, nodes.And | nodes.Or):
        first = first.left
    calls = [test] if isinstance(test, nodes.Call) else test.find_all(nodes.Call)
    return not isinstance(first, nodes.Not) and any(
        _dotted_name(call.node) == "is_incremental" for call in calls
    )


def _is_absent(test: "nodes.Node", bound: Mapping[str, str | None]) -> bool:
    """Whether a condition is false because it tests arguments of a macro that are absent."""
    from jinja2 import nodes

    match test:
        case nodes.Name():
            return bound.get(test.name) == _ABSENT
        case nodes.Or():
            return _is_absent(test.left, bound) and _is_absent(test.right, bound)
        case nodes.And():
            return _is_absent(test.left, bound) or _is_absent(test.right, bound)
    return False


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f'"{name}"'


def _blank_tags(text: str) -> RenderedTemplate:
    """Render a text that jinja2 cannot parse: expressions are unknown, other tags are left out."""
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
            # Do not search again: a text of many opening tags would take quadratic time.
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
