"""Checks that the executors of a cluster can do the work of a project, before any is given to them.

Used where a session starts. Executors parse large deliveries by this package, and write tables and
staged files where this machine finds them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from livemart import __version__
from livemart.errors import ConfigError, LivemartError
from livemart.spark.model_errors import message_of
from livemart.state.places import StateFolder
from livemart.storage.location import StoragePlace
from livemart.storage.opening import open_storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A pod may have to fetch its image first.
_PATIENCE_S = 300


def has_executors(master: str | None) -> bool:
    """Return True if a master starts executors in separate processes.

    >>> [has_executors(master) for master in ("local", "local[*]", "local-cluster[2,1,1024]")]
    [False, False, True]
    """
    return master not in (None, "local") and not str(master).startswith("local[")


def require_fit_executors(
    spark: SparkSession, warehouse: StoragePlace, patience_s: float = _PATIENCE_S
) -> None:
    """Let executors import this package and find an object that this machine writes.

    Args:
        spark: a session of a cluster.
        warehouse: its root.
        patience_s: how long executors may take to start.

    Raises:
        ConfigError: EXECUTOR_MISSING, EXECUTOR_UNFIT.
    """
    state = StateFolder(warehouse).path
    storage, name, content = open_storage(state), f"probe-{uuid.uuid4().hex}", b"livemart"
    root, version = str(state), __version__

    # Nested, so that it is sent as it is: an executor may not have this module.
    def look(_: Iterable[int]) -> Iterator[tuple[str, str]]:
        from socket import gethostname

        try:
            from livemart import __version__ as found_version
            from livemart.storage.opening import open_storage

            if found_version != version:
                reason = f"it has livemart {found_version}, this machine {version}"
            elif open_storage(root).get(name) == content:
                return
            else:
                reason = f"it reads another object as {root}/{name}"
        except ImportError as error:
            reason = f"its Python cannot import livemart: {error}"
        except FileNotFoundError:
            reason = f"it does not see {root} as this machine does"
        except Exception as error:
            reason = f"it cannot read {root}: {error}"
        yield gethostname(), reason

    context = spark.sparkContext
    # One for each core that is known now.
    count = max(2, context.defaultParallelism)
    tasks = context.parallelize(range(count), count).mapPartitions(look)
    storage.put(name, content)
    pool = ThreadPoolExecutor(1, "executors")
    try:
        unfit = sorted(set(pool.submit(tasks.collect).result(patience_s)))
    except TimeoutError:
        # Else the thread would wait for ever, and the end of the process for it.
        context.cancelAllJobs()
        raise ConfigError(
            "EXECUTOR_MISSING",
            f"master {context.master}: no executor has begun to work for {patience_s:g} s",
            hint="check that its workers have the memory and cores that `spark_conf` asks for: "
            "spark.executor.memory is 1g unless set. They must reach this machine, too: "
            "set spark.driver.host to an address that they see",
        ) from None
    except Exception as error:
        unfit = [("", f"its first task failed: {message_of(error)}")]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        with suppress(LivemartError, OSError):
            storage.delete([name])
    if unfit:
        host, reason = unfit[0]
        raise ConfigError(
            "EXECUTOR_UNFIT",
            f"master {context.master}: executor{f' on {host}' if host else ''}: {reason}",
            hint="let each executor see the warehouse at the same path. It needs the Python "
            "packages of this machine: in its image, or packed as spark.archives, with "
            "spark.pyspark.python in `spark_conf`",
        )
