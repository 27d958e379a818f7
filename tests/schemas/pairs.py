"""Reads the text pairs: schemas before and after, and the findings that must come of them.

A pair is `# name`, perhaps with `@format` (Parquet where none is said), the lines of the old schema,
`->`, those of the new one, `=`, and a line for each finding: path (`-` for all columns), rule,
consumer and storage verdict, `+flag` for each flag. Indented lines below are its notes, all of
them. Behind a column may stand `TAG 'x'` and `ID 3`, which the text form of schemas does not have.
"""

import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from lumos.model.change import Finding
from lumos.model.schema import Schema, parse_schema

_EXTRAS = re.compile(r"(?: TAG '(?P<tag>[^']*)')?(?: ID (?P<id>\d+))?$", re.MULTILINE)


class Expected(NamedTuple):
    path: str
    rule: str
    consumer: str
    storage: str
    flags: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> "Expected":
        words = line.split()
        flags = tuple(word.removeprefix("+") for word in words if word.startswith("+"))
        *path, rule, consumer, storage = words[: len(words) - len(flags)]
        return cls("" if path == ["-"] else " ".join(path), rule, consumer, storage, flags)

    @classmethod
    def of(cls, finding: Finding) -> "Expected":
        consumer, storage = finding.consumer.value, finding.storage.value
        return cls(finding.change.path, finding.rule, consumer, storage, finding.flags)


class Pair(NamedTuple):
    name: str
    format: str
    before: Schema
    after: Schema
    expected: list[Expected]
    notes: dict[Expected, tuple[str, ...]]


def pairs() -> list[Pair]:
    """All pairs of the file."""
    text = (Path(__file__).parent / "pairs.txt").read_text(encoding="utf-8")
    return [_pair(block) for block in text.strip().split("\n\n")]


def _pair(block: str) -> Pair:
    title, _, rest = block.partition("\n")
    name, _, format = title.removeprefix("# ").partition(" @")
    before, _, rest = rest.partition("\n->\n")
    after, _, found = f"{rest}\n".partition("\n=\n")
    expected: list[Expected] = []
    notes: dict[Expected, tuple[str, ...]] = {}
    for line in found.splitlines():
        if line.startswith("  "):
            notes[expected[-1]] = (*notes.get(expected[-1], ()), line.strip())
        else:
            expected.append(Expected.parse(line))
    return Pair(name, format or "parquet", _schema(before), _schema(after), expected, notes)


def _schema(text: str) -> Schema:
    schema = parse_schema(_EXTRAS.sub("", text))
    extras = [next(_EXTRAS.finditer(line)) for line in text.splitlines()]
    return Schema(
        fields=tuple(
            msgspec.structs.replace(
                field,
                tags=(extra["tag"],) if extra["tag"] else (),
                field_id=int(extra["id"]) if extra["id"] else None,
            )
            for field, extra in zip(schema.fields, extras, strict=True)
        )
    )
