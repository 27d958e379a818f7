"""One JSON Schema document: follows references into it and folds combinations into one schema."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

from lumos.model.conversions.json_values import default_text, object_at, objects_at, text_at
from lumos.model.conversions.place import TOO_DEEP, TOO_LARGE, Place, References
from lumos.model.types import JSON, MAX_DEPTH, UNKNOWN, DataType, Unknown

JsonSchema: TypeAlias = dict[str, Any] | bool

_FOLDERS: Final = ("#/$defs/", "#/definitions/", "#/components/schemas/")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_CHOICES: Final = ("anyOf", "oneOf")
# What is said of a schema, not of its values, belongs to that schema alone.
_ANNOTATIONS: Final = ("title", "description", "default", "examples", "$comment", "$defs")


class Plain(NamedTuple):
    """A schema without references, or the options that it leaves, or what cuts it short."""

    schema: dict[str, Any]
    place: Place
    nullable: bool
    options: tuple[dict[str, Any], ...] = ()
    referred: bool = False
    cut: DataType | None = None


class Document:
    """A schema and the parts in it that can be referred to."""

    def __init__(self, document: JsonSchema) -> None:
        self.document = document
        self.references = References()
        # The document is a schema too, and stands around all others.
        self.root = Place(inside=frozenset(["#"]))

    def plain(self, schema: object, place: Place) -> Plain:
        """The schema as seen from the place, which learns what is said of it on the way."""
        nullable = referred = False
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                # `true` allows any value, `false` none.
                whole = JSON if schema is True else UNKNOWN
                return Plain({}, place, nullable or schema is True, cut=whole)
            _note(schema, place)
            nullable = nullable or schema.get("nullable") is True
            if pointer := reference_in(schema):
                target = self._target(pointer)
                cut = self.references.cut(pointer, place, called=self._name(pointer))
                if target is None or cut is not None:
                    return Plain({}, place, nullable, cut=cut or Unknown(f"ref:{pointer}"))
                referred, place = True, place.within(pointer)
                schema = _merged([_without(schema, _REFERENCES), target])
            elif parts := objects_at(schema, "allOf"):
                if self.references.exhausted:
                    return Plain({}, place, nullable, cut=TOO_LARGE)
                parts, place = self._targets(parts, place)
                referred = True
                schema = _merged([_without(schema, ("allOf",)), *parts])
            else:
                options = _options(schema)
                others = tuple(option for option in options if not _is_null(option))
                nullable = nullable or len(others) < len(options)
                if not options or len(others) > 1:
                    return Plain(schema, place, nullable, others, referred)
                schema = others[0] if others else {"type": "null"}
        return Plain({}, place, nullable, cut=TOO_DEEP)

    def _targets(
        self, parts: list[dict[str, Any]], place: Place
    ) -> tuple[list[dict[str, Any]], Place]:
        """The parts of an `allOf`, references followed; one already followed adds nothing."""
        targets = []
        for part in parts:
            pointer = reference_in(part)
            target = part if pointer is None else self._target(pointer)
            if pointer is None or target is None:
                # What lies in another document stays a reference, which then cuts the whole.
                targets.append(part)
            elif pointer not in place.inside:
                place = place.within(pointer)
                targets.append(target)
        return targets, place

    def _name(self, pointer: str) -> str:
        """What people call the schema that the reference points to."""
        if pointer == "#" and isinstance(self.document, dict):
            return text_at(self.document, "title") or pointer
        folder = next((folder for folder in _FOLDERS if pointer.startswith(folder)), "")
        return pointer.removeprefix(folder)

    def _target(self, pointer: str) -> dict[str, Any] | None:
        """The schema at a JSON pointer into this document."""
        if pointer != "#" and not pointer.startswith("#/"):
            return None
        found: Any = self.document
        for step in unquote(pointer).split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = dict(zip(map(str, range(len(found))), found, strict=True))
            found = found.get(step) if isinstance(found, dict) else None
        return {} if found is True else found if isinstance(found, dict) else None


def reference_in(schema: dict[str, Any]) -> str | None:
    """The pointer to another schema that stands in for this one."""
    return next((text for word in _REFERENCES if (text := text_at(schema, word))), None)


def _note(schema: dict[str, Any], place: Place) -> None:
    default = default_text(schema["default"]) if "default" in schema else None
    place.note(text_at(schema, "description") or text_at(schema, "title"), default=default)


def _options(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schemas to choose from; beside named properties they are conditions, not types."""
    if "properties" in schema:
        return []
    options = objects_at(schema, "anyOf") or objects_at(schema, "oneOf")
    own = _without(schema, (*_CHOICES, *_ANNOTATIONS))
    return [_merged([option, own]) for option in options]


def _is_null(schema: dict[str, Any]) -> bool:
    if "const" in schema:
        return schema["const"] is None
    return schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None]


def _without(schema: dict[str, Any], words: Iterable[str]) -> dict[str, Any]:
    left_out = frozenset(words)
    return {word: value for word, value in schema.items() if word not in left_out}


def _merged(schemas: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One schema for what holds under all of them; where two disagree, the first counts."""
    merged: dict[str, Any] = {}
    for schema in schemas:
        for word, value in schema.items():
            known = merged.get(word)
            if word == "properties" and isinstance(value, dict):
                merged[word] = {**object_at(merged, word), **_without(value, known or ())}
            elif word in ("required", "allOf") and isinstance(value, list):
                merged[word] = [*(known if isinstance(known, list) else ()), *value]
            else:
                merged.setdefault(word, value)
    return merged
