"""A reason has a code that is documented; what cannot be planned says it first."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import REASON_CODES, Inapplicable, Reason


def test_a_code_that_no_list_has_is_no_reason() -> None:
    for code in REASON_CODES:
        assert Reason(code, "found", 3).code == code
    with pytest.raises(ValueError, match="GLOBAL_AGGREGATE"):
        Reason("GLOBAL_AGGREGATE", "found", 3)


def test_what_cannot_be_planned_says_code_and_message() -> None:
    reason = Reason("GLOBAL_AGG", "every row", None)

    error = Inapplicable(reason)

    assert (str(error), error.reason) == ("GLOBAL_AGG: every row", reason)
