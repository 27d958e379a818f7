"""Runs in a process of its own: what DataHub's package makes of metadata files.

`read FILE` validates every change with the package's classes and prints what they hold;
`sample NAME` prints the files of a public sample that the package knows of. `compare` takes a list
of pairs of files and prints which aspects of the first the second lacks, changed or added, by kind.
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from datahub.cli.datapack.loader import download_pack
from datahub.cli.datapack.registry import get_pack
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.emitter.mcp_builder import mcps_from_mce
from datahub.metadata.schema_classes import MetadataChangeEventClass, UsageAggregationClass
from datahub.metadata.urns import DatasetUrn, Urn
from datahub.utilities.urns.urn_iter import list_urns


def changes(path: str) -> Iterator[list[Any]]:
    """Every aspect in a file, as DataHub understands it."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    for change in content if isinstance(content, list) else [content]:
        if "bucket" in change:
            usage = UsageAggregationClass.from_obj(change)
            assert usage.validate(), change
            yield [usage.resource, "usage", usage.to_obj()]
            continue
        if "proposedSnapshot" in change:
            event = MetadataChangeEventClass.from_obj(change)
            assert event.validate(), change
            proposals: list[Any] = list(mcps_from_mce(event))
        else:
            proposals = [MetadataChangeProposalWrapper.from_obj(change)]
        for proposal in proposals:
            assert proposal.validate(), change
            urn = Urn.from_string(proposal.entityUrn)
            assert urn.entity_type != "dataset" or isinstance(urn, DatasetUrn)
            yield [proposal.entityUrn, proposal.aspectName, *_held(proposal)]


def _held(proposal: Any) -> list[Any]:
    system = proposal.systemMetadata.to_obj() if proposal.systemMetadata else None
    if isinstance(proposal, MetadataChangeProposalWrapper):
        for urn in list_urns(proposal.aspect):
            Urn.from_string(urn)
        return [proposal.aspect.to_obj(), system, proposal.changeType, "known"]
    body = json.loads(proposal.aspect.value) if proposal.aspect else None
    return [body, system, proposal.changeType, "unknown"]


def compared(here: str, there: str) -> dict[str, Any]:
    """What became of the aspects of a file in another one, by the kind of aspect."""
    old, new = stated(here), stated(there)
    found: dict[str, Counter[str]] = {
        "missing": Counter(),
        "changed": Counter(),
        "added": Counter(),
    }
    examples = []
    for key in {**old, **new}:
        before, after = old.get(key, []), new.get(key, [])
        if before == after:
            continue
        result = "missing" if not after else "added" if not before else "changed"
        found[result][f"{key[0].split(':')[2]}.{key[1]}" if key[0] else key[1]] += 1
        if len(examples) < 3:
            examples.append(f"{result} {key}: {_first_difference(before, after)}")
    return {**found, "aspects": sum(map(len, old.values())), "examples": examples}


def stated(path: str) -> dict[tuple[str, str], list[Any]]:
    """What a file says of each aspect of each entity, in the order of the file."""
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    found: dict[tuple[str, str], list[Any]] = {}
    for change in content if isinstance(content, list) else [content]:
        for urn, aspect, *said in _as_read(change):
            found.setdefault((urn, aspect), []).append(said)
    return found


def _as_read(change: dict[str, Any]) -> Iterator[list[Any]]:
    """The aspects in a change by DataHub's classes; one that these refuse is taken as it is."""
    try:
        if "bucket" in change:
            usage = UsageAggregationClass.from_obj(change)
            yield [usage.resource, "usage", usage.to_obj()]
            return
        if "proposedSnapshot" in change:
            event = MetadataChangeEventClass.from_obj(change)
            proposals: list[Any] = list(mcps_from_mce(event))
        else:
            proposals = [MetadataChangeProposalWrapper.from_obj(change)]
    except Exception:  # noqa: BLE001 - DataHub's classes raise all sorts of errors
        urn, aspect = change.get("entityUrn") or "", change.get("aspectName") or "unreadable"
        yield [urn, aspect, change]
        return
    for proposal in proposals:
        yield [proposal.entityUrn or "", proposal.aspectName or "", *_described(proposal)]


def _described(proposal: Any) -> list[Any]:
    beside = [
        proposal.systemMetadata.to_obj() if proposal.systemMetadata else None,
        proposal.changeType,
        proposal.headers,
    ]
    if isinstance(proposal, MetadataChangeProposalWrapper):
        return [proposal.aspect.to_obj() if proposal.aspect else None, *beside]
    return [json.loads(proposal.aspect.value) if proposal.aspect else None, *beside]


def _first_difference(before: Any, after: Any, path: str = "") -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            if before.get(key) != after.get(key):
                return _first_difference(before.get(key), after.get(key), f"{path}.{key}")
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                return _first_difference(old, new, f"{path}[{number}]")
    return f"{path} {json.dumps(before)[:150]} -> {json.dumps(after)[:150]}"


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    argument = arguments[0] if arguments else ""
    if command == "read":
        json.dump(list(changes(argument)), sys.stdout)
    elif command == "compare":
        json.dump([compared(*pair) for pair in json.load(sys.stdin)], sys.stdout)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            files = [str(entry.path) for entry in download_pack(get_pack(argument))]
        json.dump(files, sys.stdout)
