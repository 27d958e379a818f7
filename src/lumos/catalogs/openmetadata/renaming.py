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
from lumos.catalogs.openmetadata.names import decode_name, join_fqn, split_fqn

_FQN: Final = "fullyQualifiedName"
_TAGS: Final = "Classification"
_TERMS: Final = "Glossary"
# Free-form values: never renamed, even if they look like a qualified name.
_FREE_FORM_KEYS: Final = FREE_FORM | {"extension", "declared", _FQN}
_EDGES: Final = "edges"
_UPSTREAM: Final = "from"


def rename_record(record: Record, names: NewNames) -> Record:
    """Rename what a record of an entity or dataset refers to."""
    renamed = {
        key: value if key in _FREE_FORM_KEYS else _rename_value(value, names)
        for key, value in record.items()
    }
    match renamed.get(_EDGES):
        case list() as edges:
            renamed[_EDGES] = sorted((_rename_edge(edge, names) for edge in edges), key=_upstream)
        case dict() as edges:
            # Records of datasets have edges by upstream URN.
            renamed[_EDGES] = {_rename_upstream(urn, names): edge for urn, edge in edges.items()}
    return renamed


def _rename_edge(edge: Any, names: NewNames) -> Any:
    upstream = _upstream(edge)
    return {**edge, _UPSTREAM: _rename_upstream(upstream, names)} if upstream else edge


def _rename_upstream(urn: str, names: NewNames) -> str:
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
                # Drop duplicates that the renaming creates.
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
            name = decode_name(split_fqn(fqn)[0])
            if name not in names.owners:
                return fqn
            escape_name = team_name if type == "team" else user_name
            return join_fqn(escape_name(names.owners[name]))
        case "tag":
            return _rename_label(_TAGS, fqn, names)
        case "glossaryTerm":
            return _rename_label(_TERMS, fqn, names)
        case "domain" if (name := domain_of({_FQN: fqn})) in names.domains:
            return domain_fqn(names.domains[name])
        case _:
            return fqn


def _upstream(edge: Any) -> str:
    upstream = edge.get(_UPSTREAM) if isinstance(edge, dict) else None
    return upstream if isinstance(upstream, str) else ""
