"""Whatever an entry holds comes back from a catalog as it was."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumos.model.catalog import Entry, Job, Other
from lumos.platforms import Item
from lumos.platforms.datahub_file import DatahubFile

from .strategies import ITEMS, entries


def by_name(items: Iterable[Item]) -> dict[tuple[type[Item], str], Item]:
    return {
        (type(item), item.urn if isinstance(item, Job | Other) else item.name): item
        for item in items
    }


MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(entries())
def test_an_entry_comes_back_from_a_metadata_file(entry: Entry) -> None:
    with TemporaryDirectory() as folder:
        DatahubFile.at(f"{folder}/estate.json").put(entry)
        written = DatahubFile.at(f"{folder}/estate.json")
        assert written.get(entry.urn) == entry
        before = Path(folder, "estate.json").read_bytes()
        assert not written.put(entry).changed
        assert Path(folder, "estate.json").read_bytes() == before


@MANY
@given(entries(), entries())
def test_the_last_entry_that_was_put_is_there(first: Entry, second: Entry) -> None:
    second = Entry.of(second, urn=first.urn, platform=first.platform)
    with TemporaryDirectory() as folder:
        written = DatahubFile.at(f"{folder}/estate.json")
        written.put(first)
        written.put(second)
        assert DatahubFile.at(f"{folder}/estate.json").get(first.urn) == second


@MANY
@given(
    st.lists(entries(), max_size=3, unique_by=lambda entry: entry.urn), st.lists(ITEMS, max_size=3)
)
def test_an_estate_comes_back_from_a_metadata_file(estate: list[Entry], items: list[Item]) -> None:
    named = by_name(items)
    with TemporaryDirectory() as folder:
        written = DatahubFile.at(f"{folder}/estate.json")
        with written.batch():
            for item in named.values():
                written.put_item(item)
            for entry in estate:
                written.put(entry)
        read = DatahubFile.at(f"{folder}/estate.json")
        assert list(read.export()) == sorted(estate, key=lambda entry: entry.urn)
        assert by_name(read.items()) == named
