"""What people say of datasets, kept in a YAML file under review."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Meta, field

from lumos.config import yaml_tree
from lumos.config.reading import Reader
from lumos.config.section import Section, spelled
from lumos.config.sources import Names
from lumos.config.tree import (
    Block,
    ConfigurationError,
    Entry,
    Listing,
    Node,
    Place,
    Problem,
    Scalar,
)
from lumos.errors import MisuseError

_MAX_BYTES: Final = yaml_tree.MAX_BYTES
# Given a dataset and its fields as a file names them: those that are not there (the dataset itself
# without a field), and why.
Missing: TypeAlias = Callable[[str, Sequence[str]], Iterable[tuple[str, str]]]


class OwnerEntry(Section, frozen=True, kw_only=True):
    """Somebody who answers for a dataset; a plain name is a user or a group of that name."""

    shorthand: ClassVar[str | None] = "name"

    name: str | None = None
    user: str | None = None
    group: str | None = None
    type: str = "TECHNICAL_OWNER"

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.name, self.user, self.group)) != 1:
            raise MisuseError("An owner has either 'user' or 'group', or is a plain name.")


class FieldEntry(Section, frozen=True, kw_only=True):
    """What is said of a field; a plain text is its description."""

    shorthand: ClassVar[str | None] = "description"

    description: str | None = None
    tags: Names = ()
    terms: Annotated[Names, spelled(also=("glossary_terms",))] = ()
    compliance: Names = ()
    properties: dict[str, str] = field(default_factory=dict)


class DatasetEntry(Section, frozen=True, kw_only=True):
    """What is said of a dataset, or of all that fit a pattern."""

    dataset: str
    description: str | None = None
    business_context: Annotated[str | None, spelled(also=("context",))] = None
    domain: Annotated[str | None, spelled(also=("business_domain",))] = None
    owners: Annotated[tuple[OwnerEntry, ...], spelled(one=("owner",))] = ()
    tags: Names = ()
    terms: Annotated[Names, spelled(also=("glossary_terms",))] = ()
    compliance: Names = ()
    properties: dict[str, str] = field(default_factory=dict)
    fields: dict[str, FieldEntry] = field(default_factory=dict)


class TermEntry(Section, frozen=True, kw_only=True):
    """What a term means; a plain text is its definition."""

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
    """The whole file; `name` is what it is known by, else its path."""

    version: Annotated[int, Meta(ge=1, le=1, description="1, the version of this format")] = 1
    name: str | None = None
    users: dict[str, UserEntry] = field(default_factory=dict)
    groups: dict[str, GroupEntry] = field(default_factory=dict)
    terms: Annotated[dict[str, TermEntry], spelled(also=("glossary",))] = field(
        default_factory=dict
    )
    datasets: tuple[DatasetEntry, ...] = ()


class Read:
    """A file that was read, and where in it what stands."""

    def __init__(self, enrichment: Enrichment, root: Block) -> None:
        self.enrichment = enrichment
        self._root = root

    def dataset(self, number: int) -> Place:
        """Where an entry on datasets begins."""
        return self._block(number).place

    def key(self, number: int, *path: str) -> Place:
        """Where a key of an entry on datasets stands, or else the entry."""
        node: Node = self._block(number)
        place = node.place
        for name in path:
            if not isinstance(node, Block) or name not in node.entries:
                break
            entry = node.entries[name]
            place, node = entry.place, entry.node
        return place

    def term(self, name: str) -> Place:
        """Where a term is defined."""
        for key in ("terms", "glossary"):
            entry = self._root.entries.get(key)
            if entry is not None and isinstance(entry.node, Block) and name in entry.node.entries:
                return entry.node.entries[name].place
        return self._root.place

    def _block(self, number: int) -> Node:
        listing = self._root.entries["datasets"].node
        assert isinstance(listing, Listing)
        return listing.items[number]


def read_enrichment(file: Path, missing: Missing) -> Read:
    """What a file says; raises ConfigurationError with the lines of all that is wrong in it.

    Where its shape is wrong, what is `missing` of the datasets that it names is told as well.
    """
    place = Place(origin=str(file), folder=str(file.absolute().parent))
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
    root, problems = yaml_tree.parse(text, place=place, environment={})
    # What people write about data is prose: a dollar sign in it is one.
    whole = _as_written(root)
    assert isinstance(whole, Block)
    found = Reader({}, problems).section(whole, Enrichment)
    if problems or not isinstance(found, Enrichment):
        raise ConfigurationError([*problems, *_lost(whole, missing)])
    return Read(found, whole)


def _lost(root: Block, missing: Missing) -> Iterator[Problem]:
    datasets = root.entries.get("datasets")
    if datasets is None or not isinstance(datasets.node, Listing):
        return
    for each in datasets.node.items:
        if not isinstance(each, Block) or "dataset" not in each.entries:
            continue
        name = each.entries["dataset"]
        fields = each.entries.get("fields")
        places = fields.node.entries if fields and isinstance(fields.node, Block) else {}
        if isinstance(name.node, Scalar) and name.node.text:
            for field, text in missing(name.node.text, list(places)):
                yield problem(places[field].place if field else name.place, text)


def problem(place: Place, text: str) -> Problem:
    """Something that is wrong at a place of the file."""
    return Problem(place=place, key="", text=text)


def _as_written(node: Node) -> Node:
    match node:
        case Scalar():
            return msgspec.structs.replace(node, text=node.written, problem="")
        case Listing():
            return msgspec.structs.replace(node, items=tuple(map(_as_written, node.items)))
        case Block():
            entries = {
                name: Entry(place=entry.place, node=_as_written(entry.node))
                for name, entry in node.entries.items()
            }
            return node.having(entries)
        case _:
            return node
