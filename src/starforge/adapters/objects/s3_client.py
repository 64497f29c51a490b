"""The connection to an S3 server, and what its errors mean to a person."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError, SSLError
from botocore.exceptions import ConnectionError as NoConnection

_REFUSED = {"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch"}


@dataclass(frozen=True)
class S3Connection:
    """Where the bucket is and how to ask for it. `ca_file` is a bundle of roots, None for the public ones."""

    endpoint: str
    bucket: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    ca_file: Path | None = None
    path_style: bool = True
    connect_timeout_s: float = 3
    read_timeout_s: float = 20
    tries: int = 3

    def __repr__(self) -> str:
        return f"S3Connection({self.endpoint!r}, {self.bucket!r})"


def open_client(connection: S3Connection, endpoint: str) -> Any:
    """A client, safe to be used by several threads, that talks to `endpoint`; no request is made yet."""
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path" if connection.path_style else "virtual"},
        connect_timeout=connection.connect_timeout_s,
        read_timeout=connection.read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": connection.tries},
        # Newer checksums are sent only where S3 wants them: many servers that speak S3 refuse them.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    session = Session(connection.access_key, connection.secret_key, region_name=connection.region)
    verify = str(connection.ca_file) if connection.ca_file else None
    return session.client("s3", endpoint_url=endpoint, config=config, verify=verify)


def error_code(error: Exception) -> str:
    """The code that S3 gave, else the HTTP status, else nothing."""
    source = error if isinstance(error, ClientError) else error.__context__
    if not isinstance(source, ClientError):
        return ""
    status = source.response.get("ResponseMetadata", {}).get("HTTPStatusCode", "")
    return str(source.response.get("Error", {}).get("Code") or status)


def sentence(error: Exception, doing: str, endpoint: str) -> str:
    """What happened in words of ours, as the SDK's may hold URLs and keys."""
    code = error_code(error)
    if code == "NoSuchBucket":
        why = "the bucket does not exist; make it, or start the gateway again, which does"
    elif code in _REFUSED:
        why = f"it refused our keys ({code}); check FORGE_S3_ACCESS_KEY, FORGE_S3_SECRET_KEY and their rights"
    elif isinstance(error, SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        why = "its certificate can't be verified; check FORGE_S3_CA_FILE"
    elif isinstance(error, NoConnection | HTTPClientError):
        why = f"it can't be reached ({type(error).__name__}); check FORGE_S3_ENDPOINT and the server"
    else:
        why = f"it answered {code or type(error).__name__}"
    return f"The object store at {endpoint} could not {doing}: {why}."


__all__ = ["S3Connection", "error_code", "open_client", "sentence"]
