"""A small server that lists and serves as Google does, for tests; it is not Google's.

Pages come as its JSON API spells them, objects as its XML API serves them. A service account's
statement is checked, and whoever has no token is refused.
"""

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from http_server import Request, Response
from s3_server import S3Server, error

EMAIL = "reader@lake.iam.gserviceaccount.com"
_JSON = "/storage/v1/b/"
_UPLOAD = f"/upload{_JSON}"
REFRESH = "1//refresh-hush-hush"


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(form: PrivateFormat = PrivateFormat.PKCS8) -> str:
    return private_key().private_bytes(Encoding.PEM, form, NoEncryption()).decode()


class GcsServer(S3Server):
    """Serves buckets to whoever has one of the tokens that it gave."""

    def __init__(
        self,
        buckets: dict[str, dict[str, bytes | Path]] | None = None,
        *,
        answer: Callable[[Request], Response | None] = lambda _request: None,
        seconds: int = 3600,
        payer: str = "",
    ) -> None:
        super().__init__(buckets, answer=answer)
        self.seconds = seconds
        self.payer = payer
        self.given: list[str] = []
        self._numbers = count(1)

    def account(self, **facts: object) -> str:
        """The text of a key file of a service account."""
        return json.dumps({
            "type": "service_account", "client_email": EMAIL, "private_key": pem(),
            "private_key_id": "key-1", "token_uri": f"{self.url}/token", **facts,
        })  # fmt: skip

    def user(self, **facts: object) -> str:
        """The text that a login by gcloud leaves behind."""
        return json.dumps({
            "type": "authorized_user", "client_id": "gcloud", "client_secret": "client-hush-hush",
            "refresh_token": REFRESH, "token_uri": f"{self.url}/token", **facts,
        })  # fmt: skip

    def respond(self, request: Request) -> Response:
        if request.path == "/token":
            return self._token(parse_qs(request.body.decode()))
        if request.path == "/sts":
            return self._given()
        if request.path.startswith("/computeMetadata/"):
            assert request.headers["metadata-flavor"] == "Google"
            if request.path.endswith("/token"):
                return self._given()
            facts = {"email": EMAIL, "scopes": [], "aliases": ["default"]}
            headers = {"Content-Type": "application/json", "Metadata-Flavor": "Google"}
            return Response(200, json.dumps(facts).encode(), headers)
        if request.path == "/":
            return Response(200, headers={"Metadata-Flavor": "Google"})
        token = request.headers.get("authorization", "").removeprefix("Bearer").strip()
        if token not in self.given:
            text = f"Invalid Credentials: {token}"
            if request.path.startswith((_JSON, _UPLOAD)):
                return told(401, "authError", text)
            return error(401, "AuthenticationRequired", text)
        is_paid = not self.payer or request.headers.get("x-goog-user-project") == self.payer
        if not request.path.startswith((_JSON, _UPLOAD)):
            if not is_paid:
                return error(400, "UserProjectMissing", "Bucket is requester pays bucket")
            return super().respond(request)
        if not is_paid:
            text = "Bucket is a requester pays bucket but no user project provided."
            return told(400, "required", text)
        place = request.path.removeprefix(_UPLOAD).removeprefix(_JSON)
        bucket, _, key = place.partition("/o")
        if unquote(bucket) not in self.buckets:
            return told(404, "notFound", "The specified bucket does not exist.")
        if request.method == "POST":
            assert request.query["uploadType"] == "media"
            self.put(unquote(bucket), request.query["name"], request.body)
            return Response(200, b"{}")
        if request.method == "DELETE":
            if unquote(key[1:]) not in self.buckets[unquote(bucket)]:
                return told(404, "notFound", f"No such object: {key}")
            self.drop(unquote(bucket), unquote(key[1:]))
            return Response(204)
        if key:
            return self._get(unquote(bucket), unquote(key[1:]), request)
        return self._page(unquote(bucket), request.query)

    def _page(self, bucket: str, query: dict[str, str]) -> Response:
        """Keys as the JSON API lists them, which begins with the key that is named."""
        assert "storageClass" in query["fields"]
        token = query.get("pageToken", "")
        found, folders, last = self.listed(
            bucket,
            query.get("prefix", ""),
            query.get("delimiter", ""),
            base64.b64decode(token).decode() if token else query.get("startOffset", ""),
            min(1000, int(query["maxResults"])),
            included=not token,
        )
        items = [self._item(bucket, key) for key in found]
        facts: dict[str, object] = {"items": items} if items else {}
        facts |= {"prefixes": folders} if folders else {}
        facts |= {"nextPageToken": base64.b64encode(last.encode()).decode()} if last else {}
        return Response(200, json.dumps(facts).encode())

    def _item(self, bucket: str, key: str) -> dict[str, str]:
        data = self.buckets[bucket][key]
        assert isinstance(data, bytes)
        return {
            "name": key,
            "size": str(len(data)),
            "updated": "2023-11-14T22:13:20.123Z",
            "generation": str(zlib.crc32(data)),
            "storageClass": "STANDARD",
        }

    def _given(self) -> Response:
        self.given.append(f"ya29.hush-hush-{next(self._numbers)}")
        facts = {"access_token": self.given[-1], "expires_in": self.seconds, "token_type": "Bearer",
                 "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}  # fmt: skip
        headers = {"Content-Type": "application/json"}
        return Response(200, json.dumps(facts).encode(), headers)

    def _token(self, form: Mapping[str, list[str]]) -> Response:
        if form.get("refresh_token") == [REFRESH] or self._is_signed(*form.get("assertion", [""])):
            return self._given()
        told = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
        return Response(400, json.dumps(told).encode())

    def _is_signed(self, statement: str) -> bool:
        told, _, signature = statement.rpartition(".")
        if not told:
            return False
        header, claims = (json.loads(_decoded(part)) for part in told.split("."))
        is_meant = (header["alg"], claims["iss"], claims["aud"]) == (
            "RS256", EMAIL, "https://oauth2.googleapis.com/token",
        )  # fmt: skip
        try:
            private_key().public_key().verify(
                _decoded(signature), told.encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except InvalidSignature:
            return False
        return is_meant and 0 < claims["exp"] - claims["iat"] <= 3600


def told(status: int, reason: str, message: str) -> Response:
    """An answer that says what is wrong as the JSON API says it."""
    facts = {"code": status, "message": message, "errors": [{"reason": reason}]}
    return Response(status, json.dumps({"error": facts}).encode())


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
