"""Failpoints: named places at which a test kills the process, as a power cut would.

`LIVEMART_FAILPOINT=refresh.after_model.2` kills at the first pass of that name,
`LIVEMART_FAILPOINT=batch.end:3` at the third. Unset, a call is one comparison with None.
"""

from __future__ import annotations

import os
import signal
from itertools import count

_NAME, _, _NTH = os.environ.get("LIVEMART_FAILPOINT", "").partition(":")
_ARMED: str | None = _NAME or None
_PASSES = count(1)


def failpoint(name: str) -> None:
    """Kill this process with SIGKILL if `name` is armed and this is the armed pass.

    Names: `landing.before`, `landing.after_deletes`, `landing.after_table.<n>`, `landing.after`,
    `clock.before`, `clock.after`, `build.before_dbt`, `build.after_dbt`,
    `refresh.before_model.<n>`, `refresh.after_model.<n>`, `checks.before`, `checks.after`,
    `snapshot.before`, `snapshot.after`, `batch.end`; `<n>` counts from 1 within a batch.
    """
    if _ARMED is None or name != _ARMED:
        return
    if next(_PASSES) == int(_NTH or 1):
        os.kill(os.getpid(), signal.SIGKILL)
