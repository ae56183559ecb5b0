"""Asks which of the locked packages have known vulnerabilities.

Used by `make audit` and at the end of `make test-all`. `pip-audit` is in a separate environment:
it is no part of what it judges, and its own packages cannot disagree with the locked ones. It asks
PyPI, whose answer is of today: the one check that may turn red without a change of the code. An
index that mirrors PyPI may not have these answers; pip-audit then skips each package, ends with 0
and says that nothing is known. So what was not audited is counted here, and said.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.lock"
TOOL = "pip-audit==2.10.1"
FOLDER = ROOT / ".cache" / TOOL


@dataclass(frozen=True)
class Audit:
    """The answers about the locked packages."""

    packages: int
    vulnerable: tuple[str, ...]
    """A line for each known vulnerability."""
    unknown: tuple[str, ...]
    """Packages without an answer."""

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Audit:
        """Return the audit of pip-audit's report.

        >>> found = {"id": "PYSEC-1", "fix_versions": ["2.1"]}
        >>> Audit.of({"dependencies": [{"name": "a", "version": "2.0", "vulns": [found]}]})
        Audit(packages=1, vulnerable=('a 2.0: PYSEC-1, mended in 2.1',), unknown=())
        """
        packages = report["dependencies"]
        vulnerable = tuple(
            f"{package['name']} {package['version']}: {each['id']}, "
            f"mended in {', '.join(each['fix_versions']) or 'no version yet'}"
            for package in packages
            for each in package.get("vulns", ())
        )
        unknown = tuple(package["name"] for package in packages if "skip_reason" in package)
        return cls(len(packages), vulnerable, unknown)

    def exit_code(self, *, may_be_away: bool) -> int:
        """Return 1 for a known vulnerability, and for an audit that was not done if it has to be.

        Where the answers are away for all packages the audit was not done; where they are for some,
        it is not complete, and never good.
        """
        is_away = len(self.unknown) == self.packages
        is_done = not self.unknown
        return 0 if not self.vulnerable and (is_done or (is_away and may_be_away)) else 1


def main() -> int:
    """Audit the lock; exit with 1 as `Audit.exit_code` says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--may-be-away", action="store_true", help="no answer from PyPI is said, and is no failure"
    )
    options = parser.parse_args()
    report, error = _report()
    if report is None:
        sys.stderr.write(f"audit: not done, {error}; run `make audit` where PyPI can be reached\n")
        return 0 if options.may_be_away else 1
    audit = Audit.of(report)
    for line in audit.vulnerable:
        print(line)
    if audit.unknown:
        print(
            f"audit: not done for {len(audit.unknown)} of {audit.packages} packages "
            f"({', '.join(audit.unknown[:3])}, ...); run `make audit` where PyPI can be reached"
        )
    asked = audit.packages - len(audit.unknown)
    print(f"audit: {len(audit.vulnerable)} known vulnerabilities in {asked} locked packages")
    return audit.exit_code(may_be_away=options.may_be_away)


def _report() -> tuple[dict[str, Any] | None, str]:
    """Return pip-audit's report, or None and why there is none."""
    program = FOLDER / "bin" / "pip-audit"
    if not program.exists():
        venv.create(FOLDER, with_pip=True, clear=True)
        pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", TOOL]
        if (code := subprocess.run(pip).returncode) != 0:
            return None, f"pip could not install {TOOL} and ended with {code}"
    done = subprocess.run(
        [
            *(program, "--requirement", LOCK, "--disable-pip", "--require-hashes"),
            *("--format", "json", "--progress-spinner", "off"),
        ],
        capture_output=True,
        text=True,
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        last = done.stderr.strip().splitlines()[-1:] or [f"pip-audit ended with {done.returncode}"]
        return None, last[0]
    return report, ""


if __name__ == "__main__":
    sys.exit(main())
