"""A bucket that is away, denied, slow or missing: nothing lost, nothing twice, all of it named."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from livemart.errors import StorageError
from livemart.storage.location import Location
from livemart.storage.object import ObjectStorage
from livemart.storage.storage import Missing, Taken
from tests.services.bucket import Buckets
from tests.storages import storage_in_bucket, storage_in_memory
from tests.waits import PATIENCE_S

SECRETS = {
    "AWS_ACCESS_KEY_ID": "a-key",
    "AWS_SECRET_ACCESS_KEY": "a-very-secret-key",
    "AWS_SESSION_TOKEN": "a-token",
    "AWS_REGION": "eu-central-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_PROFILE": "not for here",
}


@pytest.fixture
def away() -> ObjectStorage:
    """A bucket at a port where no server listens."""
    storage = ObjectStorage.open(Location.parse("s3://mart/eu"), SECRETS)
    storage.patience_s = 0.0
    return storage


@pytest.fixture
def bucket(bucket_server: Buckets) -> ObjectStorage:
    """An empty bucket of moto."""
    storage = storage_in_bucket(bucket_server)
    storage.patience_s = PATIENCE_S
    return storage


def test_a_store_without_an_answer_is_named_without_a_secret(away: ObjectStorage) -> None:
    with pytest.raises(
        StorageError, match=r"STORAGE_AWAY: s3://mart/eu/log/1\.json: no "
    ) as caught:
        away.create("log/1.json", b"")

    printed = f"{caught.value} {caught.value!r} {away!r} {away.location!r}"
    assert not any(secret in printed for secret in ("secret-key", "a-token", "a-key"))
    assert "PUT http://127.0.0.1:9/mart/eu/log/1.json" in caught.value.message
    assert caught.value.__cause__ is None
    # Code that goes on without a disk goes on without a bucket, too.
    assert isinstance(caught.value, OSError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), "STORAGE_AWAY")


def test_each_engine_is_given_what_the_environment_says(away: ObjectStorage) -> None:
    options = away.below("orders").options()
    expected = {name: value for name, value in SECRETS.items() if name != "AWS_PROFILE"}

    assert options == {**expected, "AWS_ALLOW_HTTP": "true"}
    keys = {name: SECRETS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    region = {"AWS_DEFAULT_REGION": "eu-central-1", "AWS_ENDPOINT_URL": ""}
    plain = ObjectStorage.open(Location.parse("s3://mart"), keys | region)
    assert plain.options() == keys | {"AWS_REGION": "eu-central-1"}
    s3a = {
        name.removeprefix("spark.hadoop.fs.s3a."): value
        for name, value in away.spark_settings().items()
    }
    assert (s3a["endpoint"], s3a["path.style.access"]) == (options["AWS_ENDPOINT_URL"], "true")
    # The JVM has the keys from the environment: Spark shows its settings.
    assert not any(options[name] in s3a.values() for name in options if "KEY" in name)
    assert "spark.hadoop.fs.s3a.endpoint" not in plain.spark_settings()
    assert plain.spark_settings()["spark.hadoop.fs.s3a.endpoint.region"] == "eu-central-1"


def test_an_own_creation_whose_answer_was_lost_has_succeeded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = storage_in_memory(monkeypatch)
    # The first request is lost, the second one's answer; the third meets what the second wrote.
    storage.create("1", b"mine")

    with pytest.raises(Taken):
        storage.create("1", b"another's")
    assert storage.get("1") == b"mine"


@pytest.mark.extended
@pytest.mark.parametrize("fault", ["lost", "throttled"])
def test_what_a_bucket_answers_late_is_written_once(
    bucket: ObjectStorage, bucket_server: Buckets, fault: str
) -> None:
    bucket_server.fail(fault, 2)
    bucket.create("1", b"mine")

    assert bucket.get("1") == b"mine"


@pytest.mark.extended
@pytest.mark.parametrize("fault", ["lost", "throttled"])
def test_another_writers_object_is_taken_however_late_the_answer(
    bucket: ObjectStorage, bucket_server: Buckets, fault: str
) -> None:
    bucket.create("1", b"another's")
    bucket_server.fail(fault, 2)

    with pytest.raises(Taken):
        bucket.create("1", b"mine")
    assert bucket.get("1") == b"another's"


@pytest.mark.extended
def test_a_bucket_that_refuses_is_not_asked_again(
    bucket: ObjectStorage, bucket_server: Buckets
) -> None:
    bucket.put("1", b"")
    bucket_server.fail("denied", 1, "GET")

    with pytest.raises(StorageError, match=r"STORAGE_DENIED: s3://.*/eu/1: "):
        bucket.get("1")
    assert bucket.get("1") == b""


@pytest.mark.extended
def test_a_missing_bucket_is_named_and_not_made(bucket_server: Buckets) -> None:
    storage = ObjectStorage.open(Location.parse("s3://no-mart/eu"), bucket_server.environment)
    asked: list[Callable[[], object]] = [
        lambda: storage.create("1", b""),
        lambda: storage.put("1", b""),
        lambda: storage.get("1"),
        lambda: storage.entries(),
        lambda: storage.delete(["1"]),
    ]

    for ask in asked:
        with pytest.raises(StorageError, match="BUCKET_MISSING: s3://no-mart: "):
            ask()
    # An answer to a look has no body that says so.
    assert storage.head("1") is None


@pytest.mark.extended
def test_the_mark_of_a_folder_is_no_object(bucket: ObjectStorage, bucket_server: Buckets) -> None:
    # hadoop-aws 3.5.0 makes one for each folder that Spark makes; obstore 0.12 drops its slash.
    root = f"{bucket.location.bucket}/{bucket.location.path}"
    for folder in ("", "/log", "/log/offsets", "/log/commits"):
        bucket_server.mark_folder(f"{root}{folder}")
    for name in ("log/offsets/0", "log/offsets-before", "log/empty"):
        bucket.put(name, b"" if name == "log/empty" else b"x")

    assert bucket.names() == ["log/empty", "log/offsets-before", "log/offsets/0"]
    assert bucket.names("log", most=2) == ["log/empty", "log/offsets-before"]
    assert bucket.names("log/commits") == []
    assert [entry.name for entry in bucket.entries("log/offsets")] == ["log/offsets/0"]


@pytest.mark.extended
def test_a_missing_object_is_no_missing_bucket(bucket: ObjectStorage) -> None:
    with pytest.raises(Missing):
        bucket.get("1")


@pytest.mark.extended
def test_an_object_that_cannot_be_named_is_reported_at_once(
    bucket_server: Buckets, bucket: ObjectStorage
) -> None:
    bucket.put("orders/1", b"")
    bucket_server.put_empty(f"{bucket.location.bucket}/eu/orders//2")

    with pytest.raises(StorageError, match=r"OBJECT_UNNAMED: s3://.*/eu/orders: .*orders//2"):
        bucket.names("orders")
