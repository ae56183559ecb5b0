from __future__ import annotations

import pytest

from livemart.project.policy import parse_model_policy
from livemart.project.yaml_places import Where


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, "auto"),
        ({}, "auto"),
        ({"refresh": "strict"}, "strict"),
        ({"refresh": "full"}, "full"),
    ],
)
def test_a_models_policy_is_one_word(meta: object, expected: str) -> None:
    assert parse_model_policy(meta, "a.yml: top_dishes") == (expected, [])


@pytest.mark.parametrize(
    ("meta", "code", "words"),
    [
        ("strict", "MODEL_NOT_A_MAPPING", "'strict'"),
        ({"refrsh": "strict"}, "MODEL_KEY_UNKNOWN", "did you mean refresh?"),
        ({"refresh": "incremntal"}, "MODEL_POLICY_UNKNOWN", "did you mean incremental?"),
    ],
)
def test_any_other_word_is_refused_with_the_nearest(meta: object, code: str, words: str) -> None:
    policy, [mistake] = parse_model_policy(meta, "a.yml: top_dishes")

    assert (policy, mistake.code) == ("auto", code)
    assert mistake.message.startswith("a.yml: top_dishes: meta.livemart")
    assert words in mistake.message


def test_all_mistakes_are_reported_each_with_its_line() -> None:
    where = Where("m.yml", "model totals", {("meta", "refesh"): 4, ("meta", "refresh"): 5})

    _, mistakes = parse_model_policy({"refresh": "increment", "refesh": 1}, where)

    assert [mistake.message.partition(" ")[0] for mistake in mistakes] == ["m.yml:4:", "m.yml:5:"]
