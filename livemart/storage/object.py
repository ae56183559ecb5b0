"""Keeps objects in a bucket of S3, or of a store that speaks its protocol.

Used for `s3://` URLs. The bucket itself refuses a second creation and an outdated replacement. A
request that gets no answer is repeated for a while; one that may have been carried out all the same
is compared with what the bucket holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import obstore
import pyarrow.fs as pfs
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from livemart.errors import StorageError, first_lines
from livemart.storage.access import access_options
from livemart.storage.fence import require_right_to_write
from livemart.storage.location import Location
from livemart.storage.storage import Changed, Missing, ObjectEntry, Taken

_S3A = "spark.hadoop.fs.s3a."
_NO_BUCKET = "NoSuchBucket"
# obstore cannot name each object of a foreign writer, nor list a folder that holds such a one.
_UNNAMED = "invalid path"
_PATIENCE_S = 60.0
_FIRST_WAIT_S = 0.1
_PART_BYTES = 8 << 20
_ANSWERS = (FileNotFoundError, AlreadyExistsError, PreconditionError)
_DENIED = (PermissionDeniedError, UnauthenticatedError)

_Result = TypeVar("_Result")


class ObjectStorage:
    """Objects below a prefix of a bucket."""

    def __init__(self, location: Location, client: Any, options: Mapping[str, str]) -> None:
        self.location = location
        self.patience_s = _PATIENCE_S
        self._client = client
        self._options = dict(options)
        self._prefix = f"{location.path}/" if location.path else ""
        self._filesystem: pfs.FileSystem | None = None

    @classmethod
    def open(cls, location: Location, environment: Mapping[str, str]) -> ObjectStorage:
        """Open a bucket with the credentials of the environment; no request is made.

        Raises:
            ValueError: the environment lacks some.
        """
        options = access_options(environment)
        return cls(location, _client(location.bucket, tuple(options.items())), options)

    def below(self, folder: str) -> ObjectStorage:
        storage = ObjectStorage(self.location / folder, self._client, self._options)
        storage.patience_s = self.patience_s
        return storage

    def create(self, name: str, data: bytes) -> None:
        self._put(name, data, "create", Taken)

    def put(self, name: str, data: bytes, *, synced: bool = True) -> None:
        self._put(name, data, "overwrite", Changed)

    def replace_if(self, name: str, data: bytes, etag: str) -> None:
        self._put(name, data, {"e_tag": etag}, Changed)

    def _put(self, name: str, data: bytes, mode: Any, refusal: type[Exception]) -> None:
        attempts = count()

        def request() -> None:
            require_right_to_write(self.location)
            is_first = next(attempts) == 0
            try:
                # In one request, which is carried out or not.
                obstore.put(self._client, self._key(name), data, mode=mode, use_multipart=False)
            except _ANSWERS as error:
                if _NO_BUCKET in str(error):
                    raise
                # An attempt that got no answer may have been the one that wrote it.
                if is_first or not self._holds(name, data):
                    raise refusal(self._url(name)) from error

        self._ask(name, request)

    def _holds(self, name: str, data: bytes) -> bool:
        try:
            return self.get(name) == data
        except Missing:
            return False

    def get(self, name: str) -> bytes:
        return self._read(name, lambda: obstore.get(self._client, self._key(name)).bytes())

    def download(self, name: str, path: Path, etag: str) -> None:
        if (entry := self.head(name)) is None:
            raise Missing(self._url(name))
        if entry.etag != etag:
            raise Changed(self._url(name))
        with path.open("wb") as file:
            # A request for all of a large object would take longer than one may.
            for start in range(0, entry.size, _PART_BYTES):
                end = min(start + _PART_BYTES, entry.size)
                options: Any = {"range": (start, end), "if_match": etag}

                def request(options: Any = options) -> Any:
                    return obstore.get(self._client, self._key(name), options=options).bytes()

                try:
                    file.write(self._read(name, request))
                except PreconditionError as error:
                    raise Changed(self._url(name)) from error

    def upload(self, name: str, path: Path) -> None:
        def request() -> None:
            require_right_to_write(self.location)
            obstore.put(self._client, self._key(name), path, chunk_size=_PART_BYTES)

        self._ask(name, request)

    def _read(self, name: str, request: Callable[[], Any]) -> bytes:
        try:
            return bytes(self._ask(name, request))
        except FileNotFoundError as error:
            raise Missing(self._url(name)) from error

    def head(self, name: str) -> ObjectEntry | None:
        try:
            return self._entry(self._ask(name, lambda: obstore.head(self._client, self._key(name))))
        except FileNotFoundError:
            return None

    def entries(self, folder: str = "") -> list[ObjectEntry]:
        return [self._entry(meta) for meta in self._metas(folder)]

    def names(self, folder: str = "", after: str = "", most: int | None = None) -> list[str]:
        return [self._name(meta) for meta in self._metas(folder, after, most)]

    def _metas(self, folder: str, after: str = "", most: int | None = None) -> list[Any]:
        prefix = self._key(folder).strip("/")

        def request() -> list[Any]:
            metas: list[Any] = []
            for page in obstore.list(
                self._client, prefix or None, offset=self._key(after) if after else None
            ):
                metas += page
                # Pages come in the order of keys; obstore promises none within a page.
                if most is not None and len(metas) >= most:
                    break
            return metas

        metas = sorted(self._ask(folder, request), key=self._name)
        if any(meta["size"] == 0 for meta in metas):
            metas = self._without_folders(metas, prefix)
        return metas[:most]

    def _without_folders(self, metas: list[Any], prefix: str) -> list[Any]:
        """Leave out S3A's marks of folders: empty objects whose keys end with a slash.

        obstore names it without the slash.
        """
        parts = (meta["path"].split("/") for meta in metas)
        folders = {"/".join(names[:depth]) for names in parts for depth in range(1, len(names))}
        folders.add(prefix)

        def is_folder(meta: Any) -> bool:
            # The mark of a folder without objects is asked for.
            return meta["path"] in folders or self.head(self._name(meta)) is None

        return [meta for meta in metas if meta["size"] > 0 or not is_folder(meta)]

    def folders(self, folder: str = "") -> list[str]:
        prefix = self._key(folder).strip("/")

        def request() -> Sequence[str]:
            return obstore.list_with_delimiter(self._client, prefix or None)["common_prefixes"]

        return sorted(path.rpartition("/")[2] for path in self._ask(folder, request))

    def delete(self, names: Iterable[str]) -> None:
        keys = [self._key(name) for name in names]
        if keys:
            require_right_to_write(self.location)
            self._ask("", lambda: obstore.delete(self._client, keys))

    def filesystem(self) -> pfs.FileSystem:
        if self._filesystem is None:
            endpoint = urlsplit(self._options.get("AWS_ENDPOINT_URL", "https:"))
            bucket = pfs.S3FileSystem(
                access_key=self._options.get("AWS_ACCESS_KEY_ID"),
                secret_key=self._options.get("AWS_SECRET_ACCESS_KEY"),
                session_token=self._options.get("AWS_SESSION_TOKEN"),
                region=self._options.get("AWS_REGION"),
                endpoint_override=endpoint.netloc or None,
                scheme=endpoint.scheme,
            )
            root = f"{self.location.bucket}/{self._prefix}"
            self._filesystem = pfs.SubTreeFileSystem(root, bucket)
        return self._filesystem

    def options(self) -> dict[str, str]:
        return dict(self._options)

    def spark_settings(self) -> dict[str, str]:
        # Spark takes the keys from the environment that the JVM inherits.
        endpoint = self._options.get("AWS_ENDPOINT_URL")
        values = {
            "endpoint": endpoint,
            "endpoint.region": self._options.get("AWS_REGION"),
            "path.style.access": endpoint and "true",
            # The others keep parts of files in memory that a reader of columns has read.
            "input.stream.type": "classic",
        }
        return {f"{_S3A}{name}": value for name, value in values.items() if value}

    def _key(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _url(self, name: str) -> str:
        return str(self.location / name if name else self.location)

    def _name(self, meta: Any) -> str:
        name: str = meta["path"].removeprefix(self._prefix)
        return name

    def _entry(self, meta: Any) -> ObjectEntry:
        modified_s = meta["last_modified"].timestamp()
        return ObjectEntry(self._name(meta), meta["size"], meta["e_tag"], modified_s)

    def _ask(self, name: str, request: Callable[[], _Result]) -> _Result:
        """Return the answer to a request; one without an answer is repeated, less and less often.

        Raises:
            FileNotFoundError: the bucket has no such object.
            StorageError: see `Storage`.
        """
        retrying = Retrying(
            retry=retry_if_exception(_has_no_answer),
            stop=stop_after_delay(self.patience_s),
            wait=wait_random_exponential(multiplier=_FIRST_WAIT_S, max=10.0),
            reraise=True,
        )
        try:
            return retrying(request)
        except (*_ANSWERS, BaseError) as error:
            if _NO_BUCKET in str(error):
                raise StorageError(
                    "BUCKET_MISSING",
                    f"{self.location.scheme}://{self.location.bucket}: found no such bucket",
                    hint="create it, or correct its name: livemart makes no bucket",
                ) from None
            if isinstance(error, _ANSWERS):
                raise
            # A store repeats in its body what was asked, with the id of the key.
            reason = first_lines(error).partition(": <")[0]
            if _UNNAMED in reason:
                raise StorageError(
                    "OBJECT_UNNAMED",
                    f"{self._url(name)}: {reason}",
                    hint="rename or remove it: no part of a name may be empty, dots, or hold a "
                    "sign of control",
                ) from None
            if isinstance(error, _DENIED):
                raise StorageError(
                    "STORAGE_DENIED",
                    f"{self._url(name)}: {reason}",
                    hint="check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of their "
                    "owner: to list the bucket, to read, write and delete its objects",
                ) from None
            raise StorageError(
                "STORAGE_AWAY",
                f"{self._url(name)}: no answer for {self.patience_s:g} s: {reason}",
                hint="check the network, AWS_ENDPOINT_URL and AWS_REGION, then run it again: "
                "nothing is lost",
            ) from None


@cache
def _client(bucket: str, options: tuple[tuple[str, str], ...]) -> S3Store:
    """Return the client of a bucket, whose connections all its folders share."""
    config: Any = {name.lower(): value for name, value in options}
    return S3Store(
        bucket,
        config=config,
        client_options={"timeout": "30s", "connect_timeout": "5s"},
        retry_config={"max_retries": 0},
    )


def _has_no_answer(error: BaseException) -> bool:
    words = str(error)
    is_answer = isinstance(error, (*_ANSWERS, *_DENIED)) or _NO_BUCKET in words or _UNNAMED in words
    return isinstance(error, BaseError) and not is_answer
