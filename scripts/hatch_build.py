"""Hatch build hook: puts the built web page into wheels."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebPageHook(BuildHookInterface):  # type: ignore[misc,type-arg]
    """Builds the page before a wheel; editable installs are built by `make setup`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page and include its files, which git ignores."""
        if self.target_name != "wheel" or version == "editable":
            return
        script = Path(self.root) / "scripts" / "build_web.py"
        subprocess.run([sys.executable, str(script)], check=True)
        build_data["artifacts"].append("src/lumos/server/static/**")
