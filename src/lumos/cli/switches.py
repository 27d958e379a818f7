"""Help without the commands of features that the configuration disables."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from lumos.errors import LumosError


class SwitchedGroup(TyperGroup):
    """A group of commands whose help leaves out those of disabled features."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        below = ctx.command_path.partition(" ")[2]
        with self._hide_commands(
            {name for name in _hidden_commands() if _is_in(name, below)}, below
        ):
            super().format_help(ctx, formatter)

    @contextmanager
    def _hide_commands(self, names: set[str], below: str) -> Iterator[None]:
        # One process may run several commands with different configurations, as tests do.
        before = {name: each.hidden for name, each in self.commands.items()}
        for name in names:
            self.commands[name.removeprefix(f"{below} ")].hidden = True
        try:
            yield
        finally:
            for name, hidden in before.items():
                self.commands[name].hidden = hidden


def _is_in(name: str, group: str) -> bool:
    return name.rpartition(" ")[0] == group


def _hidden_commands() -> frozenset[str]:
    """The commands of disabled features; reads as little as possible, since help must be fast."""
    variables = [name for name in os.environ if name.upper().startswith("LUMOS_FEATURES")]
    try:
        file = Path(os.environ.get("LUMOS_CONFIG") or "lumos.yaml")
        found = file if file.exists() else None
        if not variables and (found is None or b"features" not in found.read_bytes()):
            return frozenset()
        from lumos.config import load

        return load(found, environment=os.environ).switches.hidden_commands
    except (OSError, LumosError):
        # Every other command reports what is wrong with the configuration.
        return frozenset()
