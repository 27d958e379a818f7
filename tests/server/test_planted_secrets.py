"""Planted secrets must not appear in logs, answers, errors, metrics, job records or the store."""

from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

from lumos import Lumos
from lumos.server.app import EXTRA_ROUTES
from lumos.server.openapi import document
from server.live_server import live_server

# Each where Lumos expects a secret.
PLANTED = {
    "the password of a channel": "Plant3d-channel",
    "the token of a catalog": "Plant3d-catalog",
    "the password of a source": "Plant3d-source",
    "the password in a URL of a job": "Plant3d-argument",
    "a wrong token": "lumos_1_Plant3d-guess",
    "the signature of a URL": "Plant3d-signature",
}
CONFIG = f"""
storage: {{path: store.db}}
usage: {{retention_days: 3650}}
platform_config:
  datahub: {{gms_server: "http://127.0.0.1:1", token: "{PLANTED["the token of a catalog"]}"}}
sources:
  - name: shop
    type: postgres
    connection_string: "postgresql://lumos:{PLANTED["the password of a source"]}@127.0.0.1:1/shop"
notifications:
  channels:
    chat: "json://bot:{PLANTED["the password of a channel"]}@127.0.0.1:1/hook"
"""
TYPES = {"string": "orders", "integer": 1, "boolean": True, "number": 1}


@pytest.mark.slow
def test_no_secret_leaves_the_server(folder: Path) -> None:
    (folder / "lumos.yaml").write_text(CONFIG)
    lumos = Lumos(folder / "lumos.yaml")
    created = lumos.tokens.create("admin", role="admin")
    secrets = {**PLANTED, "a token": created.secret}
    seen: dict[str, str] = {}
    with live_server(folder, "--require-token") as server:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            headers = {"Authorization": f"Bearer {created.secret}"}

            def send(what: str, method: str, url: str, **options: Any) -> httpx.Response:
                options.setdefault("headers", headers)
                answer = client.request(method, url, **options)
                seen[f"{what} {len(seen)}"] = f"{answer.headers} {answer.text}"
                return answer

            _call_every_route(send)
            url = f"postgresql://u:{PLANTED['the password in a URL of a job']}@127.0.0.1:1/x"
            signed = f"https://127.0.0.1:1/x?sig={PLANTED['the signature of a URL']}"
            for path in (url, signed):
                body = {"kind": "ingest", "arguments": {"paths": [path]}}
                refused = send("job", "POST", "/api/v1/jobs", json=body)
                assert (refused.status_code, "jobs store no secrets" in refused.text) == (422, True)
            body = {"kind": "sync", "arguments": {"platforms": ["datahub"]}, "max_attempts": 1}
            jobs = [send("job", "POST", "/api/v1/jobs", json=body).json()["id"]]
            send("channel", "POST", "/api/v1/notifications/test", json={"channel": "chat"})
            send("catalog", "GET", "/api/v1/search", params={"text": "a", "catalog": "datahub"})
            wrong = {"Authorization": f"Bearer {PLANTED['a wrong token']}"}
            assert send("guess", "GET", "/api/v1/datasets", headers=wrong).status_code == 401
            send("token in a query", "GET", "/api/v1/datasets", params={"token": "x"})
            deadline = monotonic() + 240
            states = set[str]()
            while monotonic() < deadline:
                states = {
                    send("job", "GET", "/api/v1/jobs/show", params={"id": id}).json()["state"]
                    for id in jobs
                }
                if not states & {"queued", "running"}:
                    break
                sleep(1)
            assert not states & {"queued", "running"}, states
            for path in ("/metrics", "/api/v1/audit/export", "/api/v1/config", "/api/v1/jobs"):
                assert send("read", "GET", path).status_code == 200
        seen["the log of the server"] = "".join(server.log)
    for file in folder.rglob("*"):
        # The configuration has the secrets, of course, and a token is stored as a hash.
        if file.is_file() and file.name != "lumos.yaml":
            seen[str(file)] = file.read_bytes().decode("utf-8", "replace")
    assert len(seen["the log of the server"].splitlines()) > len(PLANTED)
    leaks = [
        (where, name)
        for name, secret in secrets.items()
        for where, text in seen.items()
        if secret in text
    ]
    assert leaks == []


def _call_every_route(send: Any) -> None:
    """Each route once, with something in its required parameters."""
    for path, methods in document(EXTRA_ROUTES)["paths"].items():
        if path.endswith("/events") or "tokens" in path:
            continue
        for method, operation in methods.items():
            query = {
                each["name"]: TYPES.get(str(each["schema"].get("type")), "orders")
                for each in operation["parameters"]
                if each["in"] == "query" and each["required"]
            }
            body = {"json": {}} if "requestBody" in operation else {}
            answer = send(f"{method} {path}", method.upper(), path, params=query, **body)
            assert answer.status_code < 500 or answer.status_code in (502, 503), answer.text
