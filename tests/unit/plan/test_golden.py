"""Every rule's golden file: the plan of each case is the one written down."""

from __future__ import annotations

import pytest

from livemart.plan.reasons import REASON_CODES
from tests.unit.plan.golden import Case, actual, cases


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: f"{case.file}: {case.title}")
def test_the_plan_is_the_golden_one(case: Case) -> None:
    assert actual(case) == case.expected


def test_every_reason_is_a_known_code() -> None:
    codes = {
        word.removeprefix("reason=").rstrip(")")
        for case in cases()
        for word in case.expected.split()
        if word.startswith("reason=")
    }

    assert codes <= REASON_CODES
