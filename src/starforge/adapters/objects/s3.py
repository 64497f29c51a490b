"""Objects in a bucket of any S3 server."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError

from starforge.adapters.objects.keys import CHECK_KEY, check_key
from starforge.adapters.objects.s3_client import S3Connection, error_code, open_client, sentence
from starforge.domain.errors import NotFound, ObjectStoreUnavailable
from starforge.domain.ports import Audience, Signed

SIGNATURE_MAX_S = 7 * 86400  # of SigV4
CHECK_S = 3
"""Longest to connect, and longest without an answer, of a check."""
_MISSING = {"404", "NoSuchKey", "NotFound"}
_TAKEN = {"412", "PreconditionFailed", "409", "ConditionalRequestConflict"}
_ALREADY_OURS = {"BucketAlreadyOwnedByYou", "BucketAlreadyExists"}
_TRANSFER = TransferConfig(multipart_threshold=64 << 20, multipart_chunksize=16 << 20, max_concurrency=4)


class S3Objects:
    """An ObjectStore (see the port) in `connection.bucket`.

    `pod_endpoint` is the store's address as Pods know it, `url_max_s` the most seconds that a signature may live.
    A conditional put is one request, of 5 GiB at most, since few S3 servers know a conditional multipart upload.
    """

    def __init__(
        self, connection: S3Connection, *, pod_endpoint: str | None = None, url_max_s: int = SIGNATURE_MAX_S
    ) -> None:
        self._bucket = connection.bucket
        self._region = connection.region
        self._endpoint = connection.endpoint
        self._client = open_client(connection, connection.endpoint)
        self._pod_client = open_client(connection, pod_endpoint) if pod_endpoint else self._client
        hasty = replace(connection, connect_timeout_s=CHECK_S, read_timeout_s=CHECK_S, tries=1)
        self._hasty_client = open_client(hasty, connection.endpoint)
        self._url_max_s = min(url_max_s, SIGNATURE_MAX_S)

    @property
    def longest_signature_s(self) -> float:
        return float(self._url_max_s)

    def prepare(self) -> None:
        with self._outside(f"find or make the bucket {self._bucket}"):
            try:
                self._client.head_bucket(Bucket=self._bucket)
            except ClientError as error:
                if error_code(error) not in {"404", "NoSuchBucket"}:
                    raise
                self._create_bucket()

    def _create_bucket(self) -> None:
        where = {"CreateBucketConfiguration": {"LocationConstraint": self._region}}
        try:
            self._client.create_bucket(Bucket=self._bucket, **({} if self._region == "us-east-1" else where))
        except ClientError as error:
            if error_code(error) not in _ALREADY_OURS:
                raise

    def check(self) -> None:
        place, body = self._place(CHECK_KEY), b"ok"
        with self._outside("store and read a small object"):
            self._hasty_client.put_object(**place, Body=body)
            read = self._hasty_client.get_object(**place)["Body"].read()
        if read != body:
            raise ObjectStoreUnavailable(f"The object store at {self._endpoint} gave back other bytes than it got.")

    def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> bool:
        place = self._place(key)
        with self._outside(f"store {key}"):
            if only_new:
                return self._put_new(place, source)
            if isinstance(source, bytes):
                self._client.put_object(**place, Body=source)
            else:
                self._client.upload_file(str(source), **place, Config=_TRANSFER)
            return True

    def _put_new(self, place: dict[str, str], source: Path | bytes) -> bool:
        if self._bytes(place) is not None:
            return False  # a server that says so while we still send would only hang up on us
        try:
            if isinstance(source, bytes):
                self._client.put_object(**place, Body=source, IfNoneMatch="*")
            else:
                with source.open("rb") as body:
                    self._client.put_object(**place, Body=body, IfNoneMatch="*")
        except ClientError as error:
            if error_code(error) in _TAKEN:
                return False
            raise
        return True

    def size(self, key: str) -> int | None:
        with self._outside(f"look for {key}"):
            return self._bytes(self._place(key))

    def _bytes(self, place: dict[str, str]) -> int | None:
        try:
            return int(self._client.head_object(**place)["ContentLength"])
        except ClientError as error:
            if error_code(error) in _MISSING:
                return None
            raise

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            self._demand(key)
            return b""
        last = "" if length is None else start + length - 1
        whole = start == 0 and length is None
        with self._outside(f"read {key}", key):
            try:
                asked = {} if whole else {"Range": f"bytes={start}-{last}"}
                answer = self._client.get_object(**self._place(key), **asked)
                return bytes(answer["Body"].read())
            except ClientError as error:
                if error_code(error) in {"416", "InvalidRange"}:
                    return b""
                raise

    def fetch(self, key: str, into: Path) -> None:
        with self._outside(f"fetch {key}", key):
            self._client.download_file(**self._place(key), Filename=str(into), Config=_TRANSFER)

    def delete(self, key: str) -> None:
        with self._outside(f"remove {key}"):
            self._client.delete_object(**self._place(key))

    def sign_get(self, key: str, *, seconds: float, audience: Audience) -> Signed:
        return self._sign("GET", key, seconds, audience)

    def sign_put(self, key: str, *, seconds: float, audience: Audience, only_new: bool) -> Signed:
        return self._sign("PUT", key, seconds, audience, only_new=only_new)

    def _sign(self, method: str, key: str, seconds: float, audience: Audience, *, only_new: bool = False) -> Signed:
        client = self._pod_client if audience is Audience.POD else self._client
        lifetime = min(max(1, math.floor(seconds)), self._url_max_s)
        what = self._place(key) | ({"IfNoneMatch": "*"} if only_new else {})
        with self._outside(f"sign a request for {key}"):
            url = client.generate_presigned_url(f"{method.lower()}_object", Params=what, ExpiresIn=lifetime)
        headers = (("If-None-Match", "*"),) if only_new else ()
        return Signed(method, url, headers, _expiry(url))

    def _place(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": check_key(key)}

    def _demand(self, key: str) -> None:
        if self.size(key) is None:
            raise NotFound(f"There is no object {key}.")

    @contextmanager
    def _outside(self, doing: str, key: str | None = None) -> Iterator[None]:
        """Errors of the SDK as ours; with `key`, a missing one is NotFound. The SDK's own text is not passed on."""
        try:
            yield
        except (ClientError, BotoCoreError, Boto3Error) as error:
            if key and error_code(error) in _MISSING:
                raise NotFound(f"There is no object {key}.") from None
            raise ObjectStoreUnavailable(sentence(error, doing, self._endpoint)) from None


def _expiry(url: str) -> datetime:
    """When a presigned URL stops to work, as it says itself."""
    query: dict[str, Any] = parse_qs(urlsplit(url).query)
    signed_at = datetime.strptime(query["X-Amz-Date"][0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return signed_at + timedelta(seconds=int(query["X-Amz-Expires"][0]))


__all__ = ["SIGNATURE_MAX_S", "S3Objects"]
