"""A small server with the part of Azure's blob service that Lumos uses, for tests.

It is not Microsoft's. Lists blobs in pages by markers, serves ranges, takes and removes blobs, and
checks keys, signatures and tokens. Azurite, which is Microsoft's, runs in the slow tests.
"""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote
from xml.sax.saxutils import escape

from http_server import RecordingServer, Request, Response

ACCOUNT = "lakestore"
KEY = base64.b64encode(b"hush-hush, the key of an account").decode()
SAS = "sv=2021-12-02&ss=b&srt=co&sp=rl&se=2030-01-01T00%3A00%3A00Z&sig=hush-hush%2Bsignature%3D"
SECRET = "hush-hush-client"
_JSON = {"Content-Type": "application/json"}
_MODIFIED = 1_700_000_000
_SIGNED = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]  # fmt: skip


class AzureServer(RecordingServer):
    """Serves containers of one account at `url`, in whose path the account stands."""

    def __init__(
        self,
        containers: dict[str, dict[str, bytes]] | None = None,
        *,
        answer: Callable[[Request], Response | None] = lambda _request: None,
        page: int = 5000,
        public: bool = False,
        certificate: Path | None = None,
    ) -> None:
        super().__init__(answer=answer, certificate=certificate)
        self.containers = containers if containers is not None else {"lake": {}}
        self.folders: set[str] = set()
        self.tiers: dict[str, str] = {}
        self.page = page
        self.public = public
        self.tokens: list[str] = []
        self._numbers = count(1)

    @property
    def endpoint(self) -> str:
        return f"{self.url}/{ACCOUNT}"

    def respond(self, request: Request) -> Response:
        if request.path.endswith("/.well-known/openid-configuration"):
            tenant = f"{self.url}/{request.path.split('/')[1]}"
            facts = {"issuer": f"{tenant}/v2.0", "authorization_endpoint": f"{tenant}/authorize",
                     "token_endpoint": f"{tenant}/oauth2/v2.0/token"}  # fmt: skip
            return Response(200, json.dumps(facts).encode(), _JSON)
        if request.path.endswith("/oauth2/v2.0/token"):
            return self._granted(parse_qs(request.body.decode()))
        if "/oauth2/token" in request.path or request.path == "/identity":
            is_asked = "true" in request.headers.get("metadata", "") or request.path == "/identity"
            return self._token() if is_asked else Response(400)
        if not self.public and not self._is_let_in(request):
            return error(403, "AuthenticationFailed", f"Server failed with {KEY}.\nRequestId:1")
        name, _, key = unquote(request.path).removeprefix(f"/{ACCOUNT}/").partition("/")
        blobs = self.containers.get(name)
        if blobs is None:
            return error(404, "ContainerNotFound", "The specified container does not exist.\nTime:")
        if request.method == "PUT":
            blobs[key] = request.body
            return Response(201, headers={"ETag": _etag(request.body), "Last-Modified": _TIME})
        if request.method == "DELETE":
            is_there = blobs.pop(key, None) is not None
            return Response(202) if is_there else error(404, "BlobNotFound", "No such blob.")
        if request.method == "POST":
            return self._batch(blobs, request)
        return self._get(blobs, key, request) if key else self._list(blobs, request.query)

    def _list(self, blobs: dict[str, bytes], query: dict[str, str]) -> Response:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        most = min(int(query.get("maxresults", "5000")), self.page)
        items: dict[str, str] = {}
        for key in sorted({*blobs, *self.folders}):
            if not key.startswith(prefix):
                continue
            inside, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
            if delimiter and cut:
                folder = f"{prefix}{inside}{delimiter}"
                items[folder] = f"<BlobPrefix><Name>{escape(folder)}</Name></BlobPrefix>"
            else:
                items[key] = self._blob(key, blobs.get(key, b""))
        names = sorted(items)
        start = int(query.get("marker", "0"))
        shown = names[start : start + most]
        marker = str(start + most) if start + most < len(names) else ""
        text = "".join(items[name] for name in shown)
        return Response(
            200,
            f'\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>{text}</Blobs>'
            f"<NextMarker>{marker}</NextMarker></EnumerationResults>".encode(),
        )

    def _blob(self, key: str, data: bytes) -> str:
        kind = "<ResourceType>directory</ResourceType>" if key in self.folders else ""
        is_odd = re.search(r"[\x00-\x1f]", key)
        name = (
            f'<Name Encoded="true">{quote(key)}</Name>' if is_odd else f"<Name>{escape(key)}</Name>"
        )
        return (
            f"<Blob>{name}<Properties><Last-Modified>{_TIME}</Last-Modified>"
            f"<Etag>{_etag(data).strip(chr(34))}</Etag><Content-Length>{len(data)}</Content-Length>"
            f"<AccessTier>{self.tiers.get(key, 'Hot')}</AccessTier>{kind}</Properties></Blob>"
        )

    def _get(self, blobs: dict[str, bytes], key: str, request: Request) -> Response:
        if key not in blobs:
            return error(404, "BlobNotFound", "The specified blob does not exist.\nRequestId:2")
        if self.tiers.get(key) == "Archive":
            return error(
                409, "BlobArchived", "This operation is not permitted on an archived blob."
            )
        data = blobs[key]
        headers = {"ETag": _etag(data), "Last-Modified": _TIME, "x-ms-blob-type": "BlockBlob"}
        if request.headers.get("if-match", headers["ETag"]) != headers["ETag"]:
            return error(412, "ConditionNotMet", "It has changed")
        match = re.fullmatch(
            r"bytes=(\d*)-(\d*)",
            request.headers.get("x-ms-range", request.headers.get("range", "")),
        )
        if match is None:
            return Response(200, data, headers)
        first, last = match.groups()
        if not first:
            return error(400, "InvalidHeaderValue", "Azure knows no ranges from the end")
        start, end = int(first), min(len(data), int(last) + 1 if last else len(data))
        if start >= len(data):
            return error(416, "InvalidRange", "The range specified is invalid")
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        return Response(206, data[start:end], headers)

    def _batch(self, blobs: dict[str, bytes], request: Request) -> Response:
        """Several removals in one request, as MIME parts."""
        mark = request.headers["content-type"].partition("boundary=")[2]
        parts = []
        for number, path in enumerate(re.findall(rb"DELETE (\S+) HTTP", request.body)):
            key = unquote(path.decode().partition("?")[0]).removeprefix(f"/{ACCOUNT}/")
            gone = blobs.pop(key.partition("/")[2], None) is None
            said = "404 Not Found" if gone else "202 Accepted"
            code = "x-ms-error-code: BlobNotFound\r\n" if gone else ""
            parts.append(
                f"--{mark}\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {said}\r\n{code}x-ms-version: 2021-12-02\r\n\r\n"
            )
        body = "\r\n".join([*parts, f"--{mark}--\r\n"]).encode()
        return Response(202, body, {"Content-Type": f"multipart/mixed; boundary={mark}"})

    def _granted(self, form: dict[str, list[str]]) -> Response:
        is_known = form.get("client_secret") == [SECRET] or form.get("client_assertion") == [
            "signed"
        ]
        if not is_known or form["scope"] != ["https://storage.azure.com/.default"]:
            told = {
                "error": "invalid_client",
                "error_description": f"AADSTS7000215: {SECRET} is bad",
            }
            return Response(401, json.dumps(told).encode(), _JSON)
        return self._token()

    def _token(self) -> Response:
        self.tokens.append(f"eyJhush-hush.{next(self._numbers)}.x")
        ends = str(int(time.time()) + 3600)
        facts = {"access_token": self.tokens[-1], "expires_in": "3600", "expires_on": ends,
                 "token_type": "Bearer"}  # fmt: skip
        return Response(200, json.dumps(facts).encode(), _JSON)

    def _is_let_in(self, request: Request) -> bool:
        told = request.headers.get("authorization", "")
        if told.startswith("Bearer "):
            return told.removeprefix("Bearer ") in self.tokens
        if told.startswith("SharedKey "):
            return told == f"SharedKey {ACCOUNT}:{_signature(request)}"
        return request.query.get("sig") == "hush-hush+signature="


def error(status: int, code: str, message: str) -> Response:
    """An answer that says what is wrong as Azure says it."""
    body = f"\ufeff<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return Response(status, body.encode(), {"x-ms-error-code": code})


def _signature(request: Request) -> str:
    values = [request.headers.get(name, "") for name in _SIGNED]
    values[2] = "" if values[2] == "0" else values[2]
    own = sorted(name for name in request.headers if name.startswith("x-ms-"))
    lines = [request.method, *values, *(f"{name}:{request.headers[name]}" for name in own)]
    lines.append(f"/{ACCOUNT}{request.path}")
    lines += [f"{name}:{request.query[name]}" for name in sorted(request.query)]
    made = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
    return base64.b64encode(made).decode()


_TIME = formatdate(_MODIFIED, usegmt=True)


def _etag(data: bytes) -> str:
    return f'"0x{hashlib.md5(data, usedforsecurity=False).hexdigest()[:15].upper()}"'
