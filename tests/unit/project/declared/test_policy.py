from __future__ import annotations

import pytest

from livemart.project.declared.policy import ModelPolicy, parse_model_policy
from livemart.project.yaml_places import Where


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (None, ModelPolicy("auto", "set_aside")),
        ({}, ModelPolicy("auto", "set_aside")),
        ({"refresh": "strict"}, ModelPolicy("strict", "set_aside")),
        ({"refresh": "full", "on_error": "stop"}, ModelPolicy("full", "stop")),
        ({"ties": "full"}, ModelPolicy("auto", "set_aside", "full")),
        ({"stages": "never"}, ModelPolicy(stages="never")),
        ({"filled_by": "hooks"}, ModelPolicy(filled_by="hooks")),
    ],
)
def test_each_policy_of_a_model_is_one_word(meta: object, expected: ModelPolicy) -> None:
    assert parse_model_policy(meta, "a.yml: top_dishes") == (expected, [])


@pytest.mark.parametrize(
    ("meta", "code", "words"),
    [
        ("strict", "MODEL_NOT_A_MAPPING", "'strict'"),
        ({"refrsh": "strict"}, "MODEL_KEY_UNKNOWN", "did you mean refresh?"),
        ({"refresh": "incremntal"}, "MODEL_POLICY_UNKNOWN", "did you mean incremental?"),
        ({"on_eror": "stop"}, "MODEL_KEY_UNKNOWN", "did you mean on_error?"),
        ({"on_error": "set-aside"}, "MODEL_POLICY_UNKNOWN", "did you mean set_aside?"),
        ({"ties": "ful"}, "MODEL_POLICY_UNKNOWN", "did you mean full?"),
        ({"stages": "nevr"}, "MODEL_POLICY_UNKNOWN", "did you mean never?"),
        ({"filled_by": "hook"}, "MODEL_POLICY_UNKNOWN", "did you mean hooks?"),
    ],
)
def test_any_other_word_is_refused_with_the_nearest(meta: object, code: str, words: str) -> None:
    policy, [mistake] = parse_model_policy(meta, "a.yml: top_dishes")

    assert (policy, mistake.code) == (ModelPolicy(), code)
    assert mistake.message.startswith("a.yml: top_dishes: meta.livemart")
    assert words in mistake.message


def test_all_mistakes_are_reported_each_with_its_line() -> None:
    where = Where("m.yml", "model totals", {("meta", "refesh"): 4, ("meta", "refresh"): 5})

    _, mistakes = parse_model_policy({"refresh": "increment", "refesh": 1}, where)

    assert [mistake.message.partition(" ")[0] for mistake in mistakes] == ["m.yml:4:", "m.yml:5:"]
