"""What differs between two snapshots, and how much each difference matters."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import (
    Cost,
    Documentation,
    Governance,
    Lineage,
    Location,
    Owner,
    Ownership,
    Quality,
    QualityCheck,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, UseKind
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.types import INT64
from lumos.schemas.comparison import compare as schema_changes
from lumos.schemas.compatibility import classify
from lumos.schemas.findings import ChangeRow, change_rows
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.differences import COMPARED, OPTIONAL_ASPECTS, Difference
from lumos.snapshots.format.document import SnapshotFacts, SnapshotSelection
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.writer import write_snapshot
from snapshots.format.test_encodings import NAMES
from snapshots.sample_inventories import FACTS, everything, many

BASE = CatalogEntry(urn="lumos://s3/a", name="a", platform="s3")


def by_rules(urn: str, before: Schema, after: Schema, format: str | None) -> tuple[ChangeRow, ...]:
    """The judge that the engine passes in."""
    return change_rows(urn, classify(schema_changes(before, after), format=format))


def differences(
    folder: Path,
    before: Iterable[CatalogEntry],
    after: Iterable[CatalogEntry],
    *,
    facts: tuple[SnapshotFacts, SnapshotFacts] = (FACTS, FACTS),
    **options: Any,
) -> list[Difference]:
    """What differs between two snapshots of those entries."""
    write_snapshot(folder / "before.jsonl", facts[0], before)
    write_snapshot(folder / "after.jsonl", facts[1], after)
    found = compare(
        folder / "before.jsonl", folder / "after.jsonl", compare_schemas=by_rules, **options
    )
    return list(found)


def difference_rows(found: Iterable[Difference]) -> list[tuple[str, str, str]]:
    return [(each.path, each.change, each.impact) for each in found]


def edge(urn: str, **facts: Any) -> Lineage:
    return Lineage(upstream=(UpstreamEdge(urn=urn, **facts),))


MAPPED = ColumnMapping(upstream="a", downstream="b")


def used(*clauses: tuple[str, str | None], line: int | None = None) -> Lineage:
    """An edge from x with columns that are joined on."""
    uses = (
        ColumnUse(upstream=column, usage=UseKind.JOIN, expression=text, line=line)
        for column, text in clauses
    )
    return Lineage(upstream=(UpstreamEdge(urn="x", uses=tuple(uses)),))


def columns(*mapped: tuple[str, str, str | None]) -> Lineage:
    return edge(
        "x",
        columns=tuple(
            ColumnMapping(upstream=old, downstream=new, transformation=how)
            for old, new, how in mapped
        ),
    )


def owners(*names: str, kind: Any = "user") -> Ownership:
    return Ownership(owners=tuple(Owner(name=name, kind=kind) for name in names))


def check(status: Any, details: str | None = None) -> Quality:
    return Quality(checks=(QualityCheck(name="unique", status=status, details=details),))


@pytest.mark.parametrize(
    ("aspect", "before", "after", "expected"),
    [
        (
            "schema",
            parse_schema("a INT64"),
            parse_schema("b INT64"),
            [("a", "removed", "breaking"), ("b", "added", "non-breaking")],
        ),
        (
            "schema",
            parse_schema("a INT32"),
            parse_schema("a INT64"),
            [("a", "type_changed", "non-breaking")],
        ),
        (
            "schema",
            parse_schema("a INT64"),
            parse_schema("a INT64 COMMENT 'x'"),
            [("a", "description", "informational")],
        ),
        (
            "schema",
            parse_schema("a UNKNOWN('x')"),
            parse_schema("a INT64"),
            [("a", "type_changed", "breaking")],
        ),
        ("schema", None, parse_schema("a INT64"), [("", "added", "non-breaking")]),
        ("schema", parse_schema("a INT64"), None, [("", "removed", "breaking")]),
        ("lineage", None, edge("x"), [("upstream[x]", "added", "non-breaking")]),
        ("lineage", edge("x"), None, [("upstream[x]", "removed", "breaking")]),
        (
            "lineage",
            edge("x"),
            edge("x", type="VIEW"),
            [("upstream[x].type", "changed", "informational")],
        ),
        (
            "lineage",
            columns(("a", "b", None)),
            columns(),
            [("upstream[x].columns[a -> b]", "removed", "breaking")],
        ),
        (
            "lineage",
            columns(),
            columns(("a", "b", None)),
            [("upstream[x].columns[a -> b]", "added", "non-breaking")],
        ),
        (
            "lineage",
            columns(("a", "b", None)),
            columns(("a", "b", "sum(a)")),
            [("upstream[x].columns[a -> b]", "changed", "informational")],
        ),
        (
            "lineage",
            used(("a", None)),
            used(),
            [("upstream[x].uses[a JOIN]", "removed", "non-breaking")],
        ),
        (
            "lineage",
            used(),
            used(("a", "a = b")),
            [("upstream[x].uses[a JOIN: a = b]", "added", "informational")],
        ),
        (
            "lineage",
            used(("a", "a = b"), line=3),
            used(("a", "a = b"), line=4),
            [("upstream[x].uses[a JOIN: a = b].line", "changed", "informational")],
        ),
        (
            "lineage",
            Lineage(upstream=(UpstreamEdge(urn="x", columns=(MAPPED,)),)),
            Lineage(
                upstream=(
                    UpstreamEdge(
                        urn="x", columns=(msgspec.structs.replace(MAPPED, cast_to="BIGINT"),)
                    ),
                )
            ),
            [("upstream[x].columns[a -> b].cast_to", "added", "informational")],
        ),
        (
            "ownership",
            owners("ann"),
            owners("ann", "bob"),
            [("owners[user bob]", "added", "non-breaking")],
        ),
        (
            "ownership",
            owners("ann", "bob"),
            owners("ann"),
            [("owners[user bob]", "removed", "non-breaking")],
        ),
        ("ownership", owners("ann"), None, [("owners[user ann]", "removed", "breaking")]),
        ("ownership", owners("ann", "bob"), owners("bob", "ann"), []),
        (
            "ownership",
            owners("ann"),
            owners("ann", kind="group"),
            [
                ("owners[user ann]", "removed", "non-breaking"),
                ("owners[group ann]", "added", "non-breaking"),
            ],
        ),
        (
            "documentation",
            Documentation(description="a"),
            Documentation(description="b"),
            [("description", "changed", "informational")],
        ),
        (
            "documentation",
            Documentation(description="a"),
            None,
            [("description", "removed", "non-breaking")],
        ),
        (
            "documentation",
            None,
            Documentation(business_context="a"),
            [("business_context", "added", "informational")],
        ),
        (
            "documentation",
            Documentation(domain="a"),
            Documentation(domain="b"),
            [("domain", "changed", "non-breaking")],
        ),
        (
            "governance",
            Governance(compliance=("GDPR",)),
            None,
            [("compliance", "removed", "breaking")],
        ),
        (
            "governance",
            None,
            Governance(compliance=("GDPR",)),
            [("compliance", "added", "non-breaking")],
        ),
        (
            "governance",
            Governance(tags=("a", "b")),
            Governance(tags=("b", "c")),
            [("tags", "removed", "non-breaking"), ("tags", "added", "informational")],
        ),
        ("governance", Governance(tags=("PII",)), None, [("tags", "removed", "breaking")]),
        (
            "governance",
            Governance(terms=("a",)),
            Governance(terms=("b",)),
            [("terms", "removed", "non-breaking"), ("terms", "added", "informational")],
        ),
        ("governance", Governance(tags=("a", "b")), Governance(tags=("b", "a")), []),
        ("quality", Quality(score=0.9), Quality(score=0.8), [("score", "changed", "non-breaking")]),
        (
            "quality",
            Quality(score=0.8),
            Quality(score=0.9),
            [("score", "changed", "informational")],
        ),
        (
            "quality",
            Quality(dimensions={"a": 0.9}),
            None,
            [("dimensions[a]", "removed", "non-breaking")],
        ),
        ("quality", check("PASSED"), check("FAILED"), [("checks[unique]", "changed", "breaking")]),
        (
            "quality",
            check("PASSED"),
            check("WARNING"),
            [("checks[unique]", "changed", "non-breaking")],
        ),
        (
            "quality",
            check("FAILED"),
            check("PASSED"),
            [("checks[unique]", "changed", "informational")],
        ),
        ("quality", check("PASSED"), None, [("checks[unique]", "removed", "non-breaking")]),
        (
            "quality",
            check("PASSED", "a"),
            check("PASSED", "b"),
            [("checks[unique].details", "changed", "informational")],
        ),
        ("lineage", None, Lineage(), []),
        ("quality", Quality(), None, []),
    ],
)
def test_a_difference_is_judged_by_what_it_takes_away(
    tmp_path: Path, aspect: str, before: Any, after: Any, expected: list[tuple[str, str, str]]
) -> None:
    old = msgspec.structs.replace(BASE, **{aspect: before})
    new = msgspec.structs.replace(BASE, **{aspect: after})
    found = differences(tmp_path, [old], [new])
    assert difference_rows(found) == expected
    assert {(each.kind, each.key, each.aspect) for each in found} <= {("dataset", BASE.urn, aspect)}


def test_what_cannot_be_determined_says_so(tmp_path: Path) -> None:
    old = msgspec.structs.replace(BASE, schema=parse_schema("a UNKNOWN('x')"))
    new = msgspec.structs.replace(BASE, schema=parse_schema("a INT64"))
    (found,) = differences(tmp_path, [old], [new])
    assert "undetermined" in found.notes
    assert (found.before, found.after) == ("UNKNOWN('x')", "INT64")


def test_native_types_that_differ_are_no_silent_loss(tmp_path: Path) -> None:
    field = Field(name="a", type=INT64, native_type="bigint")
    old = msgspec.structs.replace(BASE, schema=Schema(fields=(field,)))
    new = msgspec.structs.replace(BASE, schema=parse_schema("a INT64"))
    (found,) = differences(tmp_path, [old], [new])
    assert (found.impact, found.notes) == ("informational", ("native types or field ids differ",))


def test_schemas_that_nobody_can_compare_are_called_breaking(tmp_path: Path) -> None:
    twice = Schema(fields=(Field(name="a", type=INT64), Field(name="a", type=INT64)))
    old = msgspec.structs.replace(BASE, schema=twice)
    new = msgspec.structs.replace(BASE, schema=parse_schema("a INT64"))
    (found,) = differences(tmp_path, [old], [new])
    assert found.impact == "breaking"
    assert "is defined twice" in found.notes[0]


def test_added_and_removed_datasets_are_reported_as_a_whole(tmp_path: Path) -> None:
    entries = list(many(4))
    found = differences(tmp_path, entries[:3], entries[1:])
    assert [(each.key, each.aspect, each.change, each.impact) for each in found] == [
        (entries[0].urn, "entry", "removed", "breaking"),
        (entries[3].urn, "entry", "added", "non-breaking"),
    ]


def test_a_deleted_dataset_is_one_that_is_not_there(tmp_path: Path) -> None:
    gone = msgspec.structs.replace(BASE, deleted=True)
    assert [each.change for each in differences(tmp_path, [BASE], [gone])] == ["removed"]
    assert [each.change for each in differences(tmp_path, [gone], [BASE])] == ["added"]
    assert differences(tmp_path, [gone], []) == []
    assert differences(tmp_path, [], [gone]) == []


def test_a_part_of_an_estate_says_nothing_of_the_rest(tmp_path: Path) -> None:
    entries = list(many(3))
    incremental = msgspec.structs.replace(FACTS, scope="incremental")
    gone = msgspec.structs.replace(entries[1], deleted=True)
    found = differences(tmp_path, entries, [gone], facts=(FACTS, incremental))
    assert [(each.key, each.change) for each in found] == [(gone.urn, "removed")]
    selected = msgspec.structs.replace(
        FACTS, scope="selected", selection=SnapshotSelection(tags=("a",))
    )
    assert differences(tmp_path, entries, entries[:1], facts=(FACTS, selected)) == []
    assert differences(tmp_path, entries[:1], entries, facts=(selected, FACTS)) == []
    both = differences(tmp_path, entries, entries[:1], facts=(selected, selected))
    assert len(both) == 2


def test_aspects_that_were_left_out_are_not_missed(tmp_path: Path) -> None:
    whole = msgspec.structs.replace(BASE, quality=Quality(score=0.9), ownership=owners("ann"))
    without = msgspec.structs.replace(FACTS, omitted=("quality",))
    found = differences(tmp_path, [whole], [BASE], facts=(FACTS, without))
    assert [each.aspect for each in found] == ["ownership"]


def test_aspects_beside_the_main_ones_are_compared_when_asked_for(tmp_path: Path) -> None:
    new = msgspec.structs.replace(
        BASE,
        format="parquet",
        location=Location(uri="s3://b"),
        properties={"a": "2", "c": "3"},
        cost=Cost(currency="EUR", period="monthly", own={"storage": 1.0}),
    )
    old = msgspec.structs.replace(
        BASE, format="orc", location=Location(uri="s3://a"), properties={"a": "1", "b": "2"}
    )
    assert {each.aspect for each in differences(tmp_path, [old], [new])} == {"properties"}
    found = differences(tmp_path, [old], [new], aspects=(*COMPARED, *OPTIONAL_ASPECTS))
    assert [
        (each.aspect, *rest) for each, rest in zip(found, difference_rows(found), strict=True)
    ] == [
        ("properties", "a", "changed", "informational"),
        ("properties", "b", "removed", "non-breaking"),
        ("properties", "c", "added", "informational"),
        ("format", "", "changed", "breaking"),
        ("location", "uri", "changed", "breaking"),
        ("cost", "currency", "added", "informational"),
        ("cost", "period", "added", "informational"),
        ("cost", "own", "added", "informational"),
    ]


def test_what_only_one_catalog_knows_is_missed_when_it_is_gone(tmp_path: Path) -> None:
    carried = {"datahub": {"embed": [1], "deprecation": [2]}, "atlas": 7}
    old = msgspec.structs.replace(BASE, raw=carried)
    new = msgspec.structs.replace(BASE, raw={"datahub": {"deprecation": [3], "siblings": [4]}})
    found = differences(tmp_path, [old], [new])
    assert [
        (each.aspect, *rest) for each, rest in zip(found, difference_rows(found), strict=True)
    ] == [
        ("raw", "atlas", "removed", "informational"),
        ("raw", "datahub.deprecation", "changed", "informational"),
        ("raw", "datahub.embed", "removed", "informational"),
        ("raw", "datahub.siblings", "added", "informational"),
    ]
    assert differences(tmp_path, [old], [old]) == []


def test_what_lumos_has_no_kind_for_is_missed_when_it_is_gone(tmp_path: Path) -> None:
    chart = CatalogEntity(urn="urn:li:chart:(looker,1)", raw={"datahub": {"chartInfo": [1]}})
    term = GlossaryTerm(name="t", raw={"datahub": {"institutionalMemory": [1]}})
    for name, others, glossary in (("a", [chart], [term]), ("b", [], [GlossaryTerm(name="t")])):
        write_snapshot(tmp_path / f"{name}.json", FACTS, [], others=others, glossary=glossary)
    found = list(compare(tmp_path / "a.json", tmp_path / "b.json", compare_schemas=by_rules))
    assert [(each.kind, each.aspect, each.path, each.change, each.impact) for each in found] == [
        ("term", "raw", "datahub.institutionalMemory", "removed", "informational"),
        ("other", "entry", "", "removed", "informational"),
    ]


def test_terms_people_and_jobs_are_compared_too(tmp_path: Path) -> None:
    job = Job(urn="lumos://airflow/x", name="x", platform="airflow", inputs=("a", "b"))
    write_snapshot(
        tmp_path / "a.json", FACTS, (),
        glossary=[GlossaryTerm(name="Customer", definition="old"), GlossaryTerm(name="Gone")],
        users=[User(name="ann")],
        groups=[Group(name="team", members=("ann",))],
        jobs=[job],
    )  # fmt: skip
    write_snapshot(
        tmp_path / "b.json", FACTS, (),
        glossary=[GlossaryTerm(name="Customer", definition="new")],
        users=[User(name="ann", email="a@b.c"), User(name="bob")],
        groups=[Group(name="team", members=("ann", "bob"))],
        jobs=[msgspec.structs.replace(job, inputs=("b", "c"))],
    )  # fmt: skip
    found = compare(tmp_path / "a.json", tmp_path / "b.json", compare_schemas=by_rules)
    rows = [
        (each.kind, each.key, each.aspect, each.path, each.change, each.impact) for each in found
    ]
    assert rows == [
        ("term", "Customer", "governance", "definition", "changed", "informational"),
        ("term", "Gone", "entry", "", "removed", "non-breaking"),
        ("user", "ann", "ownership", "email", "added", "informational"),
        ("user", "bob", "entry", "", "added", "informational"),
        ("group", "team", "ownership", "members", "added", "informational"),
        ("job", "lumos://airflow/x", "lineage", "inputs", "removed", "breaking"),
        ("job", "lumos://airflow/x", "lineage", "inputs", "added", "non-breaking"),
    ]


@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_encodings_make_no_difference(tmp_path: Path, first: str, second: str) -> None:
    write_snapshot(tmp_path / "a" / first, FACTS, **everything())
    write_snapshot(tmp_path / "b" / second, FACTS, **everything())
    everywhere = (*COMPARED, *OPTIONAL_ASPECTS)
    found = compare(
        tmp_path / "a" / first,
        tmp_path / "b" / second,
        compare_schemas=by_rules,
        aspects=everywhere,
    )
    assert list(found) == []


def test_a_comparison_finds_what_a_plain_one_finds(tmp_path: Path) -> None:
    dice = random.Random(7)
    entries = list(many(300))
    before = {entry.urn: entry for entry in entries if dice.random() < 0.8}
    after = {
        entry.urn: entry
        if dice.random() < 0.7
        else msgspec.structs.replace(entry, documentation=Documentation(description="new"))
        for entry in entries
        if dice.random() < 0.8
    }
    found = differences(tmp_path, before.values(), after.values())
    assert {each.key for each in found if each.change == "removed"} == before.keys() - after.keys()
    assert {
        each.key for each in found if each.aspect == "entry" and each.change == "added"
    } == after.keys() - before.keys()
    assert {each.key for each in found if each.aspect == "documentation"} == {
        urn for urn in before.keys() & after.keys() if before[urn] != after[urn]
    }
    assert [each.key for each in found] == sorted(each.key for each in found)


def test_damage_stops_a_comparison_where_it_is_reached(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.jsonl", FACTS, many(5))
    write_snapshot(tmp_path / "b.jsonl", FACTS, many(5))
    text = (tmp_path / "b.jsonl").read_text()
    (tmp_path / "b.jsonl").write_text(text.replace('"format":"parquet"', '"format":"orc"', 1))
    with pytest.raises(SnapshotError, match=r"line 2: dataset"):
        list(compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", compare_schemas=by_rules))
