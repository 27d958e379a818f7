"""YAML as JSON: only plain values are constructed, and numbers stay as they are written."""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from lumos.cost.model_file.errors import InvalidModel

MAX_BYTES: Final = 50 * 1024 * 1024
MAX_DEPTH: Final = 50
# Aliases share what they name; this bounds what they unfold to.
MAX_NODES: Final = 3_000_000
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_CORE: Final = "tag:yaml.org,2002:"
_encoder = msgspec.json.Encoder(decimal_format="number")
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def json_of_yaml(file: Path, text: str) -> bytes:
    """The one document of a YAML text as JSON; raises InvalidModel with the line of an error."""
    if len(text) > MAX_BYTES:
        megabytes = MAX_BYTES // 1024**2
        raise InvalidModel(file, f"More than {megabytes} MB of YAML. Write the model as JSON.")
    try:
        _check_extent(file, text)
        return _encoder.encode(yaml.load(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InvalidModel(file, f"This is not valid YAML: {error.problem}.", line=line) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidModel(file, f"This is not valid YAML: {error.reason}.", line=line) from None


def _check_extent(file: Path, text: str) -> None:
    """Refuses what nests deep or unfolds to very much, before anything is constructed."""
    sizes: dict[str, int] = {}
    open_anchors: list[tuple[str | None, int]] = []
    nodes = 0
    for event in yaml.parse(text, Loader=_Parser):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_anchors):
                reason = f"The anchor '&{event.anchor}' contains itself."
                raise InvalidModel(file, reason, line=line)
            # What was never named, the loader refuses.
            nodes += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            nodes += 1
            open_anchors.append((event.anchor, nodes - 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_anchors.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        if len(open_anchors) > MAX_DEPTH:
            raise InvalidModel(file, f"The model nests deeper than {MAX_DEPTH}.", line=line)
        if nodes > MAX_NODES:
            reason = f"The model holds more than {MAX_NODES:,} values, aliases unfolded."
            raise InvalidModel(file, f"{reason} Write it as JSON.", line=line)


class _Loader(_Parser):  # type: ignore[misc]
    """Plain values only; a key stands once in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                reason = f"the key '{key.value}' is listed twice"
                raise yaml.constructor.ConstructorError(None, None, reason, key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                seen.add(key.value)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]

    def whole(self, node: yaml.ScalarNode) -> Decimal:
        """In tens alone: YAML takes 010 for 8, and 1:30 for 90."""
        if not _WHOLE.fullmatch(node.value):
            reason = f"invalid number '{node.value}', write it as 12"
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
        return self.number(node)

    def number(self, node: yaml.ScalarNode) -> Decimal:
        """As exact as it is written, and finite."""
        text = node.value.replace("_", "")
        try:
            value = Decimal(text)
        except InvalidOperation:
            value = Decimal("nan")
        if not value.is_finite():
            reason = f"invalid number '{node.value}', write it as 12.5"
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
        return value


_Loader.add_constructor(f"{_CORE}int", _Loader.whole)
_Loader.add_constructor(f"{_CORE}float", _Loader.number)
_Loader.add_constructor(f"{_CORE}timestamp", _Loader.construct_yaml_str)
