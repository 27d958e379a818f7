"""Reads enrichment files: annotations of datasets in YAML, which can be reviewed like code."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta, field

from lumos.config import yaml_tree
from lumos.config.reader import SectionReader
from lumos.config.section import Section, alternative_names
from lumos.config.sources import Names
from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigPosition,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingEntry,
    MappingNode,
    ScalarNode,
)
from lumos.errors import MisuseError

_MAX_BYTES: Final = yaml_tree.MAX_BYTES
# Takes a dataset and field names; yields the names that do not exist, each with an error message.
# An empty field name means that the dataset does not exist.
FindMissing: TypeAlias = Callable[[str, Sequence[str]], Iterable[tuple[str, str]]]


class OwnerEntry(Section, frozen=True, kw_only=True):
    """An owner of a dataset; a plain name is a user or a group."""

    shorthand: ClassVar[str | None] = "name"

    name: str | None = None
    user: str | None = None
    group: str | None = None
    type: str = "TECHNICAL_OWNER"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.name, self.user, self.group)) != 1:
            raise MisuseError(
                "An owner is either a plain name or has exactly one of 'user' and 'group'."
            )


class FieldEntry(Section, frozen=True, kw_only=True):
    """Annotations of a field; a plain text is its description."""

    shorthand: ClassVar[str | None] = "description"

    description: str | None = None
    tags: Names = ()
    terms: Annotated[Names, alternative_names(also=("glossary_terms",))] = ()
    compliance: Names = ()
    properties: dict[str, str] = field(default_factory=dict)


class ScheduleEntry(Section, frozen=True, kw_only=True):
    """The times at which new data is expected; a plain text is a cron expression."""

    shorthand: ClassVar[str | None] = "cron"

    cron: str
    timezone: str = "UTC"
    availability_lag: Annotated[str, alternative_names(also=("lag",))] = "0m"


class DatasetEntry(Section, frozen=True, kw_only=True):
    """Annotations of a dataset, or of all datasets that match a pattern."""

    dataset: str
    description: str | None = None
    business_context: Annotated[str | None, alternative_names(also=("context",))] = None
    domain: Annotated[str | None, alternative_names(also=("business_domain",))] = None
    owners: Annotated[tuple[OwnerEntry, ...], alternative_names(singular=("owner",))] = ()
    tags: Names = ()
    terms: Annotated[Names, alternative_names(also=("glossary_terms",))] = ()
    compliance: Names = ()
    properties: dict[str, str] = field(default_factory=dict)
    schedule: ScheduleEntry | None = None
    fields: dict[str, FieldEntry] = field(default_factory=dict)


class TermEntry(Section, frozen=True, kw_only=True):
    """The definition of a glossary term; a plain text is its definition."""

    shorthand: ClassVar[str | None] = "definition"

    definition: str | None = None
    display_name: str | None = None
    parent: str | None = None
    domain: str | None = None
    related: Names = ()
    owners: Names = ()


class UserEntry(Section, frozen=True, kw_only=True):
    """A user; a plain text is the e-mail address."""

    shorthand: ClassVar[str | None] = "email"

    email: str | None = None
    display_name: str | None = None
    title: str | None = None


class GroupEntry(Section, frozen=True, kw_only=True):
    """A group of users."""

    email: str | None = None
    display_name: str | None = None
    description: str | None = None
    members: Names = ()


class Enrichment(Section, frozen=True, kw_only=True):
    """The content of a file; `name` identifies the file, by default its path."""

    version: Annotated[int, Meta(ge=1, le=1, description="1, the version of this format")] = 1
    name: str | None = None
    users: dict[str, UserEntry] = field(default_factory=dict)
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    terms: Annotated[dict[str, TermEntry], alternative_names(also=("glossary",))] = field(
        default_factory=dict
    )
    datasets: tuple[DatasetEntry, ...] = ()


class EnrichmentFile:
    """The content of a file, with the positions of its entries."""

    def __init__(self, enrichment: Enrichment, root: MappingNode) -> None:
        self.enrichment = enrichment
        self._root = root

    def dataset(self, number: int) -> ConfigPosition:
        """The position of a dataset entry."""
        return self._dataset_node(number).position

    def key(self, number: int, *path: str) -> ConfigPosition:
        """The position of a key in a dataset entry, or of the entry if the key is missing."""
        node: ConfigNode = self._dataset_node(number)
        position = node.position
        for name in path:
            if not isinstance(node, MappingNode) or name not in node.entries:
                break
            entry = node.entries[name]
            position, node = entry.position, entry.node
        return position

    def term(self, name: str) -> ConfigPosition:
        """The position of a term definition."""
        for key in ("terms", "glossary"):
            entry = self._root.entries.get(key)
            if (
                entry is not None
                and isinstance(entry.node, MappingNode)
                and name in entry.node.entries
            ):
                return entry.node.entries[name].position
        return self._root.position

    def _dataset_node(self, number: int) -> ConfigNode:
        listing = self._root.entries["datasets"].node
        assert isinstance(listing, ListNode)
        return listing.items[number]


def read_enrichment(file: Path, missing: FindMissing) -> EnrichmentFile:
    """Read a file; raises ConfigurationError with the positions of all problems.

    If the structure is invalid, the error also lists datasets and fields that do not exist
    (`missing`).
    """
    position = ConfigPosition(origin=str(file), folder=str(file.absolute().parent))
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise MisuseError(
            f"There is no file {file}. Name one that exists: lumos enrich FILE"
        ) from None
    if len(content) > _MAX_BYTES:
        raise MisuseError(f"{file} is larger than {_MAX_BYTES // 1024 // 1024} MB.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MisuseError(f"{file} is not UTF-8 text.") from None
    root, problems = yaml_tree.parse_yaml(text, position=position, environment={})
    # Texts are prose, in which ${...} is not a variable.
    tree = _without_variables(root)
    assert isinstance(tree, MappingNode)
    enrichment = SectionReader({}, problems).section(tree, Enrichment)
    if problems or not isinstance(enrichment, Enrichment):
        raise ConfigurationError([*problems, *_missing_problems(tree, missing)])
    return EnrichmentFile(enrichment, tree)


def _missing_problems(root: MappingNode, missing: FindMissing) -> Iterator[ConfigProblem]:
    datasets = root.entries.get("datasets")
    if datasets is None or not isinstance(datasets.node, ListNode):
        return
    for item in datasets.node.items:
        if not isinstance(item, MappingNode) or "dataset" not in item.entries:
            continue
        name = item.entries["dataset"]
        fields = item.entries.get("fields")
        positions = fields.node.entries if fields and isinstance(fields.node, MappingNode) else {}
        if isinstance(name.node, ScalarNode) and name.node.text:
            for field, text in missing(name.node.text, list(positions)):
                yield file_problem(positions[field].position if field else name.position, text)


def file_problem(position: ConfigPosition, text: str) -> ConfigProblem:
    """A problem at a position of the file."""
    return ConfigProblem(position=position, key="", text=text)


def _without_variables(node: ConfigNode) -> ConfigNode:
    match node:
        case ScalarNode():
            return msgspec.structs.replace(node, text=node.written, problem="")
        case ListNode():
            return msgspec.structs.replace(node, items=tuple(map(_without_variables, node.items)))
        case MappingNode():
            entries = {
                name: MappingEntry(position=entry.position, node=_without_variables(entry.node))
                for name, entry in node.entries.items()
            }
            return node.with_entries(entries)
        case _:
            return node
