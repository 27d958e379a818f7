"""Certificates of migrations: the migrated entries with hashes, to check the target later."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.catalogs.migration.reports import AspectCount, CertificateCheck, MigrationReport
from lumos.errors import MisuseError
from lumos.model.json_codec import from_json, to_json, to_plain
from lumos.progress import Progress
from lumos.rendering.text import plural
from lumos.snapshots.format.document import KINDS, EntryKind
from lumos.version import __version__

FORMAT_VERSION: Final = "1.0"
# The store and catalogs set these aspects, so they change without an edit.
_VOLATILE: Final = frozenset(("timestamps", "versioning", "usage", "runs", "cost"))
_MAX_BYTES: Final = 1 << 30
BATCH_SIZE: Final = 500


class CertificateException(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that differs between source and target, and why."""

    key: str
    reason: str


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of a migration.

    `snapshot_hash` is the hash of the exported source. `aspects` has the numbers of entries by
    aspect in the source and in the target. `entries` has a hash of each entry as it was read back
    from the target, by kind and key. `seal` is the hash of all other fields, so that a changed
    certificate is recognized.
    """

    format_version: str = FORMAT_VERSION
    lumos_version: str
    source: str
    target: str
    target_address: str
    finished_at: datetime
    snapshot_hash: str
    is_whole: bool
    aspects: dict[str, AspectCount]
    exceptions: tuple[CertificateException, ...]
    entries: dict[str, dict[str, str]]
    seal: str = ""


class InvalidCertificate(MisuseError):
    """A file that is not a certificate, or one that was changed."""


def make_certificate(
    report: MigrationReport,
    entries: dict[str, dict[str, str]],
    *,
    target_address: str,
    snapshot_hash: str,
) -> Certificate:
    """The certificate of a finished and verified migration."""
    verified = report.verified
    assert verified is not None, "the migration was not verified"
    reasons = (
        *((each.key, f"not migrated: {each.problem}") for each in report.skipped),
        *((each.key, f"refused by the target: {each.problem}") for each in report.imported.refused),
        *((key, "missing in the target") for key in verified.missing),
        *((key, "differs from what was written") for key in verified.unlike),
        *((each.key, "an edit in the target was kept") for each in report.imported.conflicts),
    )
    if report.lineage_left_out:
        edges = plural(report.lineage_left_out, "lineage edge")
        text = f"{edges} from or to tables that are not datasets of the source: not migrated"
        reasons = (*reasons, ("lineage", text))
    certificate = Certificate(
        lumos_version=__version__,
        source=report.source,
        target=report.target,
        target_address=target_address,
        finished_at=datetime.now(UTC),
        snapshot_hash=snapshot_hash,
        is_whole=report.is_whole and not report.lineage_left_out,
        aspects=verified.aspects,
        exceptions=tuple(CertificateException(key=key, reason=text) for key, text in reasons),
        entries=entries,
    )
    return msgspec.structs.replace(certificate, seal=_seal(certificate))


def write_certificate(certificate: Certificate, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(to_json(certificate, indent=2) + b"\n")


def read_certificate(file: Path) -> Certificate:
    """Read a certificate; raises InvalidCertificate if it was changed after it was written."""
    if not file.is_file():
        raise InvalidCertificate(f"There is no certificate {file}.")
    if file.stat().st_size > _MAX_BYTES:
        raise InvalidCertificate(f"{file} is larger than 1 GB; it is not a certificate.")
    try:
        certificate = from_json(file.read_bytes(), Certificate)
    except msgspec.MsgspecError as problem:
        raise InvalidCertificate(
            f"{file} is not a certificate of a migration: {problem}."
        ) from None
    if certificate.seal != _seal(certificate):
        raise InvalidCertificate(
            f"{file} was changed after it was written: its seal does not match its content."
        )
    return certificate


def check_certificate(
    certificate: Certificate,
    read: Callable[[EntryKind, Sequence[str]], Mapping[str, Any]],
    progress: Progress,
) -> CertificateCheck:
    """Compare the target with a certificate; `read` returns entries of the target by key."""
    missing: list[str] = []
    changed: list[str] = []
    total = sum(map(len, certificate.entries.values()))
    done = 0
    for kind in KINDS:
        expected = iter(certificate.entries.get(kind.plural, {}).items())
        while batch := dict(islice(expected, BATCH_SIZE)):
            entries = read(kind, list(batch))
            for key, digest in batch.items():
                if key not in entries:
                    missing.append(key)
                elif entry_hash(entries[key]) != digest:
                    changed.append(key)
            done += len(batch)
            progress("", files=done, share=done / total, unit="entries")
    return CertificateCheck(
        source=certificate.source,
        target=certificate.target,
        finished_at=certificate.finished_at,
        was_whole=certificate.is_whole,
        exceptions=len(certificate.exceptions),
        entries=total,
        missing=tuple(missing),
        changed=tuple(changed),
    )


def entry_hash(entry: Any) -> str:
    """The hash of an entry without its volatile aspects."""
    fields = {
        name: value
        for name in entry.__struct_fields__
        if name not in _VOLATILE and (value := getattr(entry, name)) not in (None, (), {})
    }
    return _hash(fields)


def _seal(certificate: Certificate) -> str:
    return _hash(msgspec.structs.replace(certificate, seal=""))


def _hash(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(to_plain(value), order="sorted")).hexdigest()
