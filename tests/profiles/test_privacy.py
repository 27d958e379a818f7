"""What of values is measured, kept, shown and given away, by the table of rules."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lumos.catalogs.three_way_merge import merge_aspect
from lumos.datasets.reports import ShowReport
from lumos.discovery.reports import DatasetReport
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ColumnProfile,
    ColumnStatistics,
    Dataset,
    Governance,
    Profile,
    Quality,
    QualityCheck,
    Statistics,
    ValueCount,
)
from lumos.model.json_codec import to_plain
from lumos.model.privacy import (
    allowed_quality,
    for_catalogs,
    is_private,
    private_paths,
    select_frequent,
)
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import parse_type
from lumos.profiles.columns import profiled_columns, with_permissions
from lumos.profiles.reports import with_profile

AT = datetime(2024, 1, 1, tzinfo=UTC)
LATER = datetime(2024, 2, 1, tzinfo=UTC)


def dataset(type: str, *, governance: Governance | None = None, **facts: Any) -> Dataset:
    field = Field(name="a", type=parse_type(type), **facts)
    return Dataset(
        urn="lumos://file/a",
        name="a",
        platform="file",
        schema=Schema(fields=(field,)),
        governance=governance,
    )


def allowed(of: Dataset, named: tuple[str, ...] = ()) -> dict[str, tuple[bool, bool]]:
    assert of.schema is not None
    leaves = with_permissions(profiled_columns(of.schema), of, named=named)
    return {leaf.path: (leaf.values, leaf.top) for leaf in leaves}


@pytest.mark.parametrize(
    ("type", "values", "top"),
    [
        ("INT64", True, True),
        ("UINT64", True, True),
        ("FLOAT32", True, True),
        ("DECIMAL(9,2)", True, True),
        ("BOOLEAN", True, True),
        ("DATE", True, True),
        ("TIME(us)", True, True),
        ("TIMESTAMPTZ(us)", True, True),
        ("DURATION(us)", True, True),
        ("STRING", False, False),
        ("STRING(2)", False, False),
        ("ENUM('a','b')", False, False),
        ("JSON", False, False),
        ("UUID", False, False),
        ("BINARY", False, False),
        ("ARRAY<INT64>", False, False),
        ("MAP<STRING, INT64>", False, False),
        ("UNION<INT64, STRING>", False, False),
        ("UNKNOWN('geometry')", False, False),
    ],
)
def test_which_values_are_measured_is_decided_by_type(type: str, values: bool, top: bool) -> None:
    assert allowed(dataset(type)) == {"a": (values, top)}


def test_frequent_texts_are_reported_where_the_configuration_names_them() -> None:
    assert allowed(dataset("STRING"), named=("a",)) == {"a": (False, True)}
    assert allowed(dataset("BINARY"), named=("a",)) == {"a": (False, False)}
    private = dataset("STRING", tags=("PII",))
    assert allowed(private, named=("a",)) == {"a": (False, False)}, "a label counts more"


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"tags": ("PII",)}, id="tag"),
        pytest.param({"tags": ("PII.Sensitive",)}, id="tag of a classification"),
        pytest.param({"terms": ("Personal Data",)}, id="term"),
        pytest.param({"compliance": ("GDPR",)}, id="compliance"),
        pytest.param({"governance": Governance(tags=("contains-pii",))}, id="tag of the dataset"),
        pytest.param({"governance": Governance(compliance=("HIPAA",))}, id="dataset's compliance"),
    ],
)
def test_a_label_on_a_field_or_its_dataset_keeps_all_values_back(facts: dict[str, Any]) -> None:
    assert allowed(dataset("INT64", **facts)) == {"a": (False, False)}


@pytest.mark.parametrize(
    ("label", "private"),
    [
        ("pii", True),
        ("PersonalData", True),
        ("is_confidential", True),
        ("PII do not share", True),
        ("PII, not anonymised", True),
        ("confidential: no export", True),
        ("Export no: PII", True),
        ("no export - confidential", True),
        ("not PII, but sensitive", True),
        ("PIIs", True),
        ("personaldata", True),
        ("PIIdata", True),
        ("non-sensitive", False),
        ("nonPII", False),
        ("no personal data", False),
        ("PII.None", False),
        ("PII: No", False),
        ("gold", False),
        ("capital", False),
        ("healthy", False),
    ],
)
def test_words_of_labels(label: str, private: bool) -> None:
    assert is_private([label]) is private


@pytest.mark.parametrize(
    ("path", "private"),
    [("a.b", {"a.b"}), ("a", {"a.b", "a.c"}), ("a.l[]", {"a.l"}), ("a.b.x", set())],
)
def test_a_label_inside_a_column_holds_for_what_is_inside(path: str, private: set[str]) -> None:
    type = "STRUCT<b: INT64, c: INT64>" if path != "a.l[]" else "STRUCT<l: ARRAY<INT64>>"
    note = NestedField(path=path, tags=("PII",))
    labelled = dataset(type, nested=(note,))
    assert labelled.schema is not None
    paths = [leaf.path for leaf in profiled_columns(labelled.schema)]
    assert private_paths(labelled.schema, paths, None) == private


def test_rare_values_are_not_reported() -> None:
    counts = [("a", 500), ("b", 10), ("c", 9), ("d", 1)]
    assert [each.value for each in select_frequent(counts, rows=600)] == ["a", "b"]
    assert [each.value for each in select_frequent(counts, rows=20_000)] == ["a"]
    assert len(select_frequent([(str(n), 100) for n in range(50)], rows=1000)) == 10


def full_profile(at: datetime = AT) -> Profile:
    column = ColumnProfile(
        nulls=1,
        distinct=3,
        minimum="1",
        maximum="9",
        mean="4",
        stddev=1.5,
        quantiles={"0.5": "4"},
        top=(ValueCount(value="4", count=20),),
        shortest=1,
    )
    return Profile(measured_at=at, rows=100, columns={"a": column})


COUNTS = ColumnProfile(nulls=1, distinct=3, shortest=1)


def test_a_label_that_came_later_hides_what_was_kept_before() -> None:
    before = msgspec.structs.replace(dataset("INT64"), quality=Quality(profile=full_profile()))
    assert allowed_quality(before) == before.quality
    after = msgspec.structs.replace(dataset("INT64", tags=("PII",)), quality=before.quality)
    quality = allowed_quality(after)
    assert quality is not None
    assert quality.profile is not None
    assert quality.profile.columns == {"a": COUNTS}


@pytest.mark.parametrize(
    ("measured", "name", "type", "reported"),
    [
        pytest.param("a", "b", "INT64", False, id="a column"),
        pytest.param("s.a", "s", "STRUCT<b: INT64>", False, id="a member"),
        pytest.param("a", "a", "STRUCT<b: INT64>", False, id="a column that has members now"),
        pytest.param("s.a", "s", "STRUCT<a: INT64>", True, id="one that is still there"),
    ],
)
def test_a_deleted_column_has_no_values_because_its_labels_are_deleted(
    measured: str, name: str, type: str, reported: bool
) -> None:
    (column,) = full_profile().columns.values()
    profile = msgspec.structs.replace(full_profile(), columns={measured: column})
    now = Schema(fields=(Field(name=name, type=parse_type(type)),))
    after = msgspec.structs.replace(dataset("INT64"), schema=now, quality=Quality(profile=profile))
    quality = allowed_quality(after)
    assert quality is not None
    assert quality.profile is not None
    assert quality.profile.columns == {measured: column if reported else COUNTS}


def test_the_range_of_a_private_column_is_not_shown_from_its_statistics() -> None:
    column = ColumnStatistics(null_count=3, minimum="17", maximum="4711")
    statistics = Statistics(columns={"a": column})
    reported = {}
    for tags in ((), ("PII",)):
        found = msgspec.structs.replace(dataset("INT64", tags=tags), statistics=statistics)
        shown = ShowReport.of(found, state="live").dataset["statistics"]["columns"]["a"]
        scanned = DatasetReport.of(found, change="unchanged").statistics
        assert scanned is not None
        assert shown == to_plain(scanned.columns["a"])
        reported[tags] = scanned.columns["a"]
    assert reported == {(): column, ("PII",): ColumnStatistics(null_count=3)}


def test_catalogs_hear_of_counts_alone() -> None:
    entry = CatalogEntry.of(dataset("INT64"))
    entry = msgspec.structs.replace(entry, quality=Quality(score=0.5, profile=full_profile()))
    reported = for_catalogs(entry).quality
    assert reported is not None
    assert reported.score == 0.5
    assert reported.profile is not None
    assert reported.profile.columns == {"a": COUNTS}


def test_what_other_validators_say_stays_beside_a_profile() -> None:
    theirs = Quality(
        score=0.9,
        measured_at=AT,
        validator="great_expectations",
        checks=(QualityCheck(name="unique", status="PASSED"),),
    )
    both = with_profile(theirs, full_profile(LATER), completeness=0.5)
    assert both == msgspec.structs.replace(theirs, profile=full_profile(LATER))
    own = with_profile(None, full_profile(), completeness=0.5)
    assert (own.validator, own.dimensions) == ("lumos", {"completeness": 0.5})
    assert with_profile(own, full_profile(LATER), completeness=0.7).measured_at == LATER


@pytest.mark.parametrize(
    ("there", "brought", "kept"),
    [
        pytest.param(full_profile(LATER), full_profile(AT), full_profile(LATER), id="newer there"),
        pytest.param(full_profile(AT), full_profile(LATER), full_profile(LATER), id="newer comes"),
        pytest.param(full_profile(AT), None, full_profile(AT), id="none comes"),
        pytest.param(None, full_profile(AT), full_profile(AT), id="none there"),
    ],
)
def test_an_import_brings_what_validators_say_and_keeps_the_newer_profile(
    there: Profile | None, brought: Profile | None, kept: Profile
) -> None:
    theirs = Quality(score=0.1, profile=there)
    ours = Quality(score=0.9, validator="soda", profile=brought)
    merged = merge_aspect("quality", None, theirs, ours)
    assert merged == msgspec.structs.replace(ours, profile=kept)
