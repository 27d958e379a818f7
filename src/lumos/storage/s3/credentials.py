"""Finds credentials where the AWS command line finds them, in the same order."""

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from xml.etree import ElementTree

from lumos.storage.errors import NoCredentials, StorageDenied, StorageFault, error_of
from lumos.storage.http import Patience, Transport
from lumos.storage.s3.profiles import Profiles
from lumos.storage.s3.signing import Credentials, amazon_domain, query_text, signed

if TYPE_CHECKING:
    from lumos.storage.s3.access import S3Access

_RENEWED_BEFORE_SECONDS: Final = 300.0
_METADATA: Final = "http://169.254.169.254"
_CONTAINERS: Final = "http://169.254.170.2"
_SESSION: Final = "lumos"
# A machine outside of the cloud has no metadata service; looking for it must not take long.
_METADATA_SECONDS: Final = 1.0
_PATIENCE: Final = Patience(seconds=15, tries=4)


class CredentialSource:
    """The credentials of an access, found on first use and renewed before they end."""

    def __init__(
        self,
        access: "S3Access",
        transport: Transport,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._finder = _Finder(access, transport, environment)
        self._anonymous = access.anonymous
        self._current: Credentials | None = None
        self._lock = threading.Lock()

    def current(self) -> Credentials | None:
        """Credentials that are good for some minutes; none for anonymous access."""
        if self._anonymous:
            return None
        with self._lock:
            known = self._current
            ends = known.expires if known else 0.0
            if known is None or (ends is not None and ends - time.time() < _RENEWED_BEFORE_SECONDS):
                self._current = self._finder.find()
            return self._current

    def scrubbed(self, text: str) -> str:
        """The text without any part of the credentials in use."""
        return self._current.scrubbed(text) if self._current else text


class _Finder:
    def __init__(
        self, access: "S3Access", transport: Transport, environment: Mapping[str, str]
    ) -> None:
        self._access = access
        self._transport = transport
        self._environment = environment
        self._profiles = Profiles(environment)

    def find(self) -> Credentials:
        access = self._access
        found = next((each for place in self._places() if (each := place()) is not None), None)
        if found is None:
            raise NoCredentials("no credentials were found", code="NoCredentials")
        if access.role_arn:
            return self._with_role(found, {"role_arn": access.role_arn})
        return found

    def _places(self) -> Iterator[Callable[[], Credentials | None]]:
        """The order of the AWS command line; what the configuration names comes alone."""
        if self._access.access_key_id:
            yield self._given
        elif self._access.profile:
            yield lambda: self._of_profile(self._access.profile)
        else:
            yield from (self._in_environment, self._by_web_identity, self._of_usual_profile)
            yield from (self._of_container, self._of_machine)

    def _given(self) -> Credentials:
        access = self._access
        return Credentials(access.access_key_id, access.secret_access_key, access.session_token)

    def _in_environment(self) -> Credentials | None:
        get = self._environment.get
        key_id, secret = get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
        if not key_id or not secret:
            return None
        return Credentials(key_id, secret, get("AWS_SESSION_TOKEN", ""))

    def _by_web_identity(self) -> Credentials | None:
        role = self._environment.get("AWS_ROLE_ARN")
        file = self._environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        if not role or not file:
            return None
        session = self._environment.get("AWS_ROLE_SESSION_NAME", _SESSION)
        return self._with_web_identity(role, file, session)

    def _of_usual_profile(self) -> Credentials | None:
        named = self._environment.get("AWS_PROFILE")
        if named:
            return self._of_profile(named)
        return self._of_profile("default") if self._profiles.facts("default") else None

    def _of_container(self) -> Credentials | None:
        get = self._environment.get
        relative, full = (
            get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
            get("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        )
        if not relative and not full:
            return None
        file = get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        token = _text(file) if file else get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        url = f"{_CONTAINERS}{relative}" if relative else str(full)
        return _from_json(self._json(url, {"Authorization": token} if token else {}))

    def _of_machine(self) -> Credentials | None:
        if self._environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        base = self._environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _METADATA).rstrip("/")
        try:
            token = self._transport.send(
                "PUT",
                f"{base}/latest/api/token",
                headers=lambda: {"X-aws-ec2-metadata-token-ttl-seconds": "21600"},
                connect_seconds=_METADATA_SECONDS,
            )
        except StorageFault:
            return None
        if token.status != 200:
            return None
        headers = {"X-aws-ec2-metadata-token": token.body.decode()}
        roles = f"{base}/latest/meta-data/iam/security-credentials/"
        role = self._transport.send("GET", roles, headers=lambda: headers, patience=_PATIENCE)
        if role.status != 200:
            return None
        return _from_json(self._json(f"{roles}{role.body.decode().strip()}", headers))

    def _of_profile(self, name: str, seen: tuple[str, ...] = ()) -> Credentials:
        facts = self._profiles.facts(name)
        if not facts:
            known = ", ".join(self._profiles.names) or "none"
            raise NoCredentials(f"there is no profile '{name}' in ~/.aws; there are: {known}")
        if "role_arn" in facts and name not in seen:
            return self._by_role_of_profile(name, facts, seen)
        if "sso_account_id" in facts:
            return self._by_login(name, facts)
        if "aws_access_key_id" in facts:
            return Credentials(
                facts["aws_access_key_id"],
                facts.get("aws_secret_access_key", ""),
                facts.get("aws_session_token", ""),
            )
        if "credential_process" in facts:
            return _by_process(name, facts["credential_process"])
        raise NoCredentials(f"the profile '{name}' names no credentials")

    def _by_role_of_profile(
        self, name: str, facts: dict[str, str], seen: tuple[str, ...]
    ) -> Credentials:
        if file := facts.get("web_identity_token_file"):
            session = facts.get("role_session_name", _SESSION)
            return self._with_web_identity(facts["role_arn"], file, session)
        if "mfa_serial" in facts:
            raise NoCredentials(
                f"the profile '{name}' asks for a one-time code; run: "
                f'eval "$(aws configure export-credentials --profile {name} --format env)"'
            )
        if source := facts.get("source_profile"):
            return self._with_role(self._of_profile(source, (*seen, name)), facts)
        places = {
            "Environment": self._in_environment,
            "EcsContainer": self._of_container,
            "Ec2InstanceMetadata": self._of_machine,
        }
        place = places.get(facts.get("credential_source", ""))
        found = place() if place else None
        if found is None:
            raise NoCredentials(f"the profile '{name}' has a role but no credentials to take it on")
        return self._with_role(found, facts)

    def _by_login(self, name: str, facts: dict[str, str]) -> Credentials:
        login = self._profiles.login(name, facts)
        usual = f"https://portal.sso.{login['region']}.amazonaws.com"
        base = self._environment.get("AWS_ENDPOINT_URL_SSO", usual).rstrip("/")
        query = query_text(
            {"account_id": facts["sso_account_id"], "role_name": facts.get("sso_role_name", "")}
        )
        try:
            told = self._json(
                f"{base}/federation/credentials?{query}",
                {"x-amz-sso_bearer_token": login["token"]},
            )["roleCredentials"]
        except StorageDenied:
            raise NoCredentials(
                f"the login of the profile '{name}' has ended; run: aws sso login --profile {name}"
            ) from None
        return Credentials(
            told["accessKeyId"],
            told["secretAccessKey"],
            told["sessionToken"],
            told["expiration"] / 1000,
        )

    def _with_role(self, base: Credentials, facts: Mapping[str, str]) -> Credentials:
        query = {
            "Action": "AssumeRole",
            "RoleArn": facts["role_arn"],
            "RoleSessionName": facts.get("role_session_name", _SESSION),
        }
        if "external_id" in facts:
            query["ExternalId"] = facts["external_id"]
        if "duration_seconds" in facts:
            query["DurationSeconds"] = facts["duration_seconds"]
        return self._from_token_service(query, base)

    def _with_web_identity(self, role: str, file: str, session: str) -> Credentials:
        query = {
            "Action": "AssumeRoleWithWebIdentity",
            "RoleArn": role,
            "RoleSessionName": session,
            "WebIdentityToken": _text(file),
        }
        return self._from_token_service(query, None)

    def _from_token_service(self, query: dict[str, str], base: Credentials | None) -> Credentials:
        region = self._access.signing_region()
        url = self._token_service(region)
        body = query_text({**query, "Version": "2011-06-15"}).encode()

        def headers() -> Mapping[str, str]:
            plain = {"content-type": "application/x-www-form-urlencoded"}
            if base is None:
                return plain
            return signed(
                plain,
                base,
                method="POST",
                url=urlsplit(url),
                body=body,
                region=region,
                service="sts",
            )

        answer = self._transport.send("POST", url, headers=headers, body=body, patience=_PATIENCE)
        if answer.status != 200:
            problem = error_of(answer.status, answer.body)
            raise NoCredentials(
                f"the role {query['RoleArn']} cannot be taken on: {problem}", code=problem.code
            )
        found = {
            node.tag.rpartition("}")[2]: node.text or ""
            for node in ElementTree.fromstring(answer.body).iter()
        }
        return Credentials(
            found["AccessKeyId"],
            found["SecretAccessKey"],
            found["SessionToken"],
            _seconds(found["Expiration"]),
        )

    def _token_service(self, region: str) -> str:
        given = self._environment.get("AWS_ENDPOINT_URL_STS") or self._access.endpoint_url
        # Amazon's private S3 endpoints do not serve roles; other makers' endpoints do.
        if given and "amazonaws.com" not in given:
            return f"{given.rstrip('/')}/"
        return f"https://sts.{region}.{amazon_domain(region)}/"

    def _json(self, url: str, headers: Mapping[str, str]) -> Any:
        answer = self._transport.send("GET", url, headers=lambda: headers, patience=_PATIENCE)
        where = urlsplit(url).netloc
        if answer.status != 200:
            raise NoCredentials(f"{where} gives no credentials (status {answer.status})")
        try:
            return json.loads(answer.body)
        except ValueError:
            raise NoCredentials(f"{where} gives no credentials but something else") from None


def _by_process(name: str, command: str) -> Credentials:
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, check=True, timeout=60)
        return _from_json(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        # Neither the command nor what it printed is shown: both may hold secrets.
        raise NoCredentials(
            f"the credential_process of the profile '{name}' failed ({type(problem).__name__})"
        ) from None


def _from_json(told: Mapping[str, str]) -> Credentials:
    if "AccessKeyId" not in told or "SecretAccessKey" not in told:
        raise NoCredentials("what should hand out credentials answered without any")
    token = told.get("Token") or told.get("SessionToken", "")
    ends = told.get("Expiration")
    return Credentials(
        told["AccessKeyId"], told["SecretAccessKey"], token, _seconds(ends) if ends else None
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _text(file: str) -> str:
    try:
        with open(os.path.expanduser(file), encoding="utf-8") as opened:
            return opened.read().strip()
    except OSError as problem:
        raise NoCredentials(f"the token file {file} cannot be read: {problem.strerror}") from None
