"""The errors and texts that one invocation of dbt gives livemart."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

from livemart.errors import ConfigError, ConfigErrors
from livemart.project.dbt import Dbt
from livemart.project.dbt_invocations import DbtInvocations, render_in_project

_JAFFLE = Path(__file__).parents[2] / "projects" / "jaffle"


def invocations(folder: Path) -> DbtInvocations:
    return DbtInvocations(folder, None, folder, target=None, vars={}, warehouse=None, progress=None)


@pytest.fixture
def jaffle(tmp_path: Path) -> Path:
    """A copy of a project, to be changed; no test here reads its models."""
    left_out = shutil.ignore_patterns("target")
    return shutil.copytree(_JAFFLE, tmp_path / "jaffle", ignore=left_out)


def event(level: str, message: str) -> Any:
    return SimpleNamespace(info=SimpleNamespace(level=level, msg=message, name="Any"), data=None)


def test_an_error_has_each_reason_that_dbt_gave_before_once(tmp_path: Path) -> None:
    dbt = invocations(tmp_path)
    for level, message in (
        ("error", "no table raw.orders"),
        ("info", "1 of 2 started"),
        ("error", " no table raw.orders\n"),
        ("error", "the whole: it failed"),
    ):
        dbt._on_event(event(level, message))

    error = dbt.failed(f"it failed at {tmp_path}/models/a.sql")

    assert (error.code, error.message.splitlines()) == (
        "DBT_FAILED",
        ["it failed at models/a.sql", "no table raw.orders", "the whole: it failed"],
    )


@pytest.mark.gate_takes_every(4)
@pytest.mark.parametrize(
    ("yaml", "place"),
    [
        ("sources:\n  - name: raw\n    tables:\n", "models/x.yml:3: nothing below `tables`"),
        ("sources:\n- {name: raw, tables: [null]}\n", "models/x.yml:2: nothing below `tables`"),
        ("sources:\n", "models/x.yml:1: nothing below `sources`"),
        ("models:\n- {name: orders, versions: }\n", "models/x.yml:2: nothing below `versions`"),
    ],
)
def test_a_list_without_elements_has_its_place(jaffle: Path, yaml: str, place: str) -> None:
    """dbt 1.11 says that None is not iterable, and nothing else."""
    (jaffle / "models" / "x.yml").write_text(yaml)

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).parse()

    assert caught.value.code == "DBT_FAILED"
    assert caught.value.message.splitlines()[0] == place


_TORN = {
    "models/torn.yml": "models: [",
    "models/torn_more.yml": "models:\n- name: orders\n  a: b: c",
    "macros/torn.sql": "{% macro torn( %}{% endmacro %}",
    # Not found until the files above are mended.
    "models/later.sql": "select {{",
}
_UNREADABLE = {
    "models/one.sql": "select {{ 1 + }} as a",
    "models/two.sql": "{{ config(materialized='table' meta={}) }} select 1 as a",
    "models/more.yml": "sources:\n- name: shop\n  tables:\n  - name: till\n  catalog: x",
    "models/later.sql": "select * from {{ ref('nowhere') }}",
}
_NAMELESS = {
    "models/one.sql": "-- nowhere\nselect * from {{ ref('nowhere') }},\n  {{ ref('no_place') }}",
    "models/two.sql": "select * from {{ source('no_shop', 'till') }}",
    "models/three.sql": "select * from {{ ref('orders', v=7) }}",
    # It reads models that are there.
    "models/later.sql": "select * from {{ ref('one') }}, {{ ref('two') }}, {{ ref('three') }}",
    "models/a_later.sql": "select * from {{ ref('later') }}",
}
_UNDESCRIBED = {
    "models/one.sql": "select 1 as a",
    "models/two.sql": "select 1 as a",
    "models/more.yml": "models:\n- {name: one, description: '{{ doc(\"no_text\") }}'}\n"
    "- {name: two, description: '{{ doc(\"no_word\") }}'}",
}

_ENTRIES = {
    "models/one.sql": "select 1 as a",
    "models/two.sql": "select 1 as a",
    "models/more.yml": "models:\n- {name: one, columns: 7}\n"
    "- {name: two, data_tests: [unique: no_dict, not_null: no_map], columns: [{name: a, "
    "data_tests: [not_null: no_keys]}]}\n"
    "sources:\n- {name: shop, shelves: []}\n- {name: till, tables: {}}\n"
    "exposures:\n- {name: e, type: page, owner: {name: x}}\n- {name: f, owner: {name: x}}\n",
    "models/later.sql": "select * from {{ ref('nowhere') }}",
}
_SOURCE_TESTS = {
    "models/more.yml": "sources:\n- name: shop\n  tables:\n  - name: till\n    data_tests:\n"
    "    - unique: no_dict\n    columns: [{name: a, data_tests: [not_null: no_map]}]\n",
}
_EXPOSED = {
    "models/more.yml": "exposures:\n"
    "- {name: e, type: dashboard, owner: {name: x}, description: '{{ doc(\"no_text\") }}'}\n"
    "- {name: f, type: dashboard, owner: {name: x}, description: '{{ doc(\"no_word\") }}'}\n",
}
_HOOKS = {
    "dbt_project.yml": "name: jaffle\nprofile: jaffle\npackages-install-path: vendored\n"
    "on-run-start: ['{{ no_start( }}', '{{ no_second( }}']\non-run-end: ['{{ no_end( }}']\n",
}


@pytest.mark.gate_takes_every(3)
@pytest.mark.parametrize(
    ("files", "words"),
    [
        (_TORN, ["models/torn.yml", "models/torn_more.yml", "macros/torn.sql"]),
        (
            _UNREADABLE,
            ["models/one.sql", "models/two.sql", "models/more.yml:5: "],
        ),
        (
            _NAMELESS,
            ["one.sql:2\n", "one.sql:3\n", "two.sql:1\n", "'orders' with version '7'"],
        ),
        (_UNDESCRIBED, ["no_text", "no_word"]),
        (
            _ENTRIES,
            [
                *("more.yml:2", "no_dict", "no_map", "no_keys"),
                *("more.yml:5", "more.yml:6", "more.yml:8", "more.yml:9"),
            ],
        ),
        (_SOURCE_TESTS, ["no_dict", "no_map"]),
        (_EXPOSED, ["no_text", "no_word"]),
        (_HOOKS, ["no_start", "no_second", "no_end"]),
    ],
    ids=[
        *("torn", "unreadable", "nameless", "undescribed"),
        *("entries", "source tests", "exposed", "hooks"),
    ],
)
def test_every_file_that_dbt_cannot_read_is_reported(
    jaffle: Path, files: dict[str, str], words: list[str]
) -> None:
    """dbt stops at the first one; a file that is wrong for lack of another one has to wait."""
    for name, text in files.items():
        (jaffle / name).write_text(text)

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).parse()

    assert len(caught.value.errors) == len(words)
    reported = "\n".join(sorted(error.message for error in caught.value.errors))
    assert [word for word in words if word not in reported] == []
    assert "later" not in reported


@pytest.mark.extended
def test_an_entry_of_yaml_is_not_repeated_in_its_error(jaffle: Path) -> None:
    (jaffle / "models" / "more.yml").write_text(
        "sources:\n- name: shop\n  catalog: main\n  tables: [{name: till}, {name: shelf}]"
    )

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).parse()

    assert caught.value.message == (
        "models/more.yml:3: sources shop: Additional properties are not allowed ('catalog' was "
        "unexpected)"
    )


def test_a_variable_without_a_value_has_a_way_out(tmp_path: Path) -> None:
    error = invocations(tmp_path).failed("Required var 'day' not found in config:")

    assert error.hint == (
        "give the value: `--vars '{day: ...}'`, or below `vars:` of livemart.yml or of "
        "dbt_project.yml"
    )


def test_a_project_that_asks_while_it_is_compiled_needs_spark(tmp_path: Path) -> None:
    error = invocations(tmp_path).failed("the project asks the database while it is compiled: x")

    assert error.code == "DBT_NEEDS_SPARK"


def test_a_text_is_rendered_with_the_variables_of_the_command(tmp_path: Path) -> None:
    assert render_in_project("{{ var('place') }}/t", tmp_path, {"place": "out"}) == "out/t"

    with pytest.raises(ConfigError, match="DBT_FAILED"):
        render_in_project("{{ var('missing') }}", tmp_path, {})


@pytest.mark.parametrize("method", ["thrift", "odbc", "{{ 'thr' ~ 'ift' }}"])
@pytest.mark.parametrize("ask", [Dbt.check_profile, Dbt.load], ids=["check", "load"])
def test_another_connection_method_is_refused(
    method: str, ask: Callable[[Dbt], object], jaffle: Path
) -> None:
    profiles = jaffle / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("method: session", f'method: "{method}"'))

    with pytest.raises(ConfigError) as caught:
        ask(Dbt(jaffle))

    assert caught.value.code == "PROFILE_NOT_SESSION"
    expected = "thrift" if "{{" in method else method
    assert caught.value.message == (
        f"{profiles}: profile jaffle, target dev: found type spark, method {expected}"
    )


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("jaffle: {outputs: {dev: {type: duckdb}}, target: dev}", "PROFILE_NOT_SESSION", "duckdb"),
        ("jafle: {}", "PROFILE_INCOMPLETE", "no profile jaffle, did you mean jafle?"),
        ("- jaffle", "PROFILE_INCOMPLETE", "profiles.yml: found list, not a mapping"),
        ("jaffle: dev", "PROFILE_INCOMPLETE", "profile jaffle: found str, not a mapping"),
        ("jaffle:", "PROFILE_INCOMPLETE", "profile jaffle: found nothing, not a mapping"),
        ("jaffle: {outputs: }", "PROFILE_INCOMPLETE", "outputs: found nothing, not a mapping"),
        ("jaffle: {outputs: [dev]}", "PROFILE_INCOMPLETE", "outputs: found list, not a mapping"),
        (
            "jaffle: {outputs: {dev: {}}, target: [dev]}",
            "PROFILE_INCOMPLETE",
            "profile jaffle: target: found list, not a name",
        ),
        ("# \xe9t\xe9\n", "DBT_FAILED", "profiles.yml: the file is not in UTF-8"),
        ("jaffle: {target: dev}", "DBT_FAILED", "outputs not specified"),
        ("jaffle: {target: prod, outputs: {dev: {}}}", "DBT_FAILED", "named 'prod'"),
        (
            "jaffle: {target: dev, outputs: {dev: {type: spark, method: session}}}",
            "PROFILE_INCOMPLETE",
            "no schema",
        ),
        ("jaffle: {outputs: [", "DBT_FAILED", "Syntax error"),
        (
            "jaffle: {target: dev, outputs: {dev: {type: '{{ env_var(\"NO\") }}'}}}",
            "DBT_FAILED",
            "NO",
        ),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_before_anything_is_started(
    text: str, code: str, words: str, jaffle: Path
) -> None:
    (jaffle / "profiles.yml").write_bytes(text.encode("latin-1"))

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).check_profile()

    assert caught.value.code == code
    assert words in caught.value.message


def test_the_target_of_a_profile_does_not_count_beside_a_chosen_one(jaffle: Path) -> None:
    profiles = jaffle / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("target: dev", "target: [dev]"))

    Dbt(jaffle, target="dev").check_profile()

    with pytest.raises(ConfigError, match="target: found list"):
        Dbt(jaffle).check_profile()


def test_a_profile_is_named_by_a_text(jaffle: Path) -> None:
    (jaffle / "dbt_project.yml").write_text("name: jaffle\nprofile: [jaffle]\n")

    with pytest.raises(ConfigError, match=r"no profile \['jaffle'\], did you mean jaffle\?"):
        Dbt(jaffle).check_profile()


def test_a_profile_without_targets_offers_none(jaffle: Path) -> None:
    (jaffle / "profiles.yml").write_text("jaffle: {outputs: {}}")

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).check_profile()

    assert caught.value.hint == "correct the mistake that dbt reports"


@pytest.mark.extended
def test_profile_and_target_of_the_environment_give_the_schema(
    jaffle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = jaffle / "dbt_project.yml"
    project.write_text(project.read_text().replace("profile: jaffle", ""))
    (jaffle / "profiles.yml").write_text(
        "shared:\n  target: dev\n  outputs:\n"
        "    dev: {type: spark, method: session, schema: dev, host: none}\n"
        "    prod: {type: spark, method: session, schema: prod, host: none}\n"
    )
    monkeypatch.setenv("DBT_PROFILE", "shared")
    monkeypatch.setenv("DBT_TARGET", "prod")

    read, mistakes = Dbt(jaffle).parse()

    assert (read.target_schema, mistakes) == ("prod", [])


@pytest.mark.gate_takes_every(4)
@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "dbt_project.yml",
            "name: jaffle\nprofile: jaffle\npackages-install-path: vendored\n"
            "models: {jaffle: {off: {}}}\n",
            "dbt_project.yml:4: YAML reads the key `off` as no text",
        ),
        ("packages.yml", "packages:\n", "packages.yml:1: nothing below `packages`"),
        ("selectors.yml", "selectors:\n", "selectors.yml:1: nothing below `selectors`"),
        ("models/x.sql", "\n\nselect {{ 1 +\n}}", "models/x.sql:4\n"),
        ("models/x.sql", "select 1,\n{{ ref() }}", "models/x.sql:2\n"),
        ("macros/x.sql", "{% macro a() %}", "macros/x.sql: dbt stopped at this file"),
        (
            "models/x.yml",
            "# \xe9t\xe9\n",
            "models/x.yml: the file is not in UTF-8: save it in UTF-8",
        ),
        (
            "models/x.yml",
            "models: [{name: plain, config: {access: secret}}]",
            "models/x.yml:1\n",
        ),
        ("models/x.sql", "select\n{{ env_var('NO') }}", "models/x.sql:2\n"),
        ("models/x.sql", "-- no 'NO'\nselect\n{{ env_var('NO') }}", "models/x.sql:3\n"),
        (
            "models/x.yml",
            "sources:\n- name: raw\n  schema: \"{{ env_var('NO') }}\"\n  tables: [{name: a}]",
            "models/x.yml:3\n",
        ),
        (
            "models/x.yml",
            "sources:\n- name: raw\n  schema: \"{{ var('no') }}\"\n  tables: [{name: a}]",
            "models/x.yml:3\n",
        ),
        (
            "macros/x.sql",
            "{% macro x() %}{{ adapter.dispatch('x')() }}{% endmacro %}",
            "macros/x.sql: dbt stopped at this file",
        ),
        (
            "models/x.yml",
            "models: [{name: plain, description: \"{{ doc('no') }}\"}]",
            "models/plain.sql: dbt stopped at this file",
        ),
        (
            "snapshots/x.yml",
            "snapshots: [{name: s, relation: ref('orders'), config: {strategy: check}}]",
            "snapshots/x.yml: dbt stopped at this file",
        ),
    ],
)
def test_an_error_whose_file_dbt_leaves_out_has_it(
    jaffle: Path, file: str, text: str, line: str
) -> None:
    (jaffle / "models" / "plain.sql").write_text("select 1 as a")
    (jaffle / file).write_bytes(text.encode("latin-1"))

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).parse()

    assert caught.value.code == "DBT_FAILED"
    assert caught.value.message.startswith(line)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{{ env_var('NO') }}", "write a default: env_var('NO', '...')"),
        ("{{ adapter.dispatch('cloned')() }}", "write a macro `spark__cloned`"),
    ],
)
def test_what_this_machine_or_target_lacks_has_a_way_out(
    jaffle: Path, text: str, hint: str
) -> None:
    (jaffle / "models" / "x.sql").write_text(text)

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).parse()

    assert hint in caught.value.hint


def test_a_node_that_cannot_be_compiled_has_its_file_and_line(jaffle: Path) -> None:
    """dbt names a file of a package from the folder of the package."""
    package = jaffle / "vendored" / "tiny_utils" / "models"
    package.mkdir()
    (package / "x.sql").write_text("select 1 as a,\n  {{ var('no_value') }} as b")
    (jaffle / "models" / "y.sql").write_text("\nselect\n\n  {{ var('no_word') }} as b")
    (jaffle / "models" / "p.sql").write_text("select 1 as a,\n  {{ no_macro(1) }} as b")
    (jaffle / "models" / "c.sql").write_text(
        "select\n\n\n\n\n{% call once() %}\n\n{{ not_given(1) }}{% endcall %} as a"
    )
    (jaffle / "models" / "d.sql").write_text(
        "select {% call passing() %}\n\n{{ not_given(1) }}{% endcall %} as a"
    )
    (jaffle / "macros" / "passing.sql").write_text(
        "{% macro passing() %}{{ giving(caller) }}{% endmacro %}\n"
        "{% macro giving(text) %}{{ text() }}{% endmacro %}"
    )
    (jaffle / "models" / "r.sql").write_text("select {{ refusing() }} as a")
    (jaffle / "models" / "r.yml").write_text(
        "groups: [{name: g, owner: {name: x}}]\nmodels:\n- name: r\n  group: g\n"
    )
    (jaffle / "macros" / "refusing.sql").write_text(
        "{% macro refusing() %}\n{% if execute %}\n{{ exceptions.raise_compiler_error("
        "\"Invalid group 'g', expected one of two\") }}{% endif %}{% endmacro %}"
    )
    (jaffle / "models" / "q.sql").write_text("select 1 as a,\n\n  {{ tripled(2) }} as b")
    (jaffle / "macros" / "z.sql").write_text(
        "{% macro once() %}{{ caller() }}{% endmacro %}\n"
        "{% macro tripled(x) %}\n  {{ x * 3 }}\n  {% if execute %}{{ not_defined(x) }}{% endif %}\n"
        "{% endmacro %}"
    )

    with pytest.raises(ConfigErrors) as caught:
        Dbt(jaffle).load()

    assert ["".join(it.message.splitlines()[:2]) for it in caught.value.errors] == [
        "macros/refusing.sql:3Compilation Error in model r (models/r.sql)",
        "macros/z.sql:4Compilation Error in model q (models/q.sql)",
        "models/c.sql:8Compilation Error in model c (models/c.sql)",
        "models/d.sql:3Compilation Error in model d (models/d.sql)",
        "models/p.sql:2Compilation Error in model p (models/p.sql)",
        "models/y.sql:4Compilation Error in model y (models/y.sql)",
        "vendored/tiny_utils/models/x.sql:2Compilation Error in model x "
        "(vendored/tiny_utils/models/x.sql)",
    ]


@pytest.mark.extended
def test_an_exposure_is_said_to_be_in_its_file(jaffle: Path) -> None:
    (jaffle / "models" / "x.yml").write_text("exposures: [{name: e, owner: {name: x}}]")

    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle).parse()

    assert caught.value.message == ("models/x.yml:1: exposures e: 'type' is a required property")


def test_a_wrong_setting_has_the_line_that_sets_it_once(jaffle: Path) -> None:
    """dbt names each model that has it, or none."""
    for name in ("a", "c", "d", "e"):
        (jaffle / "models" / f"{name}.sql").write_text("select 1 as a")
    (jaffle / "models" / "h.sql").write_text("select\n{{ config(enabled='no') }} 1 as a")
    (jaffle / "models" / "x.yml").write_text(
        "models:\n"
        "- name: a\n  access: open\n"
        "- name: c\n  latest_version: 2\n  versions: [{v: 1, defined_in: c}]\n"
        "- name: d\n  tags: []\n  columns:\n"
        "  - {name: e}\n  - {name: tags, constraints: [{type: uniq}]}\n"
        "- name: e\n  config: {contract: {enforced: true}}\n  columns: [{name: a}]\n"
        "  constraints: [{type: uniq}]\n"
    )
    (jaffle / "dbt_project.yml").write_text(
        "name: jaffle\nprofile: jaffle\npackages-install-path: vendored\n"
        "models:\n  jaffle:\n    marts:\n      +enabled: perhaps\n"
        "    staging:\n      +access: closed\n"
    )

    assert _lines_of_mistakes(jaffle) == [
        *("dbt_project.yml:7", "dbt_project.yml:9", "models/h.sql:2"),
        *("models/x.yml:3", "models/x.yml:5", "models/x.yml:11", "models/x.yml:15"),
    ]


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        (
            "sources:\n- name: raw2\n  config: {enabled: true}\n  tables:\n"
            "  - name: a\n    config:\n      enabled: perhaps\n",
            "7",
        ),
        (
            "sources:\n- name: raw2\n  tables:\n  - name: a\n"
            "    config:\n      freshness: {warn_after: {count: 1, period: weekly}}\n",
            " dbt stopped at this file",
        ),
        (
            "sources:\n- name: raw2\n  config: {enabled: perhaps}\n  tables:\n  - name: a\n",
            "3",
        ),
        (
            "sources:\n- name: raw2\n  tables:\n  - name: a\n    config: {enabled: true}\n"
            "    data_tests:\n    - tiny_utils.unique_combination_of_columns:\n"
            "        columns: [x]\n        config: {enabled: perhaps}\n",
            "9",
        ),
        (
            "models:\n- name: z\n  config: {enabled: true}\n  columns:\n  - name: a\n"
            "    data_tests:\n    - not_null: {config: {enabled: true}}\n    - not_null:\n"
            "        name: b\n        config:\n          enabled: perhaps\n",
            "11",
        ),
    ],
    ids=["table", "freshness", "source", "test of a source", "test"],
)
def test_a_wrong_setting_of_a_source_or_a_data_test_has_its_own_line(
    jaffle: Path, entry: str, place: str
) -> None:
    """The node that is tested may have a right setting of that name."""
    (jaffle / "models" / "z.sql").write_text("select 1 as a")
    (jaffle / "models" / "x.yml").write_text(entry)

    assert _lines_of_mistakes(jaffle) == [f"models/x.yml:{place}"]


@pytest.mark.parametrize(
    ("line", "place"), [("access: private", "models/b.sql:2"), ("", "models/x.yml:5")]
)
def test_a_wrong_group_has_its_line_and_a_private_ref_too(
    jaffle: Path, line: str, place: str
) -> None:
    (jaffle / "models" / "a.sql").write_text("select 1 as a")
    (jaffle / "models" / "b.sql").write_text("select a\nfrom {{ ref('a') }}")
    group = "g" if line else "no_group"
    (jaffle / "models" / "x.yml").write_text(
        "groups:\n- {name: g, owner: {name: x}}\nmodels:\n"
        f"- name: a\n  group: {group}\n  {line}\n"
    )

    assert _lines_of_mistakes(jaffle) == [place]


def test_an_unknown_target_has_those_of_the_profile_as_next_step(jaffle: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Dbt(jaffle, target="no_target").check_profile()

    assert caught.value.hint == "name one of its targets: --target dev"


def test_the_place_of_a_setting_is_sought_in_values_of_dbt_alone(jaffle: Path) -> None:
    """An undefined value of jinja fails when it is asked for an attribute."""

    def render(value: object) -> None:
        raise ValueError("at path ['enabled']")

    try:
        render(jinja2.Undefined(name="x"))
    except ValueError as error:
        assert invocations(jaffle)._unread(error).message == "at path ['enabled']"


def test_each_file_with_a_list_without_elements_is_named_once(jaffle: Path) -> None:
    for name in ("a", "b"):
        (jaffle / "models" / f"{name}.yml").write_text(f"sources:\n- name: {name}\n  tables:\n")

    assert _lines_of_mistakes(jaffle) == [
        f"models/{name}.yml:3: nothing below `tables`" for name in ("a", "b")
    ]


def test_a_place_that_cannot_be_found_does_not_hide_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(dbt: object, error: object) -> None:
        raise AttributeError("source_name")

    monkeypatch.setattr(DbtInvocations, "_lines", fail)

    assert invocations(tmp_path)._unread(ValueError("at path ['a']")).message == "at path ['a']"


def _lines_of_mistakes(project: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Dbt(project).parse()
    errors = getattr(caught.value, "errors", [caught.value])
    return [error.message.splitlines()[0] for error in errors]
