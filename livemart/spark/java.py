"""Requires a Java that Spark runs on.

Used before Spark is started and by `doctor`. It is found the way Spark finds it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from livemart.errors import ConfigError

# Releases with long support that Spark 4.2 and Delta 4.4 run on.
JAVA_RELEASES = (17, 21, 25)
ACCEPTED_JAVA = "Java 17, 21 or 25"

_HINT = (
    f"install {ACCEPTED_JAVA} (Debian 12: apt-get install openjdk-17-jre-headless; Debian 13, "
    "Ubuntu 22.04 or newer: apt-get install openjdk-21-jre-headless) and put it on PATH, or set "
    "JAVA_HOME to its folder"
)
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """Return the `java` that Spark will run: the one of JAVA_HOME if that is set, else of PATH.

    Raises:
        ConfigError: JAVA_MISSING.
    """
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if java.is_file():
            return java
        raise ConfigError("JAVA_MISSING", f"JAVA_HOME={home}: found no bin/java there", hint=_HINT)
    if path := shutil.which("java"):
        return Path(path)
    raise ConfigError("JAVA_MISSING", "found no java on PATH and no JAVA_HOME", hint=_HINT)


def parse_java_version(text: str) -> int | None:
    """Return the feature release that `java -version` prints, None if there is none.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_412"')
    8
    """
    version = _VERSION.search(text)
    return int(version.group(1)) if version else None


def java_release(java: Path) -> int | None:
    """Return the feature release of a Java, None if it prints none.

    Raises:
        ConfigError: JAVA_MISSING, if it does not run.
    """
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError("JAVA_MISSING", f"{java}: does not run ({error})", hint=_HINT) from error
    return parse_java_version(answer.stderr + answer.stdout)


def require_java() -> Path:
    """Return the `java` that Spark will run, of a release that it runs on.

    Raises:
        ConfigError: JAVA_MISSING, JAVA_WRONG_VERSION.
    """
    java = find_java()
    version = java_release(java)
    if version not in JAVA_RELEASES:
        version_found = f"Java {version}" if version else "a Java that does not report its version"
        raise ConfigError(
            "JAVA_WRONG_VERSION",
            f"{java}: found {version_found}, need {ACCEPTED_JAVA}",
            hint=_HINT,
        )
    return java
