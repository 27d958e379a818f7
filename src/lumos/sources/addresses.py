"""What an address means that somebody names without describing it."""

from collections.abc import Sequence

from lumos.config.secret import ConnectionString
from lumos.config.sources import PostgresSource, S3Source, Source
from lumos.errors import MisuseError
from lumos.storage import USUAL, Access, UnknownStorage

# Hadoop's names for the same store.
_S3_SCHEMES = ("s3", "s3a", "s3n")
_POSTGRES_SCHEMES = ("postgres", "postgresql")


def is_address(path: str) -> bool:
    """Whether a path is the address of a store rather than a place on this machine."""
    return "://" in path


def normal(address: str) -> str:
    """The one spelling of an address of a folder."""
    if not is_address(address):
        return address
    bucket, key = _parts(address)
    return f"s3://{bucket}/{key}".rstrip("/")


def section_of(address: str, configured: Sequence[Source]) -> Source:
    """The section for an address: reached as a configured source of its bucket, if there is one.

    The address of a database holds all that is needed to reach it, or libpq finds the rest.
    """
    if address.partition("://")[0] in _POSTGRES_SCHEMES:
        return PostgresSource(connection_string=ConnectionString(address))
    bucket, key = _parts(address)
    known = _of_bucket(bucket, configured)
    prefixes = (key,) if key else ()
    if known is None:
        return S3Source(buckets=(bucket,), prefixes=prefixes)
    login = {name: getattr(known, name) for name in _LOGIN}
    return S3Source(buckets=(bucket,), prefixes=prefixes, **login)


def access_of(address: str, configured: Sequence[Source]) -> Access:
    """How an address is reached: as a configured source of its bucket, or as the only source."""
    if not is_address(address):
        return USUAL
    from lumos.storage.s3 import S3Access

    bucket, _ = _parts(address)
    sections = [section for section in configured if isinstance(section, S3Source)]
    only = sections[0] if len(sections) == 1 else None
    section = _of_bucket(bucket, configured) or only
    return USUAL if section is None else S3Access.of(section)


_LOGIN = tuple(
    name
    for name in S3Source.__struct_fields__
    if name
    not in (
        "type",
        "name",
        "buckets",
        "prefixes",
        "file_patterns",
        "exclude",
        "recursive",
        "datasets",
    )
)


def _of_bucket(bucket: str, configured: Sequence[Source]) -> S3Source | None:
    sections = (section for section in configured if isinstance(section, S3Source))
    return next((section for section in sections if bucket in section.buckets), None)


def _parts(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    if scheme not in _S3_SCHEMES:
        raise UnknownStorage(address)
    bucket, _, key = rest.partition("/")
    if not bucket:
        raise MisuseError(f"{address} names no bucket. Write s3://BUCKET/PREFIX.")
    return bucket, key
