"""What came from OpenMetadata, where tags, terms, people, domains or datasets are called otherwise.

Names are those of Lumos. Records have qualified names, which follow from them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs.openmetadata.kinds import CATALOG, FREE_FORM, Record, name_of
from lumos.catalogs.openmetadata.labels import (
    domain_fqn,
    domain_of,
    tag_fqn,
    tag_of,
    team_name,
    term_fqn,
    term_of,
    user_name,
)
from lumos.catalogs.openmetadata.names import joined, meant, split
from lumos.model.catalog import CatalogEntity, GlossaryTerm

_FQN: Final = "fullyQualifiedName"
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
_AS_THEY_ARE: Final = FREE_FORM | {"extension", "declared", _FQN}
_EDGES: Final = "edges"
_START: Final = "from"
LabelType: TypeAlias = Literal["tag", "domain"]


class Renaming(NamedTuple):
    """What things are called now, by what they were called."""

    tags: Mapping[str, str]
    terms: Mapping[str, str]
    owners: Mapping[str, str]
    domains: Mapping[str, str]
    dataset: Callable[[str], str]

    def thing(self, other: CatalogEntity) -> CatalogEntity:
        """A thing under the name that it has now, with all that it refers to."""
        label = label_named(other.urn)
        record = other.raw.get(CATALOG)
        if isinstance(record, dict):
            other = msgspec.structs.replace(other, raw={**other.raw, CATALOG: self._record(record)})
        if label is None:
            return other
        type, name = label
        new = (self.tags if type == "tag" else self.domains).get(name, name)
        return other if new == name else msgspec.structs.replace(other, urn=label_urn(type, new))

    def term(self, term: GlossaryTerm) -> GlossaryTerm:
        """A term with all that it refers to beyond what Lumos has a place for."""
        record = term.raw.get(CATALOG)
        if not isinstance(record, dict):
            return term
        carried = {**term.raw, CATALOG: self._record(record)}
        return msgspec.structs.replace(term, raw=carried)

    def raw(self, carried: Mapping[str, Any]) -> dict[str, Any]:
        """What a dataset carries, with the names of those that edges lead from."""
        mine = carried.get(CATALOG)
        edges = mine.get(_EDGES) if isinstance(mine, dict) else None
        if not isinstance(mine, dict) or not isinstance(edges, dict):
            return dict(carried)
        renamed = {self._end(name): said for name, said in edges.items()}
        return {**carried, CATALOG: {**mine, _EDGES: renamed}}

    def _record(self, record: Record) -> Record:
        said = {
            key: value if key in _AS_THEY_ARE else self._value(value)
            for key, value in record.items()
        }
        if isinstance(edges := said.get(_EDGES), list):
            said[_EDGES] = sorted(map(self._edge, edges), key=_start)
        return said

    def _edge(self, edge: Any) -> Any:
        start = _start(edge)
        return {**edge, _START: self._end(start)} if start else edge

    def _end(self, name: str) -> str:
        return name if is_named_by_openmetadata(name) else self.dataset(name)

    def _value(self, value: Any) -> Any:
        match value:
            case {"tagFQN": str(fqn), "source": str(source)}:
                return {**value, "tagFQN": self._labelled(source, fqn)}
            case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
                return {"type": type, _FQN: self._referred(type, fqn)}
            case dict():
                return {key: self._value(each) for key, each in value.items()}
            case list():
                return self._listed(value)
            case _:
                return value

    def _listed(self, values: list[Any]) -> list[Any]:
        """Some values; two that become one stand once."""
        found: list[Any] = []
        for value in values:
            new = self._value(value)
            if new == value or new not in found:
                found.append(new)
        return found

    def _labelled(self, source: str, fqn: str) -> str:
        label = {"tagFQN": fqn, "source": source}
        tag, term = tag_of(label), term_of(label)
        if tag is not None and tag in self.tags:
            return tag_fqn(self.tags[tag])
        if term is not None and term in self.terms:
            return term_fqn(self.terms[term])
        return fqn

    def _referred(self, type: str, fqn: str) -> str:
        match type:
            case "dataset":
                return self.dataset(fqn)
            case "user" | "team":
                return self._somebody(type, fqn)
            case "tag":
                return self._labelled(_TAGS, fqn)
            case "glossaryTerm":
                return self._labelled(_TERMS, fqn)
            case "domain" if (name := domain_of({_FQN: fqn})) in self.domains:
                return domain_fqn(self.domains[name])
            case _:
                return fqn

    def _somebody(self, type: str, fqn: str) -> str:
        name = meant(split(fqn)[0])
        if name not in self.owners:
            return fqn
        spell = team_name if type == "team" else user_name
        return joined(spell(self.owners[name]))


def is_named_by_openmetadata(urn: str) -> bool:
    """Whether a thing came from OpenMetadata."""
    return urn.startswith(f"{CATALOG}:")


def label_named(urn: str) -> tuple[LabelType, str] | None:
    """The tag or the domain that a thing is, by its name in Lumos."""
    catalog, _, rest = urn.partition(":")
    type, _, fqn = rest.partition(":")
    if catalog != CATALOG or not fqn:
        return None
    if type == "tag":
        name = tag_of({"tagFQN": fqn, "source": _TAGS})
        return None if name is None else ("tag", name)
    return ("domain", domain_of({_FQN: fqn})) if type == "domain" else None


def label_urn(type: LabelType, name: str) -> str:
    """What the thing is called that a tag or a domain is."""
    return name_of(type, (tag_fqn if type == "tag" else domain_fqn)(name))


def _start(edge: Any) -> str:
    """What an edge begins at, where it is one."""
    start = edge.get(_START) if isinstance(edge, dict) else None
    return start if isinstance(start, str) else ""
