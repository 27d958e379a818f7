"""Writes docs/COMPATIBILITY.md from the table of rules, with an example of each from the tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
sys.path.append(str(PROJECT / "tests"))

from lumos.model.change import Verdict  # noqa: E402
from lumos.schemas.rules import ENGINES, RULES, Judgement  # noqa: E402
from schemas.pairs import Pair, pairs  # noqa: E402

PAGE = PROJECT / "docs" / "COMPATIBILITY.md"
HEAD = """# Is a change safe? The rules

Every change of a schema gets two verdicts:

- **storage**: can a reader with the new schema read old data?
- **consumer**: does an unchanged query, job or reader work on new data? Versions follow this one:
  breaking and undetermined step the major, compatible the minor, informational the patch.

The storage verdict follows the dataset's format: Avro, Iceberg or Delta where it is one of these,
Spark for Parquet, ORC and whatever has no rules of its own, and the consumer verdict for CSV and
JSON. What other engines make of a change stands in the notes (`safe in Delta, breaks Iceberg v2`).

*Undetermined* means that it depends on how the column is used, or, of a storage verdict, on the
version of the table; the last column and the notes say on what. A pair of types that no rule names
is breaking. Inside arrays, maps and structs the same rules hold at every depth. The type of a
partition column is judged only where the format declares it: in files under `k=v` folders it is
guessed from the values, and `partition-type` is compatible.

Flags: `cost` (queries may read more), `positional` (matters where columns are taken by position),
`case-only` (the names differ in case alone, which some engines do not see). A removed and an added
field with the same field id, or at the same place with the same type and properties, are noted as
*perhaps renamed*; they are still judged as removed and added.

A change keeps its `fingerprint` whatever else changes in the dataset.

`yes`, `no`: whether the engine reads old data with the new schema. `-`: it says nothing, and the
column "others" or else the consumer verdict holds.

| rule | for example | Avro | Iceberg | Delta | Spark | others | consumer | depends on use |
|---|---|---|---|---|---|---|---|---|
"""
FOOT = """
Some rows are finer than the table can show. Delta and Spark read a map's key (`map-key`) where they
read the type itself. Delta takes integers for decimals of 10 whole digits and more, and both Delta
and Spark take 64-bit integers only for 20 and more, although 19 hold every value
(`integer-to-decimal`). Avro does not read bytes of a fixed length as text (`string-and-binary`),
nor Spark anything as text of a longest length (`scalar-to-string`). In a declared key column,
`integer-to-float64` and `required-to-nullable` are breaking, also where it ceases to be one.
Iceberg, Delta and Spark read no decimal of more than 38 digits. Fields are regrouped
(`fields-regrouped`) where one that is gone stands under another parent with the same name and type,
at any depth. `v3`: Iceberg tables of version 3.
"""
MARKS = {Verdict.COMPATIBLE: "yes", Verdict.BREAKING: "no", Verdict.UNDETERMINED: "v3"}


def page() -> str:
    """The whole page."""
    examples: dict[str, Pair] = {}
    for pair in sorted(pairs(), key=_size, reverse=True):
        examples.update((expected.rule, pair) for expected in pair.expected)
    rows = (" | ".join(_cells(rule, examples[rule.rule])) for rule in RULES.values())
    return HEAD + "".join(f"| {row} |\n" for row in rows) + FOOT


def _size(pair: Pair) -> tuple[int, int]:
    return len(pair.expected), len(f"{pair.before}{pair.after}")


def _cells(rule: Judgement, example: Pair) -> Iterator[str]:
    sides = ("; ".join(str(side).splitlines()) for side in (example.before, example.after))
    yield f"`{rule.rule}`"
    yield " → ".join(f"`{side}`" for side in sides) if rule.rule != "tags" else "a tag more"
    for engine in ENGINES:
        yield MARKS[rule.engines[engine]] if engine in rule.engines else "-"
    yield rule.any_engine or ""
    yield rule.consumer
    breaks = ", ".join(rule.breaks_if)
    holds = ", ".join(rule.holds_if)
    yield (f"breaking if {breaks}" if breaks else "") + (f"compatible if {holds}" if holds else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"Wrote {PAGE.name}\n")
