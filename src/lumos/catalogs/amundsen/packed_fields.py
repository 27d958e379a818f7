"""Packs fields that Amundsen does not have into properties of nodes: `lumos_<field>`, as JSON."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lumos.catalogs.amundsen.graph import Properties
from lumos.catalogs.packed_properties import Packed, pack, unpack
from lumos.model.catalog import CatalogEntry

# Without dots, because databuilder writes the names of properties into Cypher unquoted.
_PROPERTY: Final = re.compile(r"lumos_(?P<name>[a-z_]+?)(?:_(?P<part>\d+))?")
_MAX_TEXT_LENGTH: Final = 500_000


def pack_fields(exact: Any, visible: Any) -> tuple[Properties, Packed]:
    """The properties for fields that `visible` lacks, and how each aspect is stored."""
    packed = pack(exact, visible, max_length=_MAX_TEXT_LENGTH)
    return {key.replace(".", "_"): text for key, text in packed.properties.items()}, packed


def unpack_fields(properties: Mapping[str, Any], type: Any = CatalogEntry) -> dict[str, Any]:
    """The fields that are packed into the properties of a node."""
    dotted = {
        ".".join(filter(None, ("lumos", match["name"], match["part"]))): text
        for key, text in properties.items()
        if isinstance(text, str) and (match := _PROPERTY.fullmatch(key))
    }
    return unpack(dotted, type).exact
