"""Names the problems of the owner's questions: unknown restaurants and windows.

Used by the owner's paths and page.
"""

from __future__ import annotations

from typing import ClassVar

from livemart.serve.http.problems import Kinds, ProblemError


class OwnerProblemError(ProblemError):
    """A question of an owner that is answered with a problem."""

    kinds: ClassVar[Kinds] = {
        "RESTAURANT_UNKNOWN": (404, "Unknown restaurant"),
        "WINDOW_UNKNOWN": (422, "Unknown window"),
    }
