"""Finds datasets without the documentation that the configuration requires."""

from collections.abc import Callable, Mapping
from typing import Final

from lumos.annotations.lists import stored_entries
from lumos.annotations.locations import is_match
from lumos.annotations.reports import ExemptDataset, MissingDocs, MissingDocsReport
from lumos.config.settings import DocumentationRules
from lumos.errors import MisuseError
from lumos.model.dataset import Dataset, Documentation, Governance
from lumos.model.dataset_pattern import DatasetPattern
from lumos.store import Store

_NO_DOCS: Final = Documentation()
_NO_LABELS: Final = Governance()
BLOCKING: Final = "block_on_missing"
# The names of the required field that means: every column has a description.
FIELD_DESCRIPTIONS: Final = ("fields", "columns", "field_descriptions")


def find_missing_docs(
    rules: DocumentationRules, store: Store, dataset: str | None
) -> MissingDocsReport:
    """The datasets that lack required documentation, and those that are exempt."""
    if not rules.required_fields:
        raise MisuseError(
            "No documentation is required. List what every dataset needs under "
            "documentation.required_fields in lumos.yaml, such as description and owner."
        )
    exemptions = [(DatasetPattern(entry.pattern), entry) for entry in rules.exceptions]
    incomplete: list[MissingDocs] = []
    exempt: list[ExemptDataset] = []
    checked = 0
    for stored in stored_entries(store, dataset):
        entry = stored.dataset
        matching = (rule for pattern, rule in exemptions if is_match(pattern, stored.known, entry))
        if (exemption := next(matching, None)) is not None:
            pattern, reason = exemption.pattern, exemption.reason
            exempt.append(
                ExemptDataset(urn=entry.urn, name=entry.name, pattern=pattern, reason=reason)
            )
            continue
        checked += 1
        missing = missing_fields(entry, rules)
        if missing:
            owners = entry.ownership.owners if entry.ownership else ()
            names = tuple(owner.name for owner in owners)
            incomplete.append(
                MissingDocs(urn=entry.urn, name=entry.name, missing=missing, owners=names)
            )
    return MissingDocsReport(
        required=rules.required_fields,
        mode=rules.enforcement.mode,
        checked=checked,
        complete=checked - len(incomplete),
        blocks=bool(incomplete) and rules.enforcement.mode == BLOCKING,
        datasets=tuple(incomplete),
        exempt=tuple(exempt),
    )


def missing_fields(dataset: Dataset, rules: DocumentationRules) -> tuple[str, ...]:
    """The required fields that a dataset lacks."""
    return tuple(name for name in rules.required_fields if not _has_field(dataset, name))


def has_documentation(dataset: Dataset, name: str) -> bool:
    """Whether a dataset has a value for a field of documentation; False for other names."""
    return name.casefold() in _FIELD_READERS and _has_field(dataset, name)


def _has_field(dataset: Dataset, name: str) -> bool:
    """Whether a dataset has a required field; any other name is looked up in its properties."""
    if (read_field := _FIELD_READERS.get(name.casefold())) is not None:
        return bool(read_field(dataset))
    folded = {key.casefold(): text for key, text in (dataset.properties or {}).items()}
    return bool(folded.get(name.casefold()))


def _are_fields_described(dataset: Dataset) -> bool:
    fields = dataset.schema.fields if dataset.schema else ()
    return bool(fields) and all(field.description for field in fields)


_FIELD_READERS: Final[Mapping[str, Callable[[Dataset], object]]] = {
    "description": lambda each: (each.documentation or _NO_DOCS).description,
    **dict.fromkeys(
        ("business_context", "context"),
        lambda each: (each.documentation or _NO_DOCS).business_context,
    ),
    **dict.fromkeys(
        ("business_domain", "domain"), lambda each: (each.documentation or _NO_DOCS).domain
    ),
    **dict.fromkeys(("owner", "owners"), lambda each: each.ownership and each.ownership.owners),
    **dict.fromkeys(("tag", "tags"), lambda each: (each.governance or _NO_LABELS).tags),
    **dict.fromkeys(
        ("term", "terms", "glossary_terms"), lambda each: (each.governance or _NO_LABELS).terms
    ),
    "compliance": lambda each: (each.governance or _NO_LABELS).compliance,
    **dict.fromkeys(FIELD_DESCRIPTIONS, _are_fields_described),
}
