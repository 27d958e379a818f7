"""Properties of nodes that carry what Amundsen has no field for: `lumos_<field>`, in JSON."""

import re
from collections.abc import Mapping
from typing import Any, Final

from lumos.catalogs.amundsen.graph import Properties
from lumos.catalogs.packed_properties import Packed, pack, unpack
from lumos.model.catalog import CatalogEntry

# A publisher of databuilder writes names of properties into Cypher, where dots have a meaning.
_PROPERTY: Final = re.compile(r"lumos_(?P<name>[a-z_]+?)(?:_(?P<part>\d+))?")
_LONGEST: Final = 500_000


def carry(exact: Any, shown: Any) -> tuple[Properties, Packed]:
    """The properties that carry what `shown` lacks, and how each aspect is held."""
    packed = pack(exact, shown, longest=_LONGEST)
    return {key.replace(".", "_"): text for key, text in packed.properties.items()}, packed


def carried(properties: Mapping[str, Any], type: Any = CatalogEntry) -> dict[str, Any]:
    """The fields that the properties of a node carry."""
    dotted = {
        ".".join(filter(None, ("lumos", match["name"], match["part"]))): text
        for key, text in properties.items()
        if isinstance(text, str) and (match := _PROPERTY.fullmatch(key))
    }
    return unpack(dotted, type).exact
