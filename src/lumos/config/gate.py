"""The policy of `lumos gate`: which findings block, and who may approve them."""

from typing import Annotated, Literal, TypeAlias

from lumos.config.section import Price, Section, alternative_names
from lumos.config.sources import Names
from lumos.errors import MisuseError

# breaking: a reader breaks. undetermined: a reader may break, or readers are unknown. unread: a
# breaking change that no known reader is affected by. storage: existing data cannot be read with
# the new schema.
FindingCategory: TypeAlias = Literal["breaking", "undetermined", "unread", "storage"]


class GateRule(Section, frozen=True, kw_only=True):
    """Which findings block for some files or datasets, in place of the general policy.

    A rule applies if all of its filters do: `paths` to the file of the change or of the reader, the
    others to the changed or the affected dataset. `*` is a wildcard.
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
    """Which findings block a change; the first rule that applies to a finding overrides it.

    With `documentation`, what the section `documentation` requires is checked for the datasets and
    columns that a change adds or touches.

    Only `approvers` may waive a finding, if some are given, else the owners of the affected
    dataset. A finding also blocks if the affected dataset costs more than `max_monthly_cost`.
    """

    block: tuple[FindingCategory, ...] = ("breaking",)
    warn_only: bool = False
    approvers: Annotated[Names, alternative_names(singular=("approver",))] = ()
    max_monthly_cost: Price | None = None
    documentation: bool = False
    rules: tuple[GateRule, ...] = ()
