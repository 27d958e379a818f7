"""What Lumos claims in a catalog, remembered so that edits made there can be told from it."""

import msgspec

from lumos.model.catalog import Entry
from lumos.model.codec import from_json, to_json
from lumos.model.dataset import ASPECTS, Dataset
from lumos.platforms import Deletes, MergesWrites, Platform
from lumos.snapshot.document import DATASETS
from lumos.store import Transaction


def tell_catalog(platform: Platform, transaction: Transaction, dataset: Dataset) -> None:
    """Gives a dataset to a catalog; what people edited there since the last time stays."""
    if not isinstance(platform, MergesWrites):
        platform.emit(dataset)
        return
    base = _base(platform, transaction, dataset.urn)
    ours = Entry.of(dataset)
    platform.write(ours, base=base)
    _remember(platform, transaction, _claimed(base, ours))


def hide_in_catalog(platform: Platform, transaction: Transaction, urn: str) -> None:
    """Tells a catalog that a dataset is gone."""
    # Only some catalogs can hide what they know.
    catalog: object = platform
    if not isinstance(catalog, Deletes):
        return
    catalog.delete(urn)
    if (base := _base(platform, transaction, urn)) is not None:
        _remember(platform, transaction, msgspec.structs.replace(base, deleted=True))


def _base(platform: Platform, transaction: Transaction, urn: str) -> Entry | None:
    known = transaction.journal.bases(platform.name, DATASETS.plural, [urn]).get(urn)
    return None if known is None else from_json(known, Entry)


def _remember(platform: Platform, transaction: Transaction, claim: Entry) -> None:
    transaction.journal.save_bases(platform.name, DATASETS.plural, {claim.urn: to_json(claim)})


def _claimed(base: Entry | None, ours: Entry) -> Entry:
    """All that was claimed; what is not spoken of now was claimed earlier."""
    if base is None:
        return ours
    earlier = {name: getattr(base, name) for name in ASPECTS if getattr(ours, name) is None}
    earlier["carried"] = ours.carried or base.carried
    return msgspec.structs.replace(ours, **earlier)
