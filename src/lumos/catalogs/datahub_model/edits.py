"""Words on the rows of a schema, and what people wrote over them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lumos.catalogs.datahub_model import field_paths
from lumos.catalogs.datahub_model.lenses import STAMP, listed, values
from lumos.catalogs.datahub_model.names import entity_name, entity_urn


class DataHubLabels(NamedTuple):
    """A kind of labels: where a row has them, and what they are."""

    aspect: str
    list: str
    key: str
    type: str
    around: Mapping[str, Any]


TAGS: Final = DataHubLabels("globalTags", "tags", "tag", "tag", {})
TERMS: Final = DataHubLabels("glossaryTerms", "terms", "urn", "glossaryTerm", {"auditStamp": STAMP})


def labels(kind: DataHubLabels, holder: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels of a row, or of an edit of one."""
    if not (body := holder.get(kind.aspect)):
        return ()
    return values(body.get(kind.list) or (), lambda item: _name(kind, item))


def labelled(kind: DataHubLabels, holder: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A row, or an edit of one, with exactly these labels."""
    if not names and kind.aspect not in holder:
        return holder
    old = holder.get(kind.aspect) or kind.around
    items = listed(
        old.get(kind.list) or (),
        lambda item: _name(kind, item),
        names,
        lambda name: {kind.key: entity_urn(kind.type, name)},
    )
    rest = {key: value for key, value in holder.items() if key != kind.aspect}
    return {**rest, kind.aspect: {**old, kind.list: items}} if items else rest


class Edits:
    """What people wrote over the rows of a schema.

    That stays when a row goes: a scan may have missed the column, which is there again tomorrow.
    """

    def __init__(self, body: Any) -> None:
        self._body = body or {}
        self._infos: dict[str, dict[str, Any]] = {}
        # People's words are mostly on plain paths, and those of rows may have types.
        self._paths: dict[str, str] = {}
        for info in self._body.get("editableSchemaFieldInfo") or ():
            self._infos.setdefault(info["fieldPath"], dict(info))
            self._paths.setdefault(_plain(info["fieldPath"]), info["fieldPath"])

    def description(self, row: Mapping[str, Any]) -> str | None:
        if not self._infos:
            return row.get("description")
        written: str | None = self._info(row).get("description")
        return row.get("description") if written is None else written

    def descriptions(self) -> dict[str, str]:
        """What people wrote on columns and on what is inside of them, by path."""
        found = (
            (path, self._infos[whole].get("description")) for path, whole in self._paths.items()
        )
        return {path: words for path, words in found if words is not None}

    def labels(self, kind: DataHubLabels, row: Mapping[str, Any]) -> tuple[str, ...]:
        if not self._infos:
            return labels(kind, row)
        return tuple(dict.fromkeys((*labels(kind, row), *labels(kind, self._info(row)))))

    def reworded(
        self,
        row: dict[str, Any],
        description: str | None,
        tags: tuple[str, ...],
        terms: tuple[str, ...],
    ) -> dict[str, Any]:
        """A row with other words; what people wrote stays theirs where it is still said."""
        if self.description(row) != description:
            self._info(row).pop("description", None)
            row = {key: value for key, value in row.items() if key != "description"}
            if description is not None:
                row["description"] = description
        for kind, wanted in ((TAGS, tags), (TERMS, terms)):
            row = self._relabelled(kind, row, wanted)
        return row

    def body(self) -> dict[str, Any]:
        infos = [info for info in self._infos.values() if info.keys() - {"fieldPath"}]
        return {**self._body, "editableSchemaFieldInfo": infos}

    def _relabelled(
        self, kind: DataHubLabels, row: dict[str, Any], wanted: tuple[str, ...]
    ) -> dict[str, Any]:
        if self.labels(kind, row) == wanted:
            return row
        info = self._info(row)
        theirs = [name for name in labels(kind, info) if name in wanted]
        ours = [name for name in wanted if name not in theirs]
        if (*ours, *theirs) != wanted:
            theirs, ours = [], list(wanted)
        if info:
            self._infos[self._path(row)] = labelled(kind, info, theirs)
        return labelled(kind, row, ours)

    def _info(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return self._infos.get(self._path(row), {})

    def _path(self, row: Mapping[str, Any]) -> str:
        """The path under which people's words on a row stand."""
        path: str = row["fieldPath"]
        return path if path in self._infos else self._paths.get(_plain(path), path)


def _plain(path: str) -> str:
    if not path.startswith(field_paths.VERSION):
        return path
    return ".".join(step.name for step in field_paths.parsed(path).steps)


def _name(kind: DataHubLabels, item: Any) -> str | None:
    return entity_name(kind.type, item.get(kind.key, ""))
