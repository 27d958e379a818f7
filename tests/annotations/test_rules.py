"""Whose words count, and where they stand."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.annotations.rules import (
    annotate,
    annotations_of,
    keys_of_missing_fields,
    owner_from_key,
    owner_key,
    resolve,
)
from lumos.annotations.writer import describe_changes, summarise_changes
from lumos.model.annotation import Annotation, AnnotationKey, Slot
from lumos.model.dataset import Dataset, Documentation, Governance, Owner, Ownership
from lumos.model.schema import parse_schema
from lumos.model.type_path import field_paths

AT = datetime(2024, 1, 1, tzinfo=UTC)
DESCRIPTION = AnnotationKey("", "description")
SCHEMA = parse_schema("id INT64\n`odd.name` STRUCT<a: ARRAY<STRUCT<b: STRING>>, `c d`: INT64>")
DATASET = Dataset(urn="lumos://file/a", name="a", platform="file", schema=SCHEMA)


def reported_annotations(
    *words: tuple[str, str | None, int],
) -> dict[str, dict[AnnotationKey, Annotation]]:
    return {
        reporter: {DESCRIPTION: Annotation(value=value, at=AT + timedelta(hours=hour))}
        for reporter, value, hour in words
    }


@pytest.mark.parametrize(
    ("words", "by"),
    [
        ([("user", "a", 0), ("dbt:shop", "b", 1)], "user"),
        ([("user", "a", 0), ("file:x", "b", 1)], "file:x"),
        ([("user", "a", 1), ("file:x", "b", 0)], "user"),
        ([("import", "a", 1), ("user", "b", 0)], "import"),
        ([("source", "a", 1), ("dbt:shop", "b", 0)], "dbt:shop"),
        ([("inferred", "a", 1), ("source", "b", 0)], "source"),
        ([("dbt:a", "a", 0), ("dbt:b", "b", 1)], "dbt:b"),
        ([("dbt:a", "a", 0), ("dbt:b", "b", 0)], "dbt:a"),
        ([("user", None, 0), ("dbt:shop", "b", 1)], "user"),
    ],
)
def test_the_right_word_counts(words: list[tuple[str, str | None, int]], by: str) -> None:
    found = resolve(reported_annotations(*words), DESCRIPTION)
    assert found is not None
    assert found.reporter == by
    assert resolve(reported_annotations(*words), AnnotationKey("x", "description")) is None


def test_paths_lead_to_every_field() -> None:
    assert field_paths(SCHEMA) == [
        "id", "`odd.name`", "`odd.name`.a", "`odd.name`.a[]", "`odd.name`.a[].b",
        "`odd.name`.`c d`",
    ]  # fmt: skip


SLOTS: tuple[Slot, ...] = ("tag", "term", "compliance", "property", "description")
NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def changes(draw: st.DrawFn) -> dict[AnnotationKey, str | None]:
    found: dict[AnnotationKey, str | None] = {}
    for _ in range(draw(st.integers(0, 8))):
        path = draw(st.sampled_from(["", *field_paths(SCHEMA)]))
        slot = draw(st.sampled_from(SLOTS))
        name = "" if slot == "description" else draw(NAMES)
        has_text = slot in ("description", "property")
        found[AnnotationKey(path, slot, name)] = draw(NAMES) if has_text else ""
    return found


@given(changes())
def test_what_is_said_is_read_again_and_taken_back_leaves_nothing(
    wanted: dict[AnnotationKey, str | None],
) -> None:
    spoken = annotate(DATASET, wanted)
    assert annotations_of(spoken) == wanted
    silent = annotate(spoken, dict.fromkeys(wanted))
    assert annotations_of(silent) == {}
    assert silent.schema == SCHEMA


def test_an_aspect_that_was_there_stays_there_though_empty() -> None:
    full = Dataset(
        urn="lumos://file/a",
        name="a",
        platform="file",
        documentation=Documentation(description="text"),
        governance=Governance(tags=("x",)),
        ownership=Ownership(owners=(Owner(name="jane"),)),
        properties={"a": "b"},
    )
    gone = annotate(full, dict.fromkeys(annotations_of(full)))
    assert (gone.documentation, gone.governance) == (Documentation(), Governance())
    assert (gone.ownership, gone.properties) == (Ownership(), {})
    assert annotate(DATASET, {DESCRIPTION: None}).documentation is None


@pytest.mark.parametrize(
    "owner",
    [Owner(name="a:b/c", kind="group", type="DATA_STEWARD"), Owner(name="jane@example.com")],
)
def test_owners_have_names_as_words(owner: Owner) -> None:
    assert owner_from_key(owner_key(owner)) == owner


def test_fields_that_are_not_there_are_reported() -> None:
    words = {
        AnnotationKey("id", "tag", "a"): Annotation(),
        AnnotationKey("gone", "tag", "a"): Annotation(),
        DESCRIPTION: Annotation(),
    }
    assert list(keys_of_missing_fields(SCHEMA, {"user": words})) == [
        AnnotationKey("gone", "tag", "a")
    ]


def test_changes_are_reported_in_phrases() -> None:
    before = {AnnotationKey("", "description"): "old", AnnotationKey("id", "property", "p"): "x"}
    wanted: dict[AnnotationKey, str | None] = {
        AnnotationKey("", "description"): "new",
        AnnotationKey("", "domain"): "sales",
        AnnotationKey("", "tag", "a"): "",
        AnnotationKey("", "tag", "b"): "",
        AnnotationKey("", "owner", "DATA_STEWARD:group:team"): None,
        AnnotationKey("id", "property", "p"): "y",
        AnnotationKey("id", "property", "q"): "y",
        AnnotationKey("id", "description"): None,
    }
    phrases = describe_changes(before, wanted)
    assert phrases == [
        "description changed",
        "domain written",
        "tags a, b added",
        "owner team (DATA_STEWARD) removed",
        "property p of id changed",
        "property q of id written",
        "description of id removed",
    ]
    assert summarise_changes(before, wanted).endswith("property p of id changed; 2 more changes")
