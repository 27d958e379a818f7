"""The type definitions of Lumos in Atlas. New versions of them may only add attributes."""

import json
from collections.abc import Iterable, Set
from typing import Any, Final

VERSION: Final = "1.0"
DATASET: Final = "lumos_dataset"
COLUMN: Final = "lumos_column"
PROCESS: Final = "lumos_process"
COLUMN_PROCESS: Final = "lumos_column_process"
ITEM: Final = "lumos_item"
TERM: Final = "AtlasGlossaryTerm"
GLOSSARY: Final = "AtlasGlossary"
TERM_RELATION: Final = "AtlasGlossarySemanticAssignment"
INPUT_RELATION: Final = "dataset_process_inputs"

# Types of datasets that hooks and crawlers of other tools write, and their relations to columns, if
# any. The type of a column is in the attribute `type` or `data_type`.
FOREIGN: Final = {
    "aws_s3_object": (), "aws_s3_pseudo_dir": (), "aws_s3_v2_directory": (),
    "aws_s3_v2_object": (), "adls_gen2_blob": (), "adls_gen2_directory": (),
    "gcp_storage_object": (), "hbase_table": (), "hdfs_path": (),
    "hive_table": ("columns", "partitionKeys"), "iceberg_table": ("columns", "partitionKeys"),
    "kafka_topic": (), "rdbms_table": ("columns",),
}  # fmt: skip
# The ends of the relationships of datasets that Lumos models.
MODELLED_ENDS: Final = frozenset(
    {"columns", "inputToProcesses", "meanings", "outputFromProcesses", "partitionKeys"}
)
# The type of datasets of Lumos and its supertypes: business metadata of any of them applies.
DATASET_SUPERTYPES: Final = frozenset({DATASET, "DataSet", "Asset", "Referenceable"})

# `lookup` is a hash of the qualified name. Atlas splits qualified names into words for its index,
# so that they can neither be looked up nor sorted there; lookups by unique attribute do not find
# deleted entities. A `placeholder` only exists because the lineage of a dataset refers to it.
_ENTITIES: Final = {
    DATASET: ("DataSet", {
        "lookup": "string", "placeholder": "boolean", "platform": "string", "format": "string",
        "location": "string", "partitionKeys": "array<string>", "upstream": "array<string>",
        "properties": "map<string,string>",
    }),
    COLUMN: ("DataSet", {
        "position": "int", "type": "string", "nativeType": "string", "default": "string",
        "nullable": "boolean", "key": "boolean", "partition": "boolean",
    }),
    PROCESS: ("Process", {}),
    COLUMN_PROCESS: ("Process", {}),
    ITEM: ("Asset", {"lookup": "string", "kind": "string", "properties": "map<string,string>"}),
}  # fmt: skip
_COLUMNS_RELATION: Final = {
    "name": "lumos_dataset_columns", "typeVersion": VERSION, "propagateTags": "NONE",
    "relationshipCategory": "COMPOSITION",
    "endDef1": {"type": DATASET, "name": "columns", "isContainer": True, "cardinality": "SET"},
    "endDef2": {"type": COLUMN, "name": "dataset", "cardinality": "SINGLE"},
}  # fmt: skip
ATTRIBUTES: Final = {
    DATASET: ("name", "description", "owner", *_ENTITIES[DATASET][1]),
    COLUMN: ("name", "description", *_ENTITIES[COLUMN][1]),
}
# The business metadata with those attributes of a dataset that types of other tools do not have.
# Business metadata has no maps, so `properties` is JSON.
METADATA: Final = "lumos_metadata"
METADATA_ATTRIBUTES: Final = [
    {
        "name": name, "typeName": type, "isOptional": True, "isIndexable": False,
        "cardinality": "SET" if type.startswith("array<") else "SINGLE",
        "options": {"applicableEntityTypes": json.dumps(["DataSet"]), "maxStrLength": "10000000"},
    }
    for name, type in (("upstream", "array<string>"), ("properties", "string"))
]  # fmt: skip
OWN_TYPES: Final = frozenset({*_ENTITIES, str(_COLUMNS_RELATION["name"])})


def definitions(names: Set[str]) -> dict[str, Any]:
    """The request that defines the types of Lumos with these names."""
    entities = [
        {
            "name": name, "typeVersion": VERSION, "serviceType": "lumos", "superTypes": [parent],
            "attributeDefs": [_attribute(each, type) for each, type in attributes.items()],
        }
        for name, (parent, attributes) in _ENTITIES.items()
        if name in names
    ]  # fmt: skip
    return {
        "entityDefs": entities,
        "relationshipDefs": [_COLUMNS_RELATION] if _COLUMNS_RELATION["name"] in names else [],
    }


def classification_definitions(names: Iterable[str]) -> dict[str, Any]:
    """Classifications without attributes, which any entity may have."""
    common = {"typeVersion": VERSION, "superTypes": [], "attributeDefs": []}
    return {"classificationDefs": [{"name": name, **common} for name in names]}


def _attribute(name: str, type: str) -> dict[str, Any]:
    return {
        "name": name, "typeName": type, "isOptional": True, "isUnique": False,
        "cardinality": "LIST" if type.startswith("array<") else "SINGLE",
        "isIndexable": name == "lookup",
    }  # fmt: skip
