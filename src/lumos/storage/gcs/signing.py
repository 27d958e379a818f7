"""The signed statement by which a service account asks for a token.

Python signs nothing by RSA, and a library that does is large for one signature an hour.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lumos.config.secret import MASK

_PEM: Final = re.compile(
    r"-----BEGIN (?:RSA )?PRIVATE KEY-----(.+?)-----END (?:RSA )?PRIVATE KEY-----", re.DOTALL
)
_INTEGER, _OCTETS = 0x02, 0x04
# Below, there is no room for a signature.
_FEWEST_BITS: Final = 512
# What stands before a SHA-256 digest in a signature of PKCS #1 (RFC 8017, 9.2).
_SHA256: Final = bytes.fromhex("3031300d060960864801650304020105000420")


class NotAKey(ValueError):
    """A text that is no RSA key; its own words are never told."""


class _RsaKey(NamedTuple):
    modulus: int
    exponent: int

    def __repr__(self) -> str:
        return f"_RsaKey({MASK})"

    def signature(self, message: bytes) -> bytes:
        length = (self.modulus.bit_length() + 7) // 8
        told = _SHA256 + hashlib.sha256(message).digest()
        padded = b"\x00\x01" + b"\xff" * (length - len(told) - 3) + b"\x00" + told
        return pow(int.from_bytes(padded), self.exponent, self.modulus).to_bytes(length)


def statement(claims: Mapping[str, object], *, pem: str, key_id: str) -> str:
    """The claims as a JSON Web Token that the key has signed."""
    header = {"alg": "RS256", "typ": "JWT", **({"kid": key_id} if key_id else {})}
    parts = ".".join(_encoded(json.dumps(each).encode()) for each in (header, dict(claims)))
    return f"{parts}.{_encoded(_key(pem).signature(parts.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _key(pem: str) -> _RsaKey:
    found = _PEM.search(pem)
    try:
        if found is None:
            raise NotAKey
        numbers = _numbers(base64.b64decode(found.group(1)))
        _, modulus, _, exponent, *_ = numbers
        if modulus.bit_length() < _FEWEST_BITS:
            raise NotAKey
    except (ValueError, IndexError, binascii.Error):
        raise NotAKey("the private key is none that RSA knows") from None
    return _RsaKey(modulus, exponent)


def _numbers(der: bytes) -> list[int]:
    """The integers of a key of PKCS #1, or of the one that PKCS #8 wraps."""
    ((_, outer),) = _values(der)
    fields = list(_values(outer))
    wrapped = next((value for tag, value in fields if tag == _OCTETS), None)
    if wrapped is not None:
        return _numbers(wrapped)
    return [int.from_bytes(value) for tag, value in fields if tag == _INTEGER]


def _values(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The values that stand one after the other in DER, with their tags."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            count = length & 0x7F
            length, at = int.from_bytes(der[at : at + count]), at + count
        if at + length > len(der):
            raise NotAKey
        yield tag, der[at : at + length]
        at += length
