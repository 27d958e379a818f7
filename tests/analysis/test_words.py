"""Whose words count, and where they stand."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.annotations.phrases import sentences_of, summary_of_words
from lumos.annotations.rules import (
    owner_name,
    owner_of,
    paths_of,
    reworded,
    settle,
    vanished,
    words_in,
)
from lumos.model.dataset import Dataset, Documentation, Governance, Owner, Ownership
from lumos.model.schema import parse_schema
from lumos.model.words import Key, Saying, Slot, Word

AT = datetime(2024, 1, 1, tzinfo=UTC)
DESCRIPTION = Key("", "description")
SCHEMA = parse_schema("id INT64\n`odd.name` STRUCT<a: ARRAY<STRUCT<b: STRING>>, `c d`: INT64>")
DATASET = Dataset(urn="lumos://file/a", name="a", platform="file", schema=SCHEMA)


def said(*words: tuple[str, str | None, int]) -> dict[str, dict[Key, Word]]:
    return {
        reporter: {DESCRIPTION: Word(value=value, at=AT + timedelta(hours=hour))}
        for reporter, value, hour in words
    }


@pytest.mark.parametrize(
    ("words", "by"),
    [
        ([("user", "a", 0), ("dbt:shop", "b", 1)], "user"),
        ([("user", "a", 0), ("file:x", "b", 1)], "file:x"),
        ([("user", "a", 1), ("file:x", "b", 0)], "user"),
        ([("import", "a", 1), ("user", "b", 0)], "import"),
        ([("place", "a", 1), ("dbt:shop", "b", 0)], "dbt:shop"),
        ([("inferred", "a", 1), ("place", "b", 0)], "place"),
        ([("dbt:a", "a", 0), ("dbt:b", "b", 1)], "dbt:b"),
        ([("dbt:a", "a", 0), ("dbt:b", "b", 0)], "dbt:a"),
        ([("user", None, 0), ("dbt:shop", "b", 1)], "user"),
    ],
)
def test_the_right_word_counts(words: list[tuple[str, str | None, int]], by: str) -> None:
    found = settle(said(*words), DESCRIPTION)
    assert found is not None
    assert found.reporter == by
    assert settle(said(*words), Key("x", "description")) is None


def test_paths_lead_to_every_field() -> None:
    assert paths_of(SCHEMA) == [
        "id", "`odd.name`", "`odd.name`.a", "`odd.name`.a[]", "`odd.name`.a[].b",
        "`odd.name`.`c d`",
    ]  # fmt: skip


SLOTS: tuple[Slot, ...] = ("tag", "term", "compliance", "property", "description")
NAMES = st.sampled_from(["a", "b", "c"])


@st.composite
def changes(draw: st.DrawFn) -> dict[Key, str | None]:
    found: dict[Key, str | None] = {}
    for _ in range(draw(st.integers(0, 8))):
        path = draw(st.sampled_from(["", *paths_of(SCHEMA)]))
        slot = draw(st.sampled_from(SLOTS))
        name = "" if slot == "description" else draw(NAMES)
        has_text = slot in ("description", "property")
        found[Key(path, slot, name)] = draw(NAMES) if has_text else ""
    return found


@given(changes())
def test_what_is_said_is_read_again_and_taken_back_leaves_nothing(
    wanted: dict[Key, str | None],
) -> None:
    spoken = reworded(DATASET, wanted)
    assert words_in(spoken) == wanted
    silent = reworded(spoken, dict.fromkeys(wanted))
    assert words_in(silent) == {}
    assert silent.schema == SCHEMA


@given(changes())
def test_words_are_kept_as_they_are_said(wanted: dict[Key, str | None]) -> None:
    words = {key: Word(value=value, author="jane", at=AT) for key, value in wanted.items()}
    assert Saying.of("user", words).words == words


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
    gone = reworded(full, dict.fromkeys(words_in(full)))
    assert (gone.documentation, gone.governance) == (Documentation(), Governance())
    assert (gone.ownership, gone.properties) == (Ownership(), {})
    assert reworded(DATASET, {DESCRIPTION: None}).documentation is None


@pytest.mark.parametrize(
    "owner",
    [Owner(name="a:b/c", kind="group", type="DATA_STEWARD"), Owner(name="jane@example.com")],
)
def test_owners_have_names_as_words(owner: Owner) -> None:
    assert owner_of(owner_name(owner)) == owner


def test_fields_that_are_not_there_are_told() -> None:
    words = {Key("id", "tag", "a"): Word(), Key("gone", "tag", "a"): Word(), DESCRIPTION: Word()}
    assert list(vanished(SCHEMA, {"user": words})) == [Key("gone", "tag", "a")]


def test_changes_are_told_in_phrases() -> None:
    before = {Key("", "description"): "old", Key("id", "property", "p"): "x"}
    wanted: dict[Key, str | None] = {
        Key("", "description"): "new",
        Key("", "domain"): "sales",
        Key("", "tag", "a"): "",
        Key("", "tag", "b"): "",
        Key("", "owner", "DATA_STEWARD:group:team"): None,
        Key("id", "property", "p"): "y",
        Key("id", "property", "q"): "y",
        Key("id", "description"): None,
    }
    phrases = sentences_of(before, wanted)
    assert phrases == [
        "description changed",
        "domain written",
        "tags a, b added",
        "owner team (DATA_STEWARD) removed",
        "property p of id changed",
        "property q of id written",
        "description of id removed",
    ]
    assert summary_of_words(before, wanted).endswith("property p of id changed; 2 more changes")
