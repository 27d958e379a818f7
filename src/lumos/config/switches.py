"""The switches under `features`, with what each of them disables.

A feature consists of methods of the SDK, commands, kinds of jobs and aspects of datasets. It is
enabled unless its switch is false.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lumos.errors import MisuseError


class Switch(NamedTuple):
    """A feature that can be disabled; `noun` is its name at the start of a sentence.

    `sdk_paths` are paths of SDK methods, and of features with all their methods.
    """

    noun: str
    sdk_paths: tuple[str, ...]
    commands: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    aspects: tuple[str, ...] = ()


SWITCHES: Final[Mapping[str, Switch]] = {
    "auto_detection": Switch("Watching sources", ("watch",), ("watch",), ("watch",)),
    "schema_tracking": Switch(
        "Schema tracking",
        (
            "changes", "change_history.iterate", "change_history.latest", "history", "version",
            "schema.diff", "schema.diff_revisions", "schema.history", "schema.timeline",
            "schema.evolution",
        ),
        (
            "changes", "history", "version", "schema diff", "schema history", "schema timeline",
            "schema evolution",
        ),
        jobs=("version",),
    ),
    "cost_attribution": Switch(
        "Cost attribution", ("cost", "cost_sources"), ("cost",), ("cost-record",), ("cost",)
    ),
    "lineage": Switch(
        "Lineage",
        ("lineage", "impact"),
        ("lineage", "impact", "schema impact"),
        ("lineage",),
        ("lineage",),
    ),
    "usage": Switch("Recording usage", ("usage",), ("usage",), ("usage",), ("usage",)),
    "profiles": Switch("Profiling", ("profiles",), ("profile",), ("profile",)),
    "notifications": Switch("Sending notifications", ("notifications",), ("notify",), ("remind",)),
    "releases": Switch("Refreshing after releases", ("releases",), ("release",),
                       ("release-refresh",)),
}  # fmt: skip


class FeatureDisabled(MisuseError):
    """A feature that the configuration disables."""

    def __init__(self, name: str, file: str | None) -> None:
        self.name = name
        where = "the configuration" if file is None else file
        super().__init__(
            f"{SWITCHES[name].noun} is disabled: features.{name} is false in {where}. "
            "Set it to true, then try again."
        )


class Switches:
    """The feature switches of one configuration."""

    def __init__(self, features: Mapping[str, object], file: str | None) -> None:
        # `features` also has lists for the cost model, so only an explicit `false` is a switch.
        self.disabled: Final = tuple(name for name in SWITCHES if features.get(name) is False)
        self._file = file

    def is_on(self, name: str) -> bool:
        """Whether a feature is enabled."""
        return name not in self.disabled

    def require(self, name: str) -> None:
        """Raise FeatureDisabled if a feature is not enabled."""
        if not self.is_on(name):
            raise FeatureDisabled(name, self._file)

    def require_job(self, kind: str) -> None:
        """Raise FeatureDisabled if jobs of a kind belong to a disabled feature."""
        for name in self.disabled:
            if kind in SWITCHES[name].jobs:
                self.require(name)

    def require_method(self, path: str) -> None:
        """Raise FeatureDisabled if a method of the SDK belongs to a disabled feature."""
        for name in self._switches_that_disable(path):
            self.require(name)

    def is_enabled_method(self, path: str) -> bool:
        """Whether no switch disables a method of the SDK."""
        return not any(self._switches_that_disable(path))

    def _switches_that_disable(self, path: str) -> Iterator[str]:
        for name in self.disabled:
            if any(
                path == each or path.startswith(f"{each}.") for each in SWITCHES[name].sdk_paths
            ):
                yield name

    @property
    def hidden_aspects(self) -> tuple[str, ...]:
        """The aspects of datasets that are not shown."""
        return tuple(self._disabled_values("aspects"))

    @property
    def hidden_commands(self) -> frozenset[str]:
        """The commands that help does not list."""
        return frozenset(self._disabled_values("commands"))

    def _disabled_values(self, field: str) -> Iterator[str]:
        return (part for name in self.disabled for part in getattr(SWITCHES[name], field))
