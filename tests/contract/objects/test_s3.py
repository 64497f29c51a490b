"""What the S3 store promises beyond the port."""

from collections.abc import Callable

import pytest

from starforge.adapters.objects import S3Connection, S3Objects
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.ports import Audience
from tests.servers import S3Server, free_port


def test_pods_get_their_own_name_of_the_store(moto: S3Server) -> None:
    connection = S3Connection(moto.endpoint, "bucket", "access", "secret-key")
    store = S3Objects(connection, pod_endpoint="http://s3.internal:9000")
    assert store.sign_get("a", seconds=60, audience=Audience.POD).url.startswith("http://s3.internal:9000/bucket/a?")
    assert store.sign_get("a", seconds=60, audience=Audience.CLIENT).url.startswith(f"{moto.endpoint}/bucket/a?")


def test_a_signature_lives_no_longer_than_the_setting_allows(moto: S3Server) -> None:
    store = S3Objects(S3Connection(moto.endpoint, "bucket", "access", "secret-key"), url_max_s=3600)
    assert store.longest_signature_s == 3600
    assert "X-Amz-Expires=3600&" in store.sign_get("a", seconds=9999, audience=Audience.POD).url
    assert S3Objects(S3Connection(moto.endpoint, "b", "a", "s"), url_max_s=10**9).longest_signature_s == 7 * 86400


def test_the_condition_of_a_claim_is_signed(moto: S3Server) -> None:
    store = S3Objects(S3Connection(moto.endpoint, "bucket", "access", "secret-key"))
    signed = store.sign_put("claim", seconds=60, audience=Audience.POD, only_new=True)
    assert signed.headers == (("If-None-Match", "*"),)
    assert "X-Amz-SignedHeaders=host%3Bif-none-match" in signed.url


def test_a_bucket_in_another_region_is_made(moto: S3Server) -> None:
    store = S3Objects(S3Connection(moto.endpoint, "starforge-eu", "access", "secret-key", region="eu-central-1"))
    store.prepare()
    assert store.put("a", b"x", only_new=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.prepare(), lambda store: store.size("a"), lambda store: store.read("a"),
        lambda store: store.put("a", b"x"), lambda store: store.put("a", b"x", only_new=True),
        lambda store: store.delete("a"), lambda store: store.check(),
    ],
    ids=["prepare", "size", "read", "put", "put new", "delete", "check"],
)  # fmt: skip
def test_a_store_that_is_down_is_unavailable(ask: Callable[[S3Objects], object]) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    store = S3Objects(S3Connection(endpoint, "bucket", "an-access-key", "a-secret-key", connect_timeout_s=0.2))
    with pytest.raises(ObjectStoreUnavailable, match="can't be reached") as caught:
        ask(store)
    assert endpoint in str(caught.value)
    assert "key" not in str(caught.value).replace("FORGE", "").lower()


def test_a_missing_bucket_is_told(moto: S3Server) -> None:
    store = S3Objects(S3Connection(moto.endpoint, "nowhere", "access", "secret-key"))
    with pytest.raises(ObjectStoreUnavailable, match="the bucket does not exist"):
        store.read("a")


def test_a_connection_shows_no_keys() -> None:
    assert "hush" not in repr(S3Connection("http://s3", "bucket", "hush-access", "hush-secret"))
