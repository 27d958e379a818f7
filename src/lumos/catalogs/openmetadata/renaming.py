"""Renames tags, terms, owners, domains and datasets in raw records of OpenMetadata."""

from typing import Any, Final

from lumos.catalogs.interface import NewNames
from lumos.catalogs.openmetadata.kinds import CATALOG, FREE_FORM, Record
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

_FQN: Final = "fullyQualifiedName"
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
# Values that people chose, whatever they look like.
_UNCHANGED: Final = FREE_FORM | {"extension", "declared", _FQN}
_EDGES: Final = "edges"
_START: Final = "from"


def rename_record(record: Record, names: NewNames) -> Record:
    """The record of an entity or dataset with new names, which qualified names follow from."""
    renamed = {
        key: value if key in _UNCHANGED else _rename_value(value, names)
        for key, value in record.items()
    }
    match renamed.get(_EDGES):
        case list() as edges:
            renamed[_EDGES] = sorted((_rename_edge(edge, names) for edge in edges), key=_start)
        case dict() as edges:
            # Those of a dataset, by where they begin.
            renamed[_EDGES] = {_rename_end(end, names): edge for end, edge in edges.items()}
    return renamed


def _rename_edge(edge: Any, names: NewNames) -> Any:
    start = _start(edge)
    return {**edge, _START: _rename_end(start, names)} if start else edge


def _rename_end(urn: str, names: NewNames) -> str:
    return urn if urn.startswith(f"{CATALOG}:") else names.dataset(urn)


def _rename_value(value: Any, names: NewNames) -> Any:
    match value:
        case {"tagFQN": str(fqn), "source": str(source)}:
            return {**value, "tagFQN": _rename_label(source, fqn, names)}
        case {"type": str(type), "fullyQualifiedName": str(fqn)} if len(value) == 2:
            return {"type": type, _FQN: _rename_reference(type, fqn, names)}
        case dict():
            return {key: _rename_value(each, names) for key, each in value.items()}
        case list():
            renamed: list[Any] = []
            for each in value:
                new = _rename_value(each, names)
                # Two that become the same appear once.
                if new == each or new not in renamed:
                    renamed.append(new)
            return renamed
        case _:
            return value


def _rename_label(source: str, fqn: str, names: NewNames) -> str:
    label = {"tagFQN": fqn, "source": source}
    tag, term = tag_of(label), term_of(label)
    if tag is not None and tag in names.tags:
        return tag_fqn(names.tags[tag])
    if term is not None and term in names.terms:
        return term_fqn(names.terms[term])
    return fqn


def _rename_reference(type: str, fqn: str, names: NewNames) -> str:
    match type:
        case "dataset":
            return names.dataset(fqn)
        case "user" | "team":
            name = meant(split(fqn)[0])
            if name not in names.owners:
                return fqn
            spell = team_name if type == "team" else user_name
            return joined(spell(names.owners[name]))
        case "tag":
            return _rename_label(_TAGS, fqn, names)
        case "glossaryTerm":
            return _rename_label(_TERMS, fqn, names)
        case "domain" if (name := domain_of({_FQN: fqn})) in names.domains:
            return domain_fqn(names.domains[name])
        case _:
            return fqn


def _start(edge: Any) -> str:
    start = edge.get(_START) if isinstance(edge, dict) else None
    return start if isinstance(start, str) else ""
