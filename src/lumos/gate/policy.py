"""Decides which findings block, by the policy of `lumos.yaml`."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

import msgspec

from lumos.config.gate import GateRule, GateSettings
from lumos.config.reader import SectionReader
from lumos.config.section import Section
from lumos.config.settings import DocumentationRules, Settings
from lumos.config.yaml_tree import ConfigPosition, ConfigurationError, MappingNode, parse_yaml
from lumos.gate.reports import GateFinding

SectionT = TypeVar("SectionT", bound=Section)


class PolicyAttributes(NamedTuple):
    """The attributes of a dataset to which the rules of a policy refer."""

    tags: tuple[str, ...] = ()
    domain: str | None = None
    environment: str = ""
    monthly_cost: Decimal | None = None


class GatePolicy(NamedTuple):
    """The rules for findings that block, and for required documentation."""

    gate: GateSettings
    documentation: DocumentationRules


def parse_policy(text: str, *, file: str) -> GatePolicy:
    """The policy in the text of a lumos.yaml; raises ConfigurationError with file and line."""
    root, problems = parse_yaml(
        text, position=ConfigPosition(origin=file, folder=""), environment={}
    )
    nested = root.entries.get(str(Settings.nested))
    if nested is not None and isinstance(nested.node, MappingNode):
        root = root.with_entries(nested.node.entries | root.entries)
    reader = SectionReader({}, problems)
    gate = _section(root, "gate", GateSettings, reader)
    documentation = _section(root, "documentation", DocumentationRules, reader)
    if problems or gate is None or documentation is None:
        raise ConfigurationError(problems)
    return GatePolicy(gate, documentation)


def _section(
    root: MappingNode, name: str, kind: type[SectionT], reader: SectionReader
) -> SectionT | None:
    entry = root.entries.get(name)
    section = kind() if entry is None else reader.section(entry.node, kind)
    return section if isinstance(section, kind) else None


def apply_policy(
    findings: Iterable[GateFinding],
    policy: GateSettings,
    attributes: Mapping[str, PolicyAttributes],
) -> tuple[GateFinding, ...]:
    """Decide for each finding whether it blocks and who may approve it."""
    return tuple(_decide(finding, policy, attributes) for finding in findings)


def _decide(
    finding: GateFinding, policy: GateSettings, attributes: Mapping[str, PolicyAttributes]
) -> GateFinding:
    datasets = [
        attributes.get(urn, PolicyAttributes())
        for urn in (finding.urn, finding.affected_urn)
        if urn is not None
    ]
    rule = next((each for each in policy.rules if _applies(each, finding, datasets)), None)
    blocked = policy.block if rule is None or rule.block is None else rule.block
    blocks: bool | None = finding.category in blocked
    if not blocks and finding.category == "undetermined" and (rule is None or rule.block is None):
        # `--strict` decides.
        blocks = None
    cost = _cost(finding, attributes)
    limit = policy.max_monthly_cost
    if rule is not None and rule.max_monthly_cost is not None:
        limit = rule.max_monthly_cost
    return msgspec.structs.replace(
        finding,
        blocks=blocks,
        approvers=(rule.approvers if rule is not None else ()) or policy.approvers,
        monthly_cost=cost,
        is_too_expensive=cost is not None and limit is not None and cost > Decimal(str(limit)),
    )


def _cost(finding: GateFinding, attributes: Mapping[str, PolicyAttributes]) -> Decimal | None:
    """The cost of the affected dataset, or of a changed dataset that becomes costlier to read."""
    if finding.affected_urn is not None:
        return attributes.get(finding.affected_urn, PolicyAttributes()).monthly_cost
    if "cost" in finding.flags:
        return attributes.get(finding.urn, PolicyAttributes()).monthly_cost
    return None


def _applies(rule: GateRule, finding: GateFinding, datasets: Iterable[PolicyAttributes]) -> bool:
    datasets = list(datasets)
    files = [each.file for each in (finding.declared, finding.used) if each is not None]
    checks = (
        (rule.paths, files),
        (rule.domains, [each.domain for each in datasets if each.domain]),
        (rule.tags, [tag for each in datasets for tag in each.tags]),
        (rule.environments, [each.environment for each in datasets]),
    )
    return all(
        not patterns
        or any(
            fnmatchcase(value.casefold(), pattern.casefold())
            for pattern in patterns
            for value in values
        )
        for patterns, values in checks
    )
