"""Writes docs/API_REFERENCE.md from the signatures and docstrings of the SDK."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from lumos import sdk
from lumos.sdk import Lumos
from lumos.server.app import EXTRA_ROUTES
from lumos.server.routes import ROUTES

PAGE = Path(__file__).parents[1] / "docs" / "API_REFERENCE.md"
HEAD = """# Python SDK

`from lumos import Lumos`. Every command of the [command line](cli.md) is a method here and returns
the value that `--json` prints. Reports are frozen `msgspec.Struct` values;
`lumos.model.json_codec.to_json` writes them as JSON.

```python
from lumos import Lumos

lumos = Lumos("lumos.yaml")
report = lumos.ingest("lake")
lumos.impact.of("orders", drop=["amount"])
```
"""


REST = """# REST API

`lumos serve` answers these requests; [SERVER.md](SERVER.md) says how. The answer of a route is the
report of its method above as JSON. `GET` and `DELETE` take the parameters of the method in the
query: lists as repeated names, mappings as `name=key=value`. `POST` and `PUT` take them as a JSON
object. `/openapi.json` has all types. A role includes those before it: read, write, admin.

| request | method of the SDK | role |
|---|---|---|"""


def page() -> str:
    """The whole page."""
    lines = [HEAD, *_class("Lumos", Lumos, inspect.getdoc(Lumos) or ""), REST, *_routes()]
    return "\n".join([*lines, ""])


def _routes() -> Iterator[str]:
    for route in ROUTES:
        yield f"| `{route.method} {route.url}` | `{route.sdk_path}` | {route.role} |"
    for extra in EXTRA_ROUTES:
        summary = extra.summary.rstrip(".")
        yield f"| `{extra.method} {extra.url}` | {summary} | {extra.role or 'everybody'} |"


def _class(title: str, cls: type, summary: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{summary}\n"
    if cls is Lumos:
        yield f"{_block('Lumos', cls.__init__)}\n"
    services = []
    for name, member in _members(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(member, property | cached_property):
            function: Any = member.func if isinstance(member, cached_property) else member.fget
            service = _service(function)
            if service is not None:
                services.append((name, service, inspect.getdoc(function) or ""))
            continue
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        if inspect.isfunction(function):
            yield f"### {title}.{name}\n"
            yield f"{_block(name, function)}\n"
            yield f"{inspect.getdoc(function) or ''}\n"
    for name, service, doc in services:
        yield from _class(f"{title}.{name}", service, doc)


def _members(cls: type) -> dict[str, Any]:
    """The members of a class: its own, then those of the classes that it extends."""
    members: dict[str, Any] = {}
    for each in cls.__mro__[:-1]:
        for name, member in vars(each).items():
            members.setdefault(name, member)
    return members


def _block(name: str, function: Any) -> str:
    """The signature as it is written, one parameter a line where it is long."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, ast.FunctionDef)
    parameters = node.args
    parameters.args = [each for each in parameters.args if each.arg != "self"]
    for each in (*parameters.args, *parameters.kwonlyargs, parameters.vararg, parameters.kwarg):
        if each is not None and each.annotation is not None:
            each.annotation = ast.Name(_text(each.annotation))
    parameters.kw_defaults = [
        ast.Constant(...) if isinstance(each, ast.Lambda) else each
        for each in parameters.kw_defaults
    ]
    shown = re.sub(r"(?<=[\w\]])=(?=\S)", " = ", ast.unparse(parameters))
    returned = "" if node.returns is None else _text(node.returns)
    end = "" if returned in ("", "None") else f" -> {returned}"
    line = f"{name}({shown}){end}"
    if len(line) > 96:
        lines = re.sub(r", (?=\*|\w+(:|=|$))", ",\n    ", shown)
        line = f"{name}(\n    {lines},\n){end}"
    return f"```text\n{line}\n```"


def _text(annotation: ast.expr) -> str:
    return ast.unparse(annotation).replace("'", "").replace('"', "")


def _service(function: Any) -> type | None:
    """The class of a feature that a property of the SDK gives, if it has public methods."""
    returned = inspect.signature(function).return_annotation
    name = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
    module = _imports(inspect.getmodule(function) or sdk).get(name)
    if module is None or not module.startswith("lumos.") or ".store" in module:
        return None
    cls: type = getattr(import_module(module), name)
    return cls


def _imports(module: Any) -> dict[str, str]:
    """The module of each imported name, also of those imported for type checking only."""
    return {
        alias.name: node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name}\n")
