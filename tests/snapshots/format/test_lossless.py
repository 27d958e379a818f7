"""Whatever an entry holds comes back from every encoding as it was."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalogs.strategies import ITEMS, entries
from examples import examples
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Quality
from lumos.model.schema import Field, Schema
from lumos.model.types import parse_type
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import write_snapshot
from snapshots.format.test_encodings import NAMES, all_bytes, content
from snapshots.sample_inventories import FACTS

KINDS = {
    GlossaryTerm: "glossary",
    User: "users",
    Group: "groups",
    Job: "jobs",
    CatalogEntity: "others",
}
MANY = settings(max_examples=examples(40), suppress_health_check=list(HealthCheck))


def by_kind(items: list[Any]) -> dict[str, list[Any]]:
    """The items as a snapshot takes them, none of them twice, in their order."""
    sorted_items: dict[str, dict[str, Any]] = {name: {} for name in KINDS.values()}
    for item in items:
        key = item.urn if isinstance(item, Job | CatalogEntity) else item.name
        sorted_items[KINDS[type(item)]][key] = item
    return {name: [found[key] for key in sorted(found)] for name, found in sorted_items.items()}


@pytest.mark.parametrize("name", NAMES)
@MANY
@given(
    entries_written=st.lists(entries(), max_size=3, unique_by=lambda entry: entry.urn),
    items=st.lists(ITEMS, max_size=4),
)
def test_an_estate_comes_back_from_every_encoding(
    name: str, entries_written: list[CatalogEntry], items: list[Any]
) -> None:
    given_items = by_kind(items)
    with TemporaryDirectory() as folder:
        first = write_snapshot(Path(folder) / name, FACTS, entries_written, **given_items)
        found = content(Path(folder) / name)
        assert found.pop("datasets") == sorted(entries_written, key=lambda entry: entry.urn)
        assert found == given_items
        # Random texts are odd in many ways, which is no error.
        found_codes = {
            problem.code for problem in validate(Path(folder) / name) if problem.severity == "error"
        }
        assert found_codes <= {"reference"}
        again = write_snapshot(
            Path(folder) / f"again-{name}", FACTS, entries_written, **given_items
        )
        assert again == first
        written = all_bytes(Path(folder) / name).values()
        assert list(written) == list(all_bytes(Path(folder) / f"again-{name}").values())


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_columns_and_deep_nesting_come_back(tmp_path: Path, name: str) -> None:
    deep = "STRING"
    for level in range(40):
        deep = f"STRUCT<`level {level}`: ARRAY<{deep}>>"
    fields = [Field(name=f"column {n}", type=parse_type("INT64")) for n in range(1000)]
    fields.append(Field(name="deep", type=parse_type(deep)))
    wide = CatalogEntry(
        urn="lumos://s3/a", name="a", platform="s3", schema=Schema(fields=tuple(fields))
    )
    write_snapshot(tmp_path / name, FACTS, [wide])
    assert content(tmp_path / name)["datasets"] == [wide]


def test_text_that_is_no_unicode_is_refused_with_its_dataset(tmp_path: Path) -> None:
    odd = CatalogEntry(urn="lumos://s3/a", name="\ud800", platform="s3")
    with pytest.raises(LumosError, match="not Unicode"):
        write_snapshot(tmp_path / "a.json", FACTS, [odd])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "quality", [Quality(score=float("nan")), Quality(dimensions={"a": float("inf")})]
)
def test_a_number_that_json_has_no_word_for_is_refused(tmp_path: Path, quality: Quality) -> None:
    odd = CatalogEntry(urn="lumos://s3/a", name="a", platform="s3", quality=quality)
    with pytest.raises(LumosError, match="NaN or infinity"):
        write_snapshot(tmp_path / "a.json", FACTS, [odd])


def test_a_null_that_is_carried_along_comes_back(tmp_path: Path) -> None:
    entry = CatalogEntry(urn="lumos://s3/a", name='":null', platform="s3", raw={"x": {"a": None}})
    write_snapshot(tmp_path / "a.json", FACTS, [entry])
    assert content(tmp_path / "a.json")["datasets"] == [entry]
