"""Runs in a process of its own: what DataHub's package makes of metadata files.

`read FILE` validates every change with the package's classes and prints what they hold;
`sample NAME` prints the files of a public sample that the package knows of.
"""

import contextlib
import json
import sys
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


if __name__ == "__main__":
    command, argument = sys.argv[1:]
    if command == "read":
        json.dump(list(changes(argument)), sys.stdout)
    else:
        with contextlib.redirect_stdout(sys.stderr):
            files = [str(entry.path) for entry in download_pack(get_pack(argument))]
        json.dump(files, sys.stdout)
