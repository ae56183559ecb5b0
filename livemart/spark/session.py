"""Starts the one Spark session of a process: quiet, offline, with the project's settings.

Used by all code that works on a warehouse. Build, refresh and dbt must have identical settings, or
their rows differ. If a part is missing and cannot be fetched, an error comes before Spark starts.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livemart.delta.properties import TABLE_PROPERTIES
from livemart.errors import ConfigError
from livemart.settings import Settings
from livemart.spark.executors import has_executors, require_fit_executors
from livemart.spark.jars import require_jars
from livemart.spark.java import require_java
from livemart.spark.jvm import jvm_options
from livemart.spark.model_errors import message_of
from livemart.state.places import LocalFolder
from livemart.storage.location import Location, StoragePlace
from livemart.storage.opening import open_storage

# Each start of a JVM adds a few hundred bytes.
_LOG_BYTES = 1 << 20
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
# PySpark reads it of `spark-submit` alone.
_WORKERS_PYTHON = "spark.pyspark.python"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from livemart.state.lock import WarehouseLock


def session_settings(
    warehouse: StoragePlace,
    jars: tuple[Path, ...],
    master: str = "local[2]",
    given: Mapping[str, str] | None = None,
    farthest: StoragePlace | None = None,
) -> dict[str, str]:
    """Return every Spark setting the project depends on.

    Args:
        warehouse: root of all tables; `warehouse/<schema>/<identifier>`.
        jars: those of Delta and of the store that is read, checked by the caller.
        master: Spark's; executors in separate processes are given the jars.
        given: Spark's properties that the project sets, none of those that rows depend on.
        farthest: a place whose access Spark needs; the warehouse if None.
    """
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": Location.of(warehouse).spark_url,
        # Day-time intervals add local days: 168 h would be 167 h over a clock change (SPARK-34761).
        "spark.sql.session.timeZone": "UTC",
        # dbt-spark turns ANSI off on the shared session; anything else would differ between lanes.
        "spark.sql.ansi.enabled": "false",
        # Names are one whatever their letter case: plans are made so, and so are Delta's tables.
        "spark.sql.caseSensitive": "false",
        # Spark would replace ${env:...} even inside string literals.
        "spark.sql.variable.substitute": "false",
        # INT96, the default, has no statistics and overflows in readers that use nanoseconds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Spark looks for 0.0 in a dictionary by its bits: where one holds -0.0 alone, a filter on
        # 0.0 would find no row.
        "spark.hadoop.parquet.filter.dictionary.enabled": "false",
        # Delta sets it in the session that opens a table first; others refuse columns mapped by id.
        "spark.sql.parquet.fieldId.read.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.window.segmentTree.enabled": "true",
        # Rows in memory would be projected while a statement is planned, one expression at a time.
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
        ),
        # Some ten pieces of code a statement, a few statements a model. The default has room for a
        # hundred: the code of twenty models would be compiled again in each batch.
        "spark.sql.codegen.cache.maxEntries": "1000",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.sources.default": "delta",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.databricks.delta.merge.materializeSource": "all",
        # Files are read without Spark, too: no row may be there that a vector beside it marks.
        "spark.databricks.delta.delete.deletionVectors.persistent": "false",
        "spark.databricks.delta.merge.deletionVectors.persistent": "false",
        "spark.databricks.delta.update.deletionVectors.persistent": "false",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing"
            ".FileSystemBasedCheckpointFileManager"
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # By default every hash table and sort of every task takes and clears 64 MB of a 3 GB heap.
        "spark.buffer.pageSize": "2m",
        # No user looks at the history of statements and tasks that Spark keeps for its pages.
        "spark.sql.ui.explainMode": "simple",
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    }
    given, storage = dict(given or {}), open_storage(farthest or warehouse)
    if has_executors(master):
        uris = [jar.absolute().as_uri() for jar in jars]
        given["spark.jars"] = ",".join([*uris, *filter(None, [given.get("spark.jars")])])
        # As the driver's; the last one counts.
        options = given.get(_EXECUTOR_OPTIONS, "")
        given[_EXECUTOR_OPTIONS] = f"{options} -Duser.timezone=UTC".strip()
        # Executors need not see the landing folder, so they list no folders.
        settings["spark.sql.sources.parallelPartitionDiscovery.threshold"] = "1000000"
        for name, value in storage.options().items():
            settings[f"spark.executorEnv.{name}"] = value
        if not master.startswith("local"):
            # Executors elsewhere must reach the driver: Spark finds the address they see.
            del settings["spark.driver.host"], settings["spark.driver.bindAddress"]
    settings |= given | storage.spark_settings()
    for name, value in TABLE_PROPERTIES.items():
        settings[f"spark.databricks.delta.properties.defaults.{name.removeprefix('delta.')}"] = (
            value
        )
    return settings


def open_session(
    settings: Settings,
    extra: Mapping[str, str] | None = None,
    *,
    lock: WarehouseLock | None = None,
    jars: tuple[Path, ...] | None = None,
    is_short: bool = False,
    folder: Path | None = None,
) -> SparkSession:
    """Start (or return) this process's session on the warehouse.

    Args:
        settings: of them the warehouse, `jars`, `master`, `memory` and `spark_conf`.
        extra: settings of Spark's, beside those of the project.
        lock: held by a process that writes; the JVM has it as long as it lives.
        jars: those that the warehouse needs, if they and Java have been checked already.
        is_short: the process ends within a minute or so.
        folder: the JVM's working folder; this process's if None.

    Raises:
        ConfigError: whatever is wrong with Java or the jars; SPARK_NOT_STARTED, EXECUTOR_MISSING,
            EXECUTOR_UNFIT.
    """
    if jars is None:
        require_java()
        jars = require_jars(settings.jars, Location.of(settings.farthest).scheme)
    prepare_environment(settings)
    log4j = Path(__file__).with_name("log4j2.properties")
    options = session_settings(
        settings.warehouse, jars, settings.master, settings.spark_conf, settings.farthest
    )
    options |= dict(extra or {})
    # The class path and Java options count only before the JVM starts.
    arguments = [f"--master {settings.master}", f"--driver-memory {settings.memory}"]
    options["spark.driver.extraJavaOptions"] += (
        f" -Dlog4j2.configurationFile=file:{log4j} {jvm_options(jars, is_short=is_short)}"
    )
    for name in ("spark.driver.extraClassPath", "spark.driver.extraJavaOptions"):
        arguments.append(f'--conf "{name}={options.pop(name)}"')
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join([*arguments, "pyspark-shell"])

    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    # An error of a micro-batch arrives as an exception; Py4J would print it as well.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    # Else each failing statement is also printed, as JSON with a Java stack.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    own_log = LocalFolder(settings.warehouse).spark_log
    log = None if os.environ.get("LIVEMART_SPARK_LOG") else own_log
    _start_jvm(log, lock, folder)
    builder = SparkSession.builder.appName("livemart")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = _context_started(builder, settings.master)
    session.sparkContext.setLogLevel("OFF" if log else "WARN")
    if has_executors(settings.master):
        try:
            require_fit_executors(session, settings.warehouse)
        except ConfigError:
            session.stop()
            raise
    return session


def _context_started(builder: SparkSession.Builder, master: str) -> SparkSession:
    """Return the session of a builder.

    Raises:
        ConfigError: SPARK_NOT_STARTED, if Spark refuses its master or another setting.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return builder.getOrCreate()
    except Py4JJavaError as error:
        raise ConfigError(
            "SPARK_NOT_STARTED",
            f"master {master}: {message_of(error)}",
            hint="correct `master`, such as local[2] or spark://host:7077, or the setting of Spark "
            "that the message names",
        ) from error


def prepare_environment(settings: Settings) -> None:
    """Set the environment variables that PySpark reads in this process.

    Args:
        settings: of them `master`, and the interpreter of the workers in `spark_conf`.
    """
    # Workers on this machine must run this very interpreter, or they fail to connect back.
    os.environ["PYSPARK_PYTHON"] = settings.spark_conf.get(_WORKERS_PYTHON, sys.executable)
    # Java reads names of files by the locale that it is started in; in C, or one that the machine
    # has not, it finds none with a letter beyond ASCII. Python takes UTF-8 in both.
    if sys.getfilesystemencoding() == "utf-8":
        os.environ["LC_ALL"] = "C.UTF-8"
    if settings.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # The environment that `env` prepared in this terminal is for others: here Spark has its own
    # settings.
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_CONF_DIR"):
        os.environ.pop(name, None)


def _start_jvm(log: Path | None, lock: WarehouseLock | None, folder: Path | None) -> None:
    """Start the JVM, if there is none yet.

    Args:
        log: takes its greetings: what goes wrong later arrives as an exception.
        lock: a JVM outlives a killed Python by seconds, and may commit until it ends.

    Raises:
        ConfigError: SPARK_NOT_STARTED.
    """
    from pyspark import SparkContext, java_gateway
    from pyspark.errors import PySparkRuntimeError

    if SparkContext._gateway is not None:
        return
    descriptors = () if lock is None else (lock.descriptor,)
    with ExitStack() as stack:
        how: dict[str, Any] = {"pass_fds": descriptors, "cwd": folder}
        begin = 0
        if log is not None:
            log.parent.mkdir(parents=True, exist_ok=True)
            how["stderr"] = stack.enter_context(log.open("ab"))
            if how["stderr"].tell() > _LOG_BYTES:
                how["stderr"].seek(how["stderr"].truncate(0))
            begin = how["stderr"].tell()
        try:
            gateway = java_gateway.launch_gateway(popen_kwargs=how)  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            said = log.read_bytes()[begin:].decode(errors="replace").splitlines() if log else []
            raise ConfigError(
                "SPARK_NOT_STARTED",
                f"the JVM ended: {' '.join(said[-3:]) or error}",
                hint=f"see {log or 'above'}; often `memory` is more than the machine has; "
                "`livemart doctor` checks Java and the jars",
            ) from error
    SparkContext._ensure_initialized(gateway=gateway)
