"""Which key of a free map a decoder's complaint is about; decoders only say that it is one."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

UNNAMED: Final = "[...]"
_STEP: Final = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|(?P<unnamed>\[\.\.\.\])")
_GOT: Final = re.compile(r"got `(\w+)`")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")
_NAMES: Final = {
    str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object",
    type(None): "null",
}  # fmt: skip


def located(plain: Any, path: str, problem: str) -> str:
    """The path with the keys that it does not name, as far as they can be told."""
    steps = list(_STEP.finditer(path))
    return next(_paths(plain, steps, "", _is_it(problem)), path)


def _is_it(problem: str) -> Callable[[Any], bool]:
    if got := _GOT.search(problem):
        return lambda value: _NAMES.get(type(value)) == got[1]
    if missing := _MISSING.search(problem):
        return lambda value: isinstance(value, dict) and missing[1] not in value
    return lambda _: True


def _paths(
    value: Any, steps: list[re.Match[str]], path: str, is_it: Callable[[Any], bool]
) -> Iterator[str]:
    """All paths that the steps can mean and that lead to such a value."""
    if not steps:
        if is_it(value):
            yield path
        return
    step, *rest = steps
    if step["unnamed"] and isinstance(value, dict):
        for key, each in value.items():
            yield from _paths(each, rest, f"{path}.{key}", is_it)
    elif step["key"] and isinstance(value, dict) and step["key"] in value:
        yield from _paths(value[step["key"]], rest, path + step[0], is_it)
    elif step["index"] and isinstance(value, list) and int(step["index"]) < len(value):
        yield from _paths(value[int(step["index"])], rest, path + step[0], is_it)
