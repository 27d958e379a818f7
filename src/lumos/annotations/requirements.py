"""Which datasets lack documentation that the configuration requires."""

from collections.abc import Callable, Mapping
from typing import Final

from lumos.annotations.lists import entries
from lumos.annotations.locations import fits
from lumos.annotations.reports import ExemptDataset, MissingDocs, MissingDocsReport
from lumos.config.settings import DocumentationRules
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset, Documentation, Governance
from lumos.model.dataset_pattern import DatasetPattern
from lumos.store import Store

_NOTHING: Final = Documentation()
_NO_LABELS: Final = Governance()
_BLOCKING: Final = "block_on_missing"


def missing(rules: DocumentationRules, store: Store, dataset: str | None) -> MissingDocsReport:
    """The datasets that lack something, and those that are exempt."""
    if not rules.required_fields:
        raise MisuseError(
            "Nothing is required. Name what every dataset needs under "
            "documentation.required_fields in lumos.yaml, such as description and owner."
        )
    exemptions = [(DatasetPattern(each.pattern), each) for each in rules.exceptions]
    lacking: list[MissingDocs] = []
    exempt: list[ExemptDataset] = []
    checked = 0
    for stored in entries(store, dataset):
        each = stored.dataset
        reason = next((why for pattern, why in exemptions if fits(pattern, stored.known, each)),
                      None)  # fmt: skip
        if reason is not None:
            exempt.append(
                ExemptDataset(
                    urn=each.urn, name=each.name, pattern=reason.pattern, reason=reason.reason
                )
            )
            continue
        checked += 1
        lost = tuple(name for name in rules.required_fields if not _has(each, name))
        if lost:
            owners = each.ownership.owners if each.ownership else ()
            names = tuple(owner.name for owner in owners)
            lacking.append(MissingDocs(urn=each.urn, name=each.name, missing=lost, owners=names))
    return MissingDocsReport(
        required=rules.required_fields,
        mode=rules.enforcement.mode,
        checked=checked,
        complete=checked - len(lacking),
        blocks=bool(lacking) and rules.enforcement.mode == _BLOCKING,
        datasets=tuple(lacking),
        exempt=tuple(exempt),
    )


def _has(dataset: Dataset, name: str) -> bool:
    """Whether a dataset has what is required; what is no part of every dataset is a property."""
    known = _REQUIRED.get(name.casefold())
    return bool(known(dataset) if known is not None else _property(dataset, name))


def _property(dataset: Dataset, name: str) -> str | None:
    folded = {key.casefold(): text for key, text in (dataset.properties or {}).items()}
    return folded.get(name.casefold())


def _owners(dataset: Dataset) -> object:
    return dataset.ownership and dataset.ownership.owners


def _all_fields_described(dataset: Dataset) -> bool:
    fields = dataset.schema.fields if dataset.schema else ()
    return bool(fields) and all(field.description for field in fields)


_REQUIRED: Final[Mapping[str, Callable[[Dataset], object]]] = {
    "description": lambda each: (each.documentation or _NOTHING).description,
    **dict.fromkeys(
        ("business_context", "context"),
        lambda each: (each.documentation or _NOTHING).business_context,
    ),
    **dict.fromkeys(
        ("business_domain", "domain"), lambda each: (each.documentation or _NOTHING).domain
    ),
    **dict.fromkeys(("owner", "owners"), _owners),
    **dict.fromkeys(("tag", "tags"), lambda each: (each.governance or _NO_LABELS).tags),
    **dict.fromkeys(
        ("term", "terms", "glossary_terms"), lambda each: (each.governance or _NO_LABELS).terms
    ),
    "compliance": lambda each: (each.governance or _NO_LABELS).compliance,
    **dict.fromkeys(("fields", "columns", "field_descriptions"), _all_fields_described),
}
