"""How verdicts move a schema's semantic version."""

from collections.abc import Iterable
from typing import assert_never

from lumos.analysis.compatibility import worst
from lumos.model.change import Finding, Verdict
from lumos.model.version import SchemaVersion


def next_schema_version(version: SchemaVersion, findings: Iterable[Finding]) -> SchemaVersion:
    """Breaking or undetermined steps the major, compatible the minor, informational the patch."""
    match worst(findings):
        case None:
            return version
        case Verdict.BREAKING | Verdict.UNDETERMINED:
            return version.next_major()
        case Verdict.COMPATIBLE:
            return version.next_minor()
        case Verdict.INFORMATIONAL:
            return version.next_patch()
        case _ as unreachable:
            assert_never(unreachable)
