"""Kills the process at a named place, as a power cut would.

Used by the tests of faults. `LIVEMART_FAILPOINT=refresh.after_model.2` kills at the first pass of
that name, `LIVEMART_FAILPOINT=batch.end:3` at the third. Unset, a call is one comparison with None.
"""

from __future__ import annotations

import os
import signal

_armed: str | None = None
_passes_left = 0


def arm(spec: str) -> None:
    """Arm one failpoint, `name` or `name:nth`; an empty text arms none."""
    global _armed, _passes_left
    name, _, nth = spec.partition(":")
    _armed, _passes_left = name or None, int(nth or 1)


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL if `name` is armed and this is the armed pass.

    Names: `landing.before`, `landing.after_deletes`, `landing.after_table.<n>`, `landing.after`,
    `clock.before`, `clock.after`, `build.before_dbt`, `build.after_dbt`,
    `refresh.before_model.<name>`, `refresh.after_model.<name>`, `checks.before`, `checks.after`,
    `snapshot.before`, `snapshot.after`, `publish.before`, `publish.in_transaction`,
    `publish.after`, `batch.end`, `dbt.statement`,
    `redrive.before_mark`, `redrive.before_hand_over`, `redrive.before_end`; `<n>` counts tables
    from 1.
    """
    global _passes_left
    if _armed is None or name != _armed:
        return
    _passes_left -= 1
    if _passes_left == 0:
        os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("LIVEMART_FAILPOINT", ""))
