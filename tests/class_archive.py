"""Leaves the archive of loaded classes that all JVMs of the tests map; part of their set-up.

A JVM spends half of its first seconds on loading Spark's classes. The first short process of a user
leaves such an archive while it ends; here that is done once, before any test waits for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from livemart.spark.jars import find_jars
from livemart.spark.jvm import jvm_options
from tests.project_run import ROOT
from tests.waits import wait_until


def main() -> None:
    os.environ["LIVEMART_JVM_OPTIONS"] = "short"
    jars = find_jars()
    given = _options(jars)
    # It is there, or this machine can keep none: the tests do without.
    if "-XX:ArchiveClassesAtExit" not in given:
        return
    sys.stderr.write("setup: archiving Spark's classes for the tests (once, half a minute)\n")
    with TemporaryDirectory() as folder:
        driver = [sys.executable, "-m", "tests.faults.kill_driver", folder, "0", ""]
        subprocess.run(driver, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # The JVM writes it while it ends.
    wait_until(lambda: "Archive" in _options(jars))


def _options(jars: Sequence[Path]) -> str:
    """Return the options of a short JVM: with the archive, to leave one, or as one is written."""
    options = jvm_options(jars, is_short=True)
    if "AtExit=" in options:
        # The memory that this process reserved is for the JVM that it starts.
        Path(options.partition("AtExit=")[2].split()[0]).unlink(missing_ok=True)
    return options


if __name__ == "__main__":
    main()
