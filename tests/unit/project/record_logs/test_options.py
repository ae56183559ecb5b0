"""Options of any shape can be distinguished, and are returned unchanged."""

from __future__ import annotations

import pytest

from livemart.project.record_logs.options import frozen_option, plain_option

OPTIONS = {"servers": "a:1", "topics": ["x", "y"], "client": {"a.b": 1, "c": {"d": [True, 0.5]}}}


def test_what_is_frozen_comes_back_and_is_equal_in_any_order() -> None:
    frozen = frozen_option(OPTIONS)

    assert plain_option(frozen) == OPTIONS
    assert hash(frozen) == hash(frozen_option(dict(reversed(OPTIONS.items()))))


@pytest.mark.parametrize("value", [None, [None], {"a": {1: "b"}}, {"a": [{"b": object()}]}])
def test_what_is_no_plain_value_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        frozen_option(value)
