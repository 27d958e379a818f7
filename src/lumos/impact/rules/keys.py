"""Changes of a key, which only those notice who join on it."""

from collections.abc import Iterator, Sequence

from lumos.impact.rules.downstream import Making
from lumos.impact.rules.facts import Told
from lumos.impact.rules.verdicts import BREAKING, COMPATIBLE, UNDETERMINED, Decision
from lumos.model.change import FieldAdded, Finding, KeyChanged
from lumos.model.lineage import UseKind
from lumos.model.schema import Schema
from lumos.schemas.paths import column_of


def told_of_keys(
    findings: Sequence[Finding], making: Making, schema: Schema | None
) -> Iterator[Told]:
    """What changes of the key mean to a dataset that is made from the changed one."""
    for finding in findings:
        change = finding.change
        if isinstance(change, KeyChanged):
            yield from _joined(making, {column_of(change.path)}, change.path)
        elif isinstance(change, FieldAdded) and change.after.key:
            keys = {field.name for field in schema.fields if field.key} if schema else set()
            yield from _joined(making, keys, change.path)


def _joined(making: Making, columns: set[str], path: str) -> Iterator[Told]:
    wanted = {name.casefold() for name in columns}
    if not any(edge.columns or edge.uses for edge in making.edges) and making.sql is None:
        yield Told(Decision(UNDETERMINED, f"whether it joins on {path} is not known"))
        return
    for edge in making.edges:
        for use in edge.uses:
            if use.usage is UseKind.JOIN and use.upstream.casefold() in wanted:
                text = f"joins on {use.upstream}, and the key changes by {path}"
                yield Told(
                    Decision(BREAKING, text), use.usage.value, use.expression, use.line, use.file
                )
                return
    yield Told(Decision(COMPATIBLE, f"does not join on {path}"))
