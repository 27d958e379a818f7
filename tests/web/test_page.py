"""The page as the server sends it: addresses, headers, size, and who sees what."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.server import page
from served_store import client_of, fill

ROOT = Path(__file__).resolve().parents[2]
MAX_INITIAL_BYTES = 350_000


@pytest.fixture(scope="module")
def lumos(tmp_path_factory: pytest.TempPathFactory) -> Lumos:
    return fill(tmp_path_factory.mktemp("page"))


@pytest.fixture
def client(lumos: Lumos) -> Iterator[Any]:
    with client_of(lumos) as client:
        yield client


@pytest.mark.parametrize("path", page.PAGES)
def test_every_address_shows_the_page(client: Any, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert '<div id="root">' in response.text


def test_the_server_and_the_page_have_the_same_addresses() -> None:
    routes = (ROOT / "web/src/routes.tsx").read_text()
    assert tuple(re.findall(r'\bpath: "([^"]+)"', routes)) == page.PAGES


def test_the_policy_allows_nothing_of_other_hosts_and_nothing_inline(client: Any) -> None:
    policy = client.get("/").headers["content-security-policy"]
    directives = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert (
        directives["script-src"] == directives["style-src"] == directives["connect-src"] == "'self'"
    )
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_has_no_inline_script_and_names_no_host(client: Any) -> None:
    html = client.get("/").text
    assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", html) == []
    assert re.findall(r"\sstyle=|\son\w+=", html) == []
    assert all(each.startswith("/assets/") for each in re.findall(r'(?:src|href)="([^"]+)"', html))


def test_assets_are_kept_for_ever_and_the_page_is_asked_for_again(client: Any) -> None:
    (script,) = re.findall(r'<script[^>]*src="([^"]+)"', client.get("/").text)
    response = client.get(script)
    assert response.headers["content-type"].startswith("text/javascript")
    assert "immutable" in response.headers["cache-control"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert client.get("/").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "name", ["missing.js", "..%2Findex.html", "%2e%2e%2findex.html", ".sources"]
)
def test_only_files_of_the_page_are_sent(client: Any, name: str) -> None:
    response = client.get(f"/assets/{name}")
    assert response.status_code == 404
    assert "<html" not in response.text


def test_the_initial_script_is_small(client: Any) -> None:
    html = client.get("/").text
    names = re.findall(r'(?:src|href)="(/assets/[^"]+\.js)"', html)
    assert names
    size = sum(len(gzip.compress(client.get(each).content)) for each in names)
    assert size <= MAX_INITIAL_BYTES


def test_without_a_token_there_is_the_page_and_no_data(lumos: Lumos) -> None:
    with client_of(lumos, address="192.0.2.7", open_loopback=False) as client:
        assert client.get("/").status_code == 200
        assert client.get("/api/v1/identity").status_code == 401
        assert client.get("/api/v1/overview").status_code == 401


def test_identity_says_who_and_what_they_may_do(client: Any, lumos: Lumos) -> None:
    assert client.get("/api/v1/identity").json()["role"] == "admin"
    secret = lumos.tokens.create("reader", role="read").secret
    with client_of(lumos, address="192.0.2.7", open_loopback=False) as remote:
        report = remote.get(
            "/api/v1/identity", headers={"Authorization": f"Bearer {secret}"}
        ).json()
    assert (report["name"], report["role"]) == ("reader", "read")


def test_overview_counts_what_datasets_have(client: Any, lumos: Lumos) -> None:
    report = client.get("/api/v1/overview").json()
    assert report["datasets"] == 2
    assert report["owned"] == 1
    assert report["documented"] == 1
    assert report["with_lineage"] == 2
    assert [(each["datasets"], each["last_scan"]) for each in report["sources"]] == [(2, None)]
    assert lumos.overview().datasets == 2


def test_a_checkout_without_the_built_page_says_how_to_build_it(
    client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "FOLDER", tmp_path)
    response = client.get("/")
    assert response.status_code == 500
    assert "make setup" in response.json()["detail"]


def test_the_lock_file_of_the_page_names_no_host() -> None:
    packages = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    # Addresses of downloads would be those of the machine that wrote the file.
    assert all("resolved" not in each for each in packages.values())
    assert all("integrity" in each for name, each in packages.items() if name)
