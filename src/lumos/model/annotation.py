"""Annotations of datasets and fields, and their reporters.

Aspects and schemas contain the values that are in effect. The annotations of each reporter are
stored separately, so that a reporter can retract its own annotations without affecting those of
others. The data source is a reporter like any other.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Slot: TypeAlias = Literal[
    "description",
    "business_context",
    "domain",
    "owner",
    "tag",
    "term",
    "compliance",
    "property",
    "schedule",
]

# Reporters. The data source: comments in a database, documentation in files.
DATA_SOURCE: Final = "source"
# Users: on the command line, in another catalog (import), and in reviewed files (`file:<path>`).
USER: Final = "user"
IMPORT: Final = "import"
FILE: Final = "file:"
# Rules of the configuration that infer annotations from names.
INFERRED: Final = "inferred"
# Reminders about missing documentation (`reminder:<name>`), which flag datasets.
REMINDER: Final = "reminder:"


class AnnotationKey(NamedTuple):
    """The subject of an annotation: a field (for the dataset, `path` is empty) and a slot.

    `name` is the tag, term, label, property or owner (`TYPE:kind:name`).
    """

    path: str
    slot: Slot
    name: str = ""


class Annotation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The value of one annotation; None suppresses annotations of lower-ranked reporters."""

    value: str | None = ""
    author: str | None = None
    at: datetime | None = None


AnnotationMap: TypeAlias = Mapping[AnnotationKey, Annotation]
AnnotationsByReporter: TypeAlias = Mapping[str, AnnotationMap]
"""All annotations of one dataset."""
