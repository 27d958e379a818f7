"""A small object server with S3's ListObjectsV2, ranged GET, PUT and DELETE, for tests and benchmarks.

It keeps every request, can be made slow or faulty, and checks signatures where it is given keys.
Much quicker than moto, and unlike moto it takes any key.
"""

import base64
import bisect
import hashlib
import re
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote_plus, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from http_server import RecordingServer, Request, Response

_MODIFIED = 1_700_000_000
_LAST = "\U0010ffff"


class S3Server(RecordingServer):
    """Serves buckets of objects, given as bytes or as files, on a free port of this machine."""

    def __init__(
        self,
        buckets: dict[str, dict[str, bytes | Path]] | None = None,
        *,
        latency: float = 0.0,
        answer: Callable[[Request], Response | None] = lambda _request: None,
        keys: dict[str, str] | None = None,
        certificate: Path | None = None,
        page_size: int = 1000,
    ) -> None:
        self.page_size = page_size
        # Keys that listings leave out, though they are there.
        self.is_unlisted: Callable[[str], bool] = lambda _key: False
        # When objects were written, by their keys, where that is not the usual time.
        self.modified: dict[str, int] = {}
        self.buckets = {name: dict(objects) for name, objects in (buckets or {}).items()}
        super().__init__(latency=latency, answer=answer, certificate=certificate)
        self.keys = keys
        self._order: dict[str, list[str]] = {}

    def counted(self, method: str, *, listing: bool) -> int:
        """How many requests of a kind have come."""
        return sum(
            request.method == method and ("list-type" in request.query) == listing
            for request in self.requests
        )

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """An object, in place of the one that was there."""
        self._order.pop(bucket, None)
        self.buckets.setdefault(bucket, {})[key] = data

    def drop(self, bucket: str, key: str) -> None:
        """No object any more."""
        self._order.pop(bucket, None)
        del self.buckets[bucket][key]

    def respond(self, request: Request) -> Response:
        """The answer to a request."""
        if self.keys is not None and (refused := self._refused(request)) is not None:
            return refused
        bucket, _, key = unquote(request.path[1:]).partition("/")
        if bucket not in self.buckets:
            return error(404, "NoSuchBucket", "The specified bucket does not exist")
        if request.method == "POST" and "delete" in request.query:
            return self._delete(bucket, request.body)
        if request.method == "PUT":
            self.put(bucket, key, request.body)
            return Response(200, headers={"ETag": _etag(request.body)})
        if request.method == "DELETE":
            self._order.pop(bucket, None)
            self.buckets[bucket].pop(key, None)
            return Response(204)
        return self._get(bucket, key, request) if key else self._list(bucket, request.query)

    def _get(self, bucket: str, key: str, request: Request) -> Response:
        found = self.buckets[bucket].get(key)
        if found is None:
            return error(404, "NoSuchKey", "The specified key does not exist")
        data = found.read_bytes() if isinstance(found, Path) else found
        headers = {"ETag": _etag(data), "Last-Modified": formatdate(_MODIFIED, usegmt=True)}
        if request.headers.get("if-match", headers["ETag"]) != headers["ETag"]:
            return error(412, "PreconditionFailed", "It has changed")
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
        if match is None:
            return Response(200, data, headers)
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1 if first and last else len(data))
        if start >= len(data):
            return error(416, "InvalidRange", "The requested range is not satisfiable")
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        return Response(206, data[start:end], headers)

    def listed(
        self,
        bucket: str,
        prefix: str,
        delimiter: str,
        after: str,
        most: int,
        *,
        included: bool = False,
    ) -> tuple[list[str], list[str], str]:
        """Keys and folders of a page, and the text behind which the next one begins."""
        if bucket not in self._order:
            self._order[bucket] = sorted(self.buckets[bucket])
        order = self._order[bucket]
        beginning = bisect.bisect_left if included else bisect.bisect_right
        at = max(beginning(order, after), bisect.bisect_left(order, prefix))
        found: list[str] = []
        folders: list[str] = []
        last = ""
        while at < len(order) and order[at].startswith(prefix) and len(found) + len(folders) < most:
            key = order[at]
            if self.is_unlisted(key):
                at += 1
                continue
            inside, cut, _ = key[len(prefix) :].partition(delimiter or "\0")
            if delimiter and cut:
                folders.append(f"{prefix}{inside}{delimiter}")
                last = folders[-1] + _LAST
                at = bisect.bisect_right(order, last)
            else:
                found.append(key)
                last = key
                at += 1
        is_cut = at < len(order) and order[at].startswith(prefix)
        return found, folders, last if is_cut else ""

    def _list(self, bucket: str, query: dict[str, str]) -> Response:
        objects = self.buckets[bucket]
        token = query.get("continuation-token", "")
        after = base64.b64decode(token).decode() if token else query.get("start-after", "")
        found, folders, last = self.listed(
            bucket,
            query.get("prefix", ""),
            query.get("delimiter", ""),
            after,
            int(query.get("max-keys", "1000")),
        )
        is_cut = bool(last)
        spelled = quote_plus if query.get("encoding-type") == "url" else escape
        parts = [
            f"<Contents><Key>{spelled(key)}</Key>{_facts(objects[key], self.modified.get(key, _MODIFIED))}</Contents>"
            for key in found
        ]
        parts += [
            f"<CommonPrefixes><Prefix>{spelled(each)}</Prefix></CommonPrefixes>" for each in folders
        ]
        if query.get("encoding-type") == "url":
            parts.append("<EncodingType>url</EncodingType>")
        if is_cut:
            parts.append(
                f"<NextContinuationToken>{base64.b64encode(last.encode()).decode()}</NextContinuationToken>"
            )
        text = "".join([f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>", *parts])
        space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        return Response(200, f"<ListBucketResult {space}>{text}</ListBucketResult>".encode())

    def _delete(self, bucket: str, body: bytes) -> Response:
        self._order.pop(bucket, None)
        keys = [
            node.text or ""
            for node in ElementTree.fromstring(body).iter()
            if node.tag.endswith("Key")
        ]
        for key in keys:
            self.buckets[bucket].pop(key, None)
        gone = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        return Response(200, f"<DeleteResult>{gone}</DeleteResult>".encode())

    def _refused(self, request: Request) -> Response | None:
        """Compares the signature with the one that botocore makes of the same request."""
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        told = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, "
            r"SignedHeaders=([^,]+), Signature=(\w+)",
            request.headers.get("authorization", ""),
        )
        if told is None:
            return error(403, "AccessDenied", "Access Denied")
        key_id, _, region, names, signature = told.groups()
        if key_id not in (self.keys or {}):
            return error(403, "InvalidAccessKeyId", f"The key id {key_id} does not exist")
        secret = (self.keys or {})[key_id]
        signed = {name: request.headers[name] for name in names.split(";") if name != "host"}
        url = f"http://{request.headers['host']}{request.target}"
        copy = AWSRequest(request.method, url, headers=signed, data=request.body)
        copy.context["timestamp"] = request.headers["x-amz-date"]
        auth = S3SigV4Auth(Credentials(key_id, secret), "s3", region)
        canonical = auth.canonical_request(copy)
        expected = auth.signature(auth.string_to_sign(copy, canonical), copy)
        if signature != expected:
            return error(403, "SignatureDoesNotMatch", "The signature does not match")
        return None


def error(status: int, code: str, message: str, **headers: str) -> Response:
    """An answer that says what is wrong as S3 says it."""
    body = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return Response(status, body.encode(), headers)


def _facts(data: bytes | Path, modified: int) -> str:
    size = data.stat().st_size if isinstance(data, Path) else len(data)
    etag = f"{size}-{data.stat().st_mtime_ns}" if isinstance(data, Path) else _etag(data).strip('"')
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))
    return (
        f"<LastModified>{moment}</LastModified><ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size>"
    )


@lru_cache(maxsize=100_000)
def _etag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
