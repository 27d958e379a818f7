"""The compatibility rules, with their verdicts for consumers and for engines that read old data."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from lumos.model.change import ConsumerUse, Verdict

BREAKING: Final = Verdict.BREAKING
COMPATIBLE: Final = Verdict.COMPATIBLE
INFORMATIONAL: Final = Verdict.INFORMATIONAL
UNDETERMINED: Final = Verdict.UNDETERMINED

ENGINES: Final = {"avro": "Avro", "iceberg": "Iceberg v2", "delta": "Delta", "spark": "Spark"}
# Whether an engine reads old data: `y` for yes, `n` for no, and `3` if only version 3 of its table
# format does.
_VERDICT_OF_MARK: Final = {"y": COMPATIBLE, "n": BREAKING, "3": UNDETERMINED}
# The engine that decides whether files of a format stay readable. Text formats have none: the
# consumer verdict applies. All other formats are read by Spark.
_ENGINE_OF_FORMAT: Final = {
    "avro": "avro",
    "iceberg": "iceberg",
    "delta": "delta",
    "csv": None,
    "json": None,
}


class CompatibilityRule(NamedTuple):
    """A rule with its verdicts: for consumers, and for storage.

    The storage verdicts are in `engines`; `any_engine` is the verdict for engines that are not in
    it, by default the consumer verdict.
    """

    rule: str
    consumer: Verdict
    engines: Mapping[str, Verdict]
    any_engine: Verdict | None
    flags: tuple[str, ...]
    rule_notes: tuple[str, ...]
    breaks_if: tuple[ConsumerUse, ...]
    holds_if: tuple[ConsumerUse, ...]

    def storage(self, format: str | None) -> Verdict:
        """The storage verdict for a format; by default the consumer verdict."""
        engine = _ENGINE_OF_FORMAT.get(format or "", "spark")
        if engine is None:
            return self.consumer
        return self.engines.get(engine, self.any_engine or self.consumer)

    def notes(self, format: str | None) -> tuple[str, ...]:
        """The notes for a format; if verdicts of engines differ, the first note says which."""
        engine = _ENGINE_OF_FORMAT.get(format, "spark") if format else None
        rule_notes = tuple(
            note
            for note in self.rule_notes
            if format is None
            or not (engines := [each for each in ENGINES if each in note.lower()])
            or engine in engines
        )
        verdicts = self.engines.items()
        safe = [ENGINES[engine] for engine, verdict in verdicts if verdict is COMPATIBLE]
        breaks = [ENGINES[engine] for engine, verdict in verdicts if verdict is not COMPATIBLE]
        if not safe or not breaks:
            return rule_notes
        return (f"safe in {', '.join(safe)}, breaks {', '.join(breaks)}", *rule_notes)


def _rule(
    rule: str,
    consumer: Verdict,
    engines: str = "- - - -",
    *notes: str,
    storage: Verdict | None = None,
    flags: tuple[str, ...] = (),
    breaks_if: tuple[ConsumerUse, ...] = (),
    holds_if: tuple[ConsumerUse, ...] = (),
) -> CompatibilityRule:
    """Create a rule; `engines` has one mark each for Avro, Iceberg, Delta and Spark."""
    marks = zip(ENGINES, engines.split(), strict=True)
    verdicts = {engine: _VERDICT_OF_MARK[mark] for engine, mark in marks if mark != "-"}
    return CompatibilityRule(rule, consumer, verdicts, storage, flags, notes, breaks_if, holds_if)


_NUMBER_RULES: Final = (
    _rule("integer-widened", COMPATIBLE, "y y y y"),
    _rule("integer-narrowed", BREAKING, "n n n n"),
    _rule("unsigned-widened", COMPATIBLE),
    _rule("unsigned-to-signed", COMPATIBLE),
    _rule("unsigned-to-narrow-signed", BREAKING),
    _rule("signed-to-unsigned", BREAKING, "n n n n"),
    _rule(
        "integer-to-float64",
        UNDETERMINED,
        "y n y y",
        "Delta widens it only by hand",
        "breaking as a key, in a join or a group",
        breaks_if=(ConsumerUse.KEY, ConsumerUse.JOINED, ConsumerUse.GROUPED),
    ),
    _rule("int64-to-float", BREAKING, "y n n y", "lossy in Spark"),
    _rule("integer-to-decimal", COMPATIBLE, "n n y y", "Delta widens it only by hand"),
    _rule("integer-to-narrow-decimal", BREAKING, "n n n n"),
    _rule("float-widened", COMPATIBLE, "y y y y", "comparisons for equality may change"),
    _rule("float-narrowed", BREAKING, "n n n n"),
    _rule("float-to-exact", BREAKING, "n n n n"),
    _rule("decimal-to-other-number", BREAKING, "n n n n"),
    _rule("decimal-precision-up", COMPATIBLE, "n y y y"),
    _rule(
        "decimal-scale-up",
        UNDETERMINED,
        "n n y y",
        "breaking where it is written to a decimal of the old size",
        breaks_if=(ConsumerUse.SINK,),
    ),
    _rule("decimal-shrunk", BREAKING, "n n n n"),
    _rule("boolean-and-number", BREAKING, "n n n n"),
)
_STRING_RULES: Final = (
    _rule(
        "scalar-to-string",
        BREAKING,
        "n n n y",
        "compatible where every use casts",
        holds_if=(ConsumerUse.CAST,),
    ),
    _rule("string-to-other", BREAKING, "n n n n"),
    _rule("string-and-binary", BREAKING, "y n n n"),
    _rule("string-longer", COMPATIBLE, "- - - y"),
    _rule(
        "string-shorter",
        UNDETERMINED,
        "- - - n",
        "breaking where longer values are joined on or compared with",
        breaks_if=(ConsumerUse.JOINED, ConsumerUse.FILTERED),
    ),
    _rule(
        "enum-symbol-added",
        UNDETERMINED,
        "- - - -",
        "old readers in Avro need a default",
        "breaking where consumers filter by symbol or store the symbols",
        storage=COMPATIBLE,
        breaks_if=(ConsumerUse.FILTERED, ConsumerUse.SINK),
    ),
    _rule(
        "enum-symbol-removed",
        COMPATIBLE,
        "- - - -",
        "new readers in Avro need a default",
        storage=BREAKING,
    ),
    _rule(
        "enum-symbol-replaced",
        UNDETERMINED,
        "- - - -",
        "readers in Avro need a default",
        "breaking where consumers filter by symbol or store the symbols",
        storage=BREAKING,
        breaks_if=(ConsumerUse.FILTERED, ConsumerUse.SINK),
    ),
    _rule("enum-reordered", INFORMATIONAL),
)
_TIME_RULES: Final = (
    _rule(
        "date-to-timestamp",
        UNDETERMINED,
        "- 3 y y",
        "safe in Iceberg v3",
        "breaking where it is joined on, grouped by, compared with dates or stored as a date",
        breaks_if=(ConsumerUse.JOINED, ConsumerUse.GROUPED, ConsumerUse.FILTERED, ConsumerUse.SINK),
    ),
    _rule("date-to-zoned-timestamp", BREAKING, "- n n y"),
    _rule("zone-changed", BREAKING, "- n n y"),
    _rule(
        "zone-and-unit-changed",
        BREAKING,
        "n n n n",
        "silently wrong in Avro",
        "breaking even if the reader normalises units, as the time zone differs",
    ),
    _rule(
        "unit-changed",
        BREAKING,
        "n n - -",
        "silently wrong in Avro",
        "compatible where the reader normalises units",
        holds_if=(ConsumerUse.NORMALISED,),
    ),
)
_NESTED_TYPE_RULES: Final = (
    _rule("map-key", BREAKING, "- n n n"),
    _rule("nested-and-scalar", BREAKING, "n n n n"),
    _rule("struct-and-map", BREAKING, "n n n n"),
    _rule(
        "repeated-members",
        BREAKING,
        "n n n n",
        "members of the same name are ambiguous",
    ),
    _rule("union-widened", BREAKING, "- - - -", "old readers fail", storage=COMPATIBLE),
    _rule("union-narrowed", COMPATIBLE, storage=BREAKING),
    _rule("union-changed", BREAKING, "n n n n"),
    _rule("union-reordered", INFORMATIONAL),
    _rule("type-to-union", BREAKING, "y - - -", storage=COMPATIBLE),
)
_OTHER_TYPE_RULES: Final = (
    _rule(
        "null-to-type", COMPATIBLE, "y 3 y y", "safe in Iceberg v3", "Avro needs a union with null"
    ),
    _rule("type-to-null", BREAKING, "n n n n"),
    _rule("unknown-type", UNDETERMINED),
    _rule("unrelated-types", BREAKING, "n n n n"),
    # The type of a partition column that was only inferred from the values in paths.
    _rule("partition-type", COMPATIBLE, flags=("cost",)),
)
_POSITIONAL_NOTE: Final = "breaking where SELECT * feeds a positional INSERT or a UNION"
_FIELD_RULES: Final = (
    _rule(
        "field-added",
        COMPATIBLE,
        "y y y -",
        _POSITIONAL_NOTE,
        storage=COMPATIBLE,
        breaks_if=(ConsumerUse.POSITIONAL,),
    ),
    _rule(
        "required-field-added",
        COMPATIBLE,
        "n n - -",
        _POSITIONAL_NOTE,
        storage=BREAKING,
        breaks_if=(ConsumerUse.POSITIONAL,),
    ),
    _rule(
        "key-field-added",
        UNDETERMINED,
        "- - - -",
        "breaking where the key is joined on",
        _POSITIONAL_NOTE,
        storage=COMPATIBLE,
        breaks_if=(ConsumerUse.JOINED, ConsumerUse.POSITIONAL),
    ),
    _rule(
        "field-removed",
        BREAKING,
        "- y - -",
        "old readers in Avro need a default",
        storage=COMPATIBLE,
    ),
    _rule("fields-regrouped", BREAKING, "n n n n"),
    _rule(
        "required-to-nullable",
        UNDETERMINED,
        "- y - -",
        "breaking in a join, in NOT IN, as a key or where nulls are rejected",
        storage=COMPATIBLE,
        breaks_if=(
            ConsumerUse.KEY,
            ConsumerUse.JOINED,
            ConsumerUse.NOT_IN,
            ConsumerUse.NOT_NULL_SINK,
        ),
    ),
    _rule("nullable-to-required", COMPATIBLE, "- n - -", storage=BREAKING),
    _rule(
        "reordered",
        INFORMATIONAL,
        "- - - -",
        "breaking for an INSERT without a list, a UNION or CSV without a header",
        flags=("positional",),
        breaks_if=(ConsumerUse.POSITIONAL,),
    ),
    _rule("partitioning", COMPATIBLE, flags=("cost",)),
    _rule(
        "key",
        UNDETERMINED,
        "- - - -",
        "breaking where it is joined on",
        storage=COMPATIBLE,
        breaks_if=(ConsumerUse.JOINED,),
    ),
    _rule("default", INFORMATIONAL),
    _rule("description", INFORMATIONAL),
    _rule("tags", INFORMATIONAL),
)

RULES: Final = {
    row.rule: row
    for rows in (
        _NUMBER_RULES,
        _STRING_RULES,
        _TIME_RULES,
        _NESTED_TYPE_RULES,
        _OTHER_TYPE_RULES,
        _FIELD_RULES,
    )
    for row in rows
}
