"""The keys to sign requests to S3 with: static keys, or keys that botocore finds and renews."""

import logging
import os
import threading
from typing import Any, Final, TypeAlias

from lumos.config.secret import redact
from lumos.storage.errors import NoCredentials
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.signing import S3Keys
from lumos.storage.tokens import vendor_module

_ROLE_SESSION_NAME: Final = "lumos"

# Credentials of botocore, which renew themselves if they are temporary.
_BotocoreCredentials: TypeAlias = Any


class S3Credentials:
    """The keys for an S3Access; thread-safe.

    Keys in the configuration are used first, then a profile in it, then keys in the environment.
    botocore is only imported if there are no static keys, or to assume a role.
    """

    def __init__(self, access: S3Access) -> None:
        self._access = access
        self._static = _static_keys(access)
        self._botocore_credentials: _BotocoreCredentials = None
        self._last: S3Keys | None = self._static
        self._lock = threading.Lock()

    @property
    def are_static(self) -> bool:
        """Whether the keys never expire."""
        return self._static is not None and not self._access.role_arn

    def current(self) -> S3Keys | None:
        """Keys that are valid for a few minutes; None for anonymous access."""
        if self._access.anonymous:
            return None
        if self.are_static:
            return self._static
        with self._lock:
            keys = self._botocore_keys()
            self._last = S3Keys(keys.access_key, keys.secret_key, keys.token or "")
            return self._last

    def mask_secrets(self, text: str) -> str:
        """The text with all keys masked."""
        text = self._static.mask_secrets(text) if self._static else text
        return self._last.mask_secrets(text) if self._last else text

    def _botocore_keys(self) -> Any:
        """The current keys of botocore; error messages contain no secrets."""
        errors = vendor_module("botocore.exceptions", library="botocore", extra="s3")
        profile = self._access.profile or os.environ.get("AWS_PROFILE", "default")
        try:
            if self._botocore_credentials is None:
                self._botocore_credentials = self._find_credentials()
            return self._botocore_credentials.get_frozen_credentials()
        except NoCredentials:
            raise
        except errors.ProfileNotFound:
            raise NoCredentials(f"there is no profile '{profile}' in ~/.aws") from None
        except (errors.SSOError, errors.TokenRetrievalError):
            raise NoCredentials(
                f"the profile '{profile}' is not logged in; run: aws sso login --profile {profile}"
            ) from None
        except errors.ClientError as problem:
            error = problem.response.get("Error", {})
            role = self._access.role_arn
            subject = f"the role {role}" if role else f"the role of the profile '{profile}'"
            raise NoCredentials(
                f"{subject} cannot be assumed: {redact(error.get('Message') or 'refused')} "
                f"({error.get('Code', '')})",
                code=error.get("Code", ""),
            ) from None
        except errors.CredentialRetrievalError as problem:
            if problem.kwargs.get("provider") == "custom-process":
                # The output of the program may contain secrets.
                text = f"the credential_process of the profile '{profile}' failed"
            else:
                text = _one_line(problem)
            raise NoCredentials(text) from None
        except (errors.BotoCoreError, OSError) as problem:
            raise NoCredentials(_one_line(problem)) from None
        except (LookupError, ValueError) as problem:
            # botocore does not validate the response of a credential provider.
            raise NoCredentials(
                f"the credential provider returned no credentials ({type(problem).__name__})"
            ) from None

    def _find_credentials(self) -> _BotocoreCredentials:
        access, static = self._access, self._static
        session = self._session()
        credentials = vendor_module("botocore.credentials", library="botocore", extra="s3")
        if static is not None:
            source = credentials.Credentials(static.key_id, static.secret, static.token or None)
        else:
            _refuse_one_time_codes(session)
            source = session.get_credentials()
        if source is None:
            if access.profile:
                raise NoCredentials(f"the profile '{access.profile}' has no credentials")
            raise NoCredentials("no credentials were found", code="NoCredentials")
        if not access.role_arn:
            return source
        fetcher = credentials.AssumeRoleCredentialFetcher(
            client_creator=session.create_client,
            source_credentials=source,
            role_arn=access.role_arn,
            extra_args={"RoleSessionName": _ROLE_SESSION_NAME},
        )
        return credentials.DeferredRefreshableCredentials(
            method="assume-role", refresh_using=fetcher.fetch_credentials
        )

    def _session(self) -> Any:
        """A botocore session; with other vendors, it assumes roles at their endpoint."""
        access = self._access
        sessions = vendor_module("botocore.session", library="botocore", extra="s3")
        # botocore also logs the errors that it raises.
        for name in ("botocore.credentials", "botocore.tokens"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        session = sessions.Session(profile=access.profile or None)
        session.set_config_variable("region", access.signing_region())
        is_other_vendor = bool(access.endpoint_url) and "amazonaws.com" not in access.endpoint_url
        if is_other_vendor and not os.environ.get("AWS_ENDPOINT_URL_STS"):
            # The S3 endpoints of other vendors also serve STS; private S3 endpoints of AWS do not.
            create_client = session.create_client

            def create_client_at_endpoint(service: str, **options: Any) -> Any:
                if service == "sts":
                    options.setdefault("endpoint_url", access.endpoint_url)
                return create_client(service, **options)

            session.create_client = create_client_at_endpoint
        return session


def _static_keys(access: S3Access) -> S3Keys | None:
    if access.access_key_id:
        return S3Keys(access.access_key_id, access.secret_access_key, access.session_token)
    key_id = os.environ.get("AWS_ACCESS_KEY_ID")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY")
    if access.profile or not key_id or not secret:
        return None
    return S3Keys(key_id, secret, os.environ.get("AWS_SESSION_TOKEN", ""))


def _refuse_one_time_codes(session: Any) -> None:
    """Raise NoCredentials if botocore would prompt for a one-time code."""
    profiles = session.full_config.get("profiles", {})
    name, visited = session.get_config_variable("profile") or "default", set[str]()
    while name in profiles and name not in visited:
        if "role_arn" in profiles[name] and "mfa_serial" in profiles[name]:
            raise NoCredentials(
                f"the profile '{name}' asks for a one-time code; run: "
                f'eval "$(aws configure export-credentials --profile {name} --format env)"'
            )
        visited.add(name)
        name = profiles[name].get("source_profile", "")


def _one_line(problem: Exception) -> str:
    text = getattr(problem, "strerror", None) or str(problem)
    return redact(" ".join(text.split()))[:300].rstrip(".")
