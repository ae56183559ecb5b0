"""Lets a plain dbt work beside a runner, through Spark Connect.

Used by `stream`, `up` and a dbt in a prepared terminal. The server listens on loopback only and
wants a token, which only the user who owns the warehouse can read.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from livemart.errors import StateError
from livemart.state.holders import Holder
from livemart.state.lock import who_holds
from livemart.state.places import LocalFolder
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client.retries import RetryPolicy


def connect_settings(warehouse: StoragePlace) -> dict[str, str]:
    """Return the Spark settings of the server, with a new token; the system chooses the port."""
    token = secrets.token_urlsafe(32)
    path = LocalFolder(warehouse).connect_token
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token)
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.connect.authenticate.token": token,
    }


def connect_port(spark: SparkSession) -> int:
    """Return the port on which the server of `spark` listens."""
    jvm = spark.sparkContext._jvm
    service = getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


def connect_url(warehouse: StoragePlace, holder: Holder | None) -> str | None:
    """Return SPARK_REMOTE for the server of `holder`, token included; None if it has none."""
    if holder is None or holder.connect_port is None:
        return None
    try:
        token = LocalFolder(warehouse).connect_token.read_text()
    except OSError:
        return None
    # By this very name: with any other, the client wants TLS as soon as there is a token.
    return f"sc://localhost:{holder.connect_port}/;token={token}"


def join(url: str, warehouse: StoragePlace, holder: Holder) -> SparkSession:
    """Return a session of the server at `url`, which `holder` runs; see `retry_policy`."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(url).getOrCreate()
    client: Any = session.client
    client.set_retry_policies([retry_policy(warehouse, holder)])
    return session


def retry_policy(warehouse: StoragePlace, holder: Holder) -> RetryPolicy:
    """Return Spark's own policy while `holder` lives; after its end a call fails with RUNNER_ENDED.

    No process will answer then, and Spark would go on asking for ten minutes.
    """
    from grpc import RpcError
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class WhileTheRunnerLives(DefaultPolicy):
        def can_retry(self, e: BaseException) -> bool:
            if isinstance(e, RpcError) and who_holds(warehouse) != holder:
                raise StateError(
                    "RUNNER_ENDED",
                    f"{warehouse}: {holder}, whose Spark this process had joined, has ended",
                    hint="run the command again: it starts its own Spark, or joins the next "
                    "runner's",
                ) from e
            return bool(super().can_retry(e))

    return WhileTheRunnerLives()
