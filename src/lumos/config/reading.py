"""Turns a tree into sections by their annotations, and notes everything that is wrong in it."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import inspect

from lumos.config.keys import Key, Kind, fields_of, keys_of, kind_of, section_of, unknown_key
from lumos.config.scalars import FAILED, Failed, as_found, choices, free, in_words, matches, scalar
from lumos.config.secret import Secret, guarded, names_secret
from lumos.config.section import SPLIT, Section
from lumos.config.settings import OlderSpelling
from lumos.config.tree import Block, Entry, Listing, Node, Problem, Scalar, empty, lifted
from lumos.errors import MisuseError, did_you_mean

Variants: TypeAlias = Mapping[type[Section], Mapping[str, type[Section]]]


class Reader:
    """Reads sections; of those in `variants`, a key `type` picks one."""

    def __init__(self, variants: Variants, problems: list[Problem]) -> None:
        self._variants = variants
        self.problems = problems
        self.older: list[OlderSpelling] = []

    def section(
        self, node: Node, section: type[Section], *, beside: Iterable[str] = ()
    ) -> Section | Failed:
        """The section; keys in `beside` exist around it, so that an error can suggest them."""
        if isinstance(node, Scalar) and section.shorthand is not None:
            entry = Entry(place=node.place, node=node)
            node = Block(place=node.place, path=node.path, entries={section.shorthand: entry})
        if not isinstance(node, Block):
            return self._refuse(node, "a mapping", echo=False)
        if section.nested is not None:
            node, twice = lifted(node, section.nested)
            self.problems += twice
        chosen = self._chosen(node, section)
        if chosen is None:
            return FAILED
        before = len(self.problems)
        values = self._values(node, chosen, frozenset(beside))
        if len(self.problems) > before:
            return FAILED
        try:
            return chosen(**values)
        except MisuseError as error:
            self._note(node, f"{node.path}: {error}" if node.path else str(error))
            return FAILED

    def _chosen(self, node: Block, section: type[Section]) -> type[Section] | None:
        """The section itself, or the variant of it that the key `type` names."""
        if section not in self._variants:
            return section
        variants = self._variants[section]
        entry = node.entries.get("type")
        if entry is None or empty(entry.node):
            self._note(node, f"{node.path} needs 'type', one of {', '.join(sorted(variants))}.")
            return None
        kind = Kind(inspect.LiteralType(values=tuple(sorted(variants))), "", {})
        value = self._value(entry.node, kind)
        return variants[value] if isinstance(value, str) else None

    def _values(
        self, node: Block, section: type[Section], beside: frozenset[str]
    ) -> dict[str, object]:
        keys = keys_of(section)
        values: dict[str, object] = {}
        written: dict[str, str] = {}
        for name, entry in node.entries.items():
            key = keys.get(name)
            if key is None or empty(entry.node):
                continue
            if key.field in written:
                other = written[key.field]
                self._note_at(entry, f"'{other}' and '{name}' mean the same. Keep one of them.")
                continue
            written[key.field] = name
            values[key.field] = self._field(key, entry)
        self._require(node, section, values)
        left_over = {name: entry for name, entry in node.entries.items() if name not in keys}
        return values | self._rest(node.having(left_over), section, beside | set(keys))

    def _field(self, key: Key, entry: Entry) -> object:
        node = entry.node
        if key.older:
            line = entry.place.line
            self.older.append(OlderSpelling(key=node.path, instead=key.field, line=line))
        if key.single:
            node = Listing(place=node.place, path=node.path, items=(node,))
        return self._value(node, key.kind)

    def _require(self, node: Block, section: type[Section], values: dict[str, object]) -> None:
        keys = keys_of(section)
        for name, key in keys.items():
            if key.required and name == key.field and name not in values:
                spellings = [each for each, other in keys.items() if other.field == name]
                wanted = " or ".join(f"'{spelling}'" for spelling in spellings)
                self._note(node, f"{node.path} needs {wanted}.")

    def _rest(
        self, node: Block, section: type[Section], known: frozenset[str]
    ) -> dict[str, object]:
        if section.rest is None:
            for name, entry in node.entries.items():
                self._note_at(entry, unknown_key(name, node.path, known))
            return {}
        kind = fields_of(section)[section.rest].kind
        if isinstance(kind.type, inspect.StructType):
            return {section.rest: self.section(node, section_of(kind.type), beside=known)}
        return {section.rest: self._value(node, kind)}

    def _value(self, node: Node, kind: Kind) -> object:
        if isinstance(node, Scalar) and node.problem:
            self._note(node, node.problem)
            return FAILED
        match kind.type:
            case inspect.UnionType(types=types):
                return self._value(node, _member(types, node, kind.words))
            case inspect.StructType() as struct:
                return self.section(node, section_of(struct))
            case inspect.VarTupleType():
                return self._items(node, kind)
            case inspect.DictType():
                return self._map(node, kind)
            case _:
                value: object = FAILED
                if isinstance(node, Scalar) and not node.empty:
                    value = scalar(node, kind)
                return self._refuse(node, in_words(kind), kind) if value is FAILED else value

    def _items(self, node: Node, kind: Kind) -> object:
        assert isinstance(kind.type, inspect.VarTupleType)
        if isinstance(node, Scalar) and SPLIT in kind.extra and not node.empty:
            parts = (part.strip() for part in node.text.split(kind.extra[SPLIT]))
            return tuple(part for part in parts if part)
        if not isinstance(node, Listing):
            return self._refuse(node, in_words(kind))
        if len(node.items) < (kind.type.min_length or 0):
            self._note(node, f"{node.path} must have at least one value.")
        item = kind_of(kind.type.item_type)
        return tuple(self._value(each, item) for each in node.items)

    def _map(self, node: Node, kind: Kind) -> object:
        assert isinstance(kind.type, inspect.DictType)
        if not isinstance(node, Block):
            return self._refuse(node, in_words(kind), echo=False)
        key_kind, value_kind = kind_of(kind.type.key_type), kind_of(kind.type.value_type)
        values = {}
        for name, entry in node.entries.items():
            if not matches(name, key_kind.type):
                self._note_at(entry, f"the key '{name}' in {node.path} must be {key_kind.words}.")
            elif value_kind.type == inspect.CustomType(object):
                values[name] = self._free(entry.node, name)
            elif not empty(entry.node):
                values[name] = self._value(entry.node, value_kind)
        return values

    def _free(self, node: Node, key: str) -> object:
        """A value of a free form; below a key named like a secret everything is one."""
        match node:
            case Block():
                return {
                    name: self._free(entry.node, f"{key}.{name}")
                    for name, entry in node.entries.items()
                }
            case Listing():
                return [self._free(each, key) for each in node.items]
            case Scalar() if node.problem:
                self._note(node, node.problem)
                return FAILED
            case Scalar():
                value = free(node)
                if value is not None and names_secret(key):
                    return Secret(node.text)
                return guarded(key, value) if isinstance(value, str) else value
            case _:
                raise TypeError(f"{type(node).__name__} is no part of a tree")

    def _refuse(
        self, node: Node, words: str, kind: Kind | None = None, *, echo: bool = True
    ) -> Failed:
        known = choices(kind.type) if kind is not None else ()
        hint = did_you_mean(node.text, known) if isinstance(node, Scalar) else ""
        subject = node.path or "The configuration"
        self._note(node, f"{subject} must be {words}, not {as_found(node, echo=echo)}.{hint}")
        return FAILED

    def _note(self, node: Node, text: str) -> None:
        self.problems.append(Problem(place=node.place, key=node.path, text=text))

    def _note_at(self, entry: Entry, text: str) -> None:
        self.problems.append(Problem(place=entry.place, key=entry.node.path, text=text))


def _member(types: tuple[inspect.Type, ...], node: Node, words: str) -> Kind:
    """The type of a union that a value of this shape is meant for."""
    kinds = [kind_of(each) for each in types]
    wants_text = isinstance(node, Scalar)
    kind = next((each for each in kinds if each.takes_text == wants_text), kinds[0])
    return kind._replace(words=words or " or ".join(in_words(each) for each in kinds))
