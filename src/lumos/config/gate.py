"""The policy of `lumos gate`: which findings block, and who may approve them."""

from typing import Annotated, Literal, TypeAlias

from lumos.config.section import Price, Section, alternative_names
from lumos.config.sources import Names
from lumos.errors import MisuseError

# - breaking: a reader breaks.
# - undetermined: a reader may break, or the readers are unknown.
# - unread: a breaking change that affects no known reader.
# - storage: existing data cannot be read with the new schema.
FindingCategory: TypeAlias = Literal["breaking", "undetermined", "unread", "storage"]


class GateRule(Section, frozen=True, kw_only=True):
    """The policy for certain files or datasets, which replaces the general policy.

    A rule applies if all its filters match: `paths` the file of the change or of the reader, the
    other filters the changed or the affected dataset. `*` is a wildcard.
    """

    paths: Annotated[Names, alternative_names(singular=("path",))] = ()
    domains: Annotated[Names, alternative_names(singular=("domain",))] = ()
    tags: Annotated[Names, alternative_names(singular=("tag",))] = ()
    environments: Annotated[Names, alternative_names(singular=("environment",))] = ()
    block: tuple[FindingCategory, ...] | None = None
    approvers: Annotated[Names, alternative_names(singular=("approver",))] = ()
    max_monthly_cost: Price | None = None

    def __post_init__(self) -> None:
        if not (self.paths or self.domains or self.tags or self.environments):
            raise MisuseError(
                "A rule of the gate needs 'paths', 'domains', 'tags' or 'environments'."
            )


class GateSettings(Section, frozen=True, kw_only=True):
    """The general policy: which findings block a change. The first matching rule overrides it.

    With `documentation`, the datasets and columns that a change adds or modifies must meet the
    requirements of the section `documentation`.

    Only `approvers` may waive a finding or, if none are configured, the owners of the affected
    dataset. A finding also blocks if the affected dataset costs more than `max_monthly_cost`.
    """

    block: tuple[FindingCategory, ...] = ("breaking",)
    warn_only: bool = False
    approvers: Annotated[Names, alternative_names(singular=("approver",))] = ()
    max_monthly_cost: Price | None = None
    documentation: bool = False
    rules: tuple[GateRule, ...] = ()
