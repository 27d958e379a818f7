"""Help without the commands of features that the configuration disables."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from lumos.errors import LumosError


class SwitchedGroup(TyperGroup):
    """A group of commands whose help omits the commands of disabled features."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        group_name = ctx.command_path.partition(" ")[2]
        with self._hide_commands(
            {name for name in _hidden_commands() if _is_in(name, group_name)}, group_name
        ):
            super().format_help(ctx, formatter)

    @contextmanager
    def _hide_commands(self, names: set[str], group_name: str) -> Iterator[None]:
        # Restored afterwards, since one process may run several commands, as tests do.
        before = {name: each.hidden for name, each in self.commands.items()}
        for name in names:
            self.commands[name.removeprefix(f"{group_name} ")].hidden = True
        try:
            yield
        finally:
            for name, hidden in before.items():
                self.commands[name].hidden = hidden


def _is_in(name: str, group: str) -> bool:
    return name.rpartition(" ")[0] == group


def _hidden_commands() -> frozenset[str]:
    """The commands of disabled features; settings are only loaded if needed, for fast help."""
    variables = [name for name in os.environ if name.upper().startswith("LUMOS_FEATURES")]
    try:
        file = Path(os.environ.get("LUMOS_CONFIG") or "lumos.yaml")
        existing_file = file if file.exists() else None
        if not variables and (
            existing_file is None or b"features" not in existing_file.read_bytes()
        ):
            return frozenset()
        from lumos.config import load

        return load(existing_file, environment=os.environ).switches.hidden_commands
    except (OSError, LumosError):
        # Ignored here, since all other commands report problems of the configuration.
        return frozenset()
