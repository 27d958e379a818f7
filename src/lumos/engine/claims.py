"""What Lumos claims in a catalog, remembered so that edits made there can be told from it."""

import msgspec

from lumos.model.catalog import Entry
from lumos.model.codec import from_json, to_json
from lumos.model.dataset import ASPECTS, Dataset
from lumos.platforms import MergesWrites, Platform
from lumos.snapshot.document import DATASETS
from lumos.store import Transaction


def tell_catalog(platform: Platform, transaction: Transaction, dataset: Dataset) -> None:
    """Gives a dataset to a catalog; what people edited there since the last time stays."""
    if not isinstance(platform, MergesWrites):
        platform.emit(dataset)
        return
    journal, kind = transaction.journal, DATASETS.plural
    known = journal.bases(platform.name, kind, [dataset.urn]).get(dataset.urn)
    base = None if known is None else from_json(known, Entry)
    ours = Entry.of(dataset)
    platform.write(ours, base=base)
    journal.save_bases(platform.name, kind, {dataset.urn: to_json(_claimed(base, ours))})


def _claimed(base: Entry | None, ours: Entry) -> Entry:
    """All that was claimed; what is not spoken of now was claimed earlier."""
    if base is None:
        return ours
    earlier = {name: getattr(base, name) for name in ASPECTS if getattr(ours, name) is None}
    return msgspec.structs.replace(ours, **earlier)
