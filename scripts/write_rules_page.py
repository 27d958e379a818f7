"""Writes docs/COMPATIBILITY.md from the table of rules, with an example of each from the tests."""

import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
sys.path.append(str(PROJECT / "tests"))

from lumos.model.change import Verdict  # noqa: E402
from lumos.schemas.rules import ENGINES, RULES, CompatibilityRule  # noqa: E402
from schemas.pairs import Pair, pairs  # noqa: E402

PAGE = PROJECT / "docs" / "COMPATIBILITY.md"
HEAD = """# Compatibility rules

Every schema change gets two verdicts:

- **storage**: can a reader with the new schema read data written with the old one?
- **consumer**: does an unchanged query, job or reader work on data written with the new schema?
  The schema version follows this verdict: breaking and undetermined changes raise the major
  version, compatible ones the minor, informational ones the patch.

## How a verdict is chosen

- The storage verdict depends on the format of the dataset. Avro, Iceberg and Delta have rules of
  their own. CSV and JSON take the consumer verdict. All others (Parquet, ORC, Hudi, database
  tables) take Spark's rules.
- If engines disagree, a note says so: `safe in Delta, Spark, breaks Iceberg v2`.
- *Undetermined* means one of three things: the answer depends on how the column is used (last
  column of the table), the storage verdict depends on the version of the table (`v3`), or one of
  the types is unknown.
- A pair of types without a rule is breaking (`unrelated-types`).
- The same rules apply at every depth, inside arrays, maps and structs.
- The type of a partition column is judged only if the format declares it. For Parquet, Avro, ORC,
  CSV and JSON files under `k=v` folders the type is inferred from the values, so a change of it is
  compatible (`partition-type`).
- A removed and an added field with the same field id, or in the same position with the same type
  and properties, get the note *perhaps renamed*. They are still judged as removed and added.

| flag | meaning |
|---|---|
| `cost` | partitioning or a partition column changed; queries may read more data |
| `positional` | matters where columns are addressed by position |
| `case-only` | old and new name differ only in case; some engines treat them as equal |

In `--json`, each change has a `fingerprint` that does not depend on other changes of the dataset.

## Uses of a column

How a column is used can decide an undetermined or breaking consumer verdict.
[`lumos impact`](IMPACT.md) finds the uses in the SQL of downstream datasets.

| use | meaning |
|---|---|
| `key` | part of a key |
| `joined`, `grouped` | in a join condition, in GROUP BY |
| `filtered`, `not_in` | compared in a filter, in NOT IN |
| `sink`, `not_null_sink` | written to a column of the old type, to a column without nulls |
| `positional` | INSERT without a column list, UNION, CSV without a header |
| `cast` | every use casts the column |
| `normalised` | the reader converts units of time |

## The rules

In the columns of engines, `yes` and `no` say whether the engine reads old data with the new
schema; `v3` means that only Iceberg tables of version 3 do. `-` means that the engine has no rule:
the column "others" applies, or the consumer verdict if that is empty.

| rule | example | Avro | Iceberg | Delta | Spark | others | consumer | depends on use |
|---|---|---|---|---|---|---|---|---|
"""
FOOT = """
## Exceptions within a rule

- `map-key`: Spark reads a changed map key if it reads the same type change outside of a map. Delta
  does so if the change is also compatible for consumers.
- `integer-to-decimal`: Delta needs at least 10 digits before the decimal point. For INT64, Delta
  and Spark need 20, although 19 hold every value.
- `integer-to-decimal`, `decimal-precision-up`, `decimal-scale-up`: Iceberg, Delta and Spark read no
  decimals of more than 38 digits.
- `string-and-binary`: Avro does not convert between text and binary of a fixed length.
- `scalar-to-string`: Spark reads nothing as text with a maximum length.
- `integer-to-float64`, `required-to-nullable`: breaking if the column was a declared key before the
  change.
- `key-field-added`: the storage verdict is that of `field-added` or `required-field-added`.
- `field-added`, `required-field-added`, `key-field-added`: inside a struct, the verdict does not
  depend on use.
- `fields-regrouped`: applies if a field with the name and type of the removed one was added under
  another parent, at any depth.
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


def _cells(rule: CompatibilityRule, example: Pair) -> Iterator[str]:
    sides = ("; ".join(str(side).splitlines()) for side in (example.before, example.after))
    yield f"`{rule.rule}`"
    yield " → ".join(f"`{side}`" for side in sides) if rule.rule != "tags" else "a tag was added"
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
