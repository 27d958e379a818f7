"""A profile beside what others measured of the same data."""

from typing import Final

import msgspec

from lumos.model.dataset import Profile, Quality

VALIDATOR: Final = "lumos"


def with_profile(
    before: Quality | None, profile: Profile, *, completeness: float | None
) -> Quality:
    """The quality with a new profile; what other validators say of it stays as it is."""
    if before is not None and _is_others(before):
        return msgspec.structs.replace(before, profile=profile)
    return Quality(
        measured_at=profile.measured_at,
        validator=VALIDATOR,
        dimensions={} if completeness is None else {"completeness": round(completeness, 6)},
        profile=profile,
    )


def _is_others(quality: Quality) -> bool:
    if quality.validator == VALIDATOR:
        return False
    return msgspec.structs.replace(quality, profile=None) != Quality()
