"""Rolling back an import entry by entry."""

from typing import Any

import pytest

from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Governance, Owner, Ownership
from lumos.snapshots.import_merge import roll_back_entry


def entry(tags: tuple[str, ...], compliance: tuple[str, ...] = (), **aspects: Any) -> CatalogEntry:
    governance = Governance(tags=tags, compliance=compliance)
    return CatalogEntry(
        urn="lumos://s3/a", name="a", platform="s3", governance=governance, **aspects
    )


BEFORE = entry(("one", "domain"), ("gdpr",))
IMPORTED = entry(("two", "domain"), ("hipaa",))


@pytest.mark.parametrize(
    "current",
    [
        entry(("domain", "one"), ("hipaa",)),
        entry(("two", "domain"), ("gdpr",)),
        entry(("domain", "one"), ("gdpr",)),
    ],
    ids=["labels only", "tags only", "nothing, in another order"],
)
def test_an_aspect_that_was_written_in_part_is_rolled_back(current: CatalogEntry) -> None:
    rolled_back = roll_back_entry(BEFORE, IMPORTED, current)
    assert rolled_back.value == BEFORE
    assert rolled_back.kept == ()


def test_a_later_edit_stays_and_is_named() -> None:
    rolled_back = roll_back_entry(BEFORE, IMPORTED, entry(("two", "domain", "mine"), ("hipaa",)))
    assert set(rolled_back.value.governance.tags) == {"one", "domain", "mine"}
    assert rolled_back.value.governance.compliance == ("gdpr",)
    assert rolled_back.kept == ("governance",)


def test_an_aspect_that_only_the_import_had_is_removed() -> None:
    owned = Ownership(owners=(Owner(name="ann"), Owner(name="bob")))
    imported = entry(("two",), ownership=owned)
    current = entry(("two",), ownership=Ownership(owners=(Owner(name="ann"),)))
    assert roll_back_entry(entry(("one",)), imported, current).value == entry(("one",))
