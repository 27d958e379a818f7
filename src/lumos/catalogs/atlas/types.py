"""The type definitions of Lumos in Atlas; a new version of them only adds attributes."""

from typing import Any, Final

VERSION: Final = "1.0"
DATASET: Final = "lumos_dataset"
COLUMN: Final = "lumos_column"
PROCESS: Final = "lumos_process"
COLUMN_PROCESS: Final = "lumos_column_process"
ITEM: Final = "lumos_item"
TERM: Final = "AtlasGlossaryTerm"
GLOSSARY: Final = "AtlasGlossary"

# A hash of the qualified name. Atlas splits qualified names into words for its index, so that they
# can neither be looked up nor sorted there; lookups by unique attribute do not find deleted ones.
_LOOKUP: Final = {"lookup": "string"}
_ENTITIES: Final = {
    DATASET: (
        "DataSet",
        {
            **_LOOKUP,
            "platform": "string",
            "format": "string",
            "location": "string",
            "partitionKeys": "array<string>",
            "upstream": "array<string>",
            # Whether it only exists because the lineage of another dataset refers to it.
            "placeholder": "boolean",
            "properties": "map<string,string>",
        },
    ),
    COLUMN: (
        "DataSet",
        {
            "position": "int",
            "type": "string",
            "nativeType": "string",
            "default": "string",
            "nullable": "boolean",
            "key": "boolean",
            "partition": "boolean",
        },
    ),
    PROCESS: ("Process", {}),
    COLUMN_PROCESS: ("Process", {}),
    ITEM: ("Asset", {**_LOOKUP, "kind": "string", "properties": "map<string,string>"}),
}
COLUMN_ATTRIBUTES: Final = ("name", "description", *_ENTITIES[COLUMN][1])
DATASET_ATTRIBUTES: Final = ("name", "description", "owner", *_ENTITIES[DATASET][1])


def definitions(names: set[str]) -> dict[str, Any]:
    """The definitions of Lumos's types with these names, as Atlas takes them."""
    columns = {
        "name": "lumos_dataset_columns",
        "typeVersion": VERSION,
        "relationshipCategory": "COMPOSITION",
        "propagateTags": "NONE",
        "endDef1": {"type": DATASET, "name": "columns", "isContainer": True, "cardinality": "SET"},
        "endDef2": {"type": COLUMN, "name": "dataset", "cardinality": "SINGLE"},
    }
    return {
        "entityDefs": [
            {
                "name": name,
                "typeVersion": VERSION,
                "serviceType": "lumos",
                "superTypes": [parent],
                "attributeDefs": [_attribute(each, type) for each, type in attributes.items()],
            }
            for name, (parent, attributes) in _ENTITIES.items()
            if name in names
        ],
        "relationshipDefs": [columns] if columns["name"] in names else [],
    }


def classification_definitions(names: list[str]) -> dict[str, Any]:
    """Classifications without attributes, which any entity may have."""
    return {
        "classificationDefs": [
            {"name": name, "typeVersion": VERSION, "superTypes": [], "attributeDefs": []}
            for name in names
        ]
    }


OWN_TYPES: Final = frozenset({*_ENTITIES, "lumos_dataset_columns"})


def _attribute(name: str, type: str) -> dict[str, Any]:
    return {
        "name": name,
        "typeName": type,
        "cardinality": "LIST" if type.startswith("array<") else "SINGLE",
        "isOptional": True,
        "isUnique": False,
        "isIndexable": name == "lookup",
    }
