"""botocore clients for other AWS services, such as SQS, with the credentials of an S3 source."""

import threading
from typing import Any

from lumos.storage.errors import NoCredentials
from lumos.storage.s3.access import S3Access
from lumos.storage.s3.credentials import S3Credentials
from lumos.storage.s3.signing import S3Keys
from lumos.storage.tokens import vendor_module


class AwsClient:
    """A client for one AWS service, which is created again when its keys are renewed; thread-safe.

    Without `endpoint_url`, botocore uses variables such as AWS_ENDPOINT_URL_SQS, or else AWS.
    """

    def __init__(
        self, service: str, access: S3Access, *, region: str = "", endpoint_url: str = ""
    ) -> None:
        self._service = service
        self._region = access.resolve().signing_region(region)
        self._endpoint_url = endpoint_url or None
        self._credentials = S3Credentials(access)
        self._lock = threading.Lock()
        self._keys: S3Keys | None = None
        self._client: Any = None

    @property
    def current(self) -> Any:
        """The client; raises NoCredentials."""
        with self._lock:
            keys = self._credentials.current()
            if keys is None:
                raise NoCredentials("an anonymous source has no access to other AWS services")
            if self._client is None or keys != self._keys:
                self._keys, self._client = keys, self._create(keys)
            return self._client

    def mask_secrets(self, text: str) -> str:
        """The text with all keys masked."""
        return self._credentials.mask_secrets(text)

    def _create(self, keys: S3Keys) -> Any:
        sessions = vendor_module("botocore.session", library="botocore", extra="s3")
        config = vendor_module("botocore.config", library="botocore", extra="s3")
        session = sessions.Session()
        return session.create_client(
            self._service,
            region_name=self._region,
            endpoint_url=self._endpoint_url,
            aws_access_key_id=keys.key_id,
            aws_secret_access_key=keys.secret,
            aws_session_token=keys.token or None,
            config=config.Config(
                connect_timeout=10,
                read_timeout=60,
                max_pool_connections=16,
                retries={"mode": "standard", "max_attempts": 5},
                # Virtual hosts do not work for addresses such as http://127.0.0.1:5000.
                s3={"addressing_style": "path"} if self._endpoint_url else None,
            ),
        )
