"""Every mistake in a configuration that dbt refused, with its line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from livemart.errors import ConfigError, ConfigErrors
from livemart.project.dbt import Dbt
from livemart.project.dbt_invocations import DbtInvocations

_JAFFLE = Path(__file__).parents[3] / "projects" / "jaffle"


@pytest.mark.parametrize(
    ("files", "messages"),
    [
        (
            {
                "packages.yml": "packages:\n- package: a/b\n- package: a/c\n  version: 1.0.0\n"
                "- git: c\n  release: 3\n- local: 7\n- dbt_utils\n-\npackage: []\n"
            },
            [
                "packages.yml:2: found no version in {'package': 'a/b'}",
                "packages.yml:5: found {'git': 'c', 'release': 3}",
                "packages.yml:7: found {'local': 7}",
                "packages.yml:8: found 'dbt_utils'",
                "packages.yml:9: nothing below `packages`",
                "packages.yml:10: Additional properties are not allowed ('package' was unexpected)",
            ],
        ),
        (
            {
                "packages.yml": "\npackages:\n- local: vendored\n",
                "dependencies.yml": "projects: []\npackages:\n- package: a/b\n",
            },
            [
                "dependencies.yml:3: found no version in {'package': 'a/b'}",
                "packages.yml:2: found `packages` in dependencies.yml:2 too",
            ],
        ),
        ({"packages.yml": "- local: a\n"}, ["packages.yml:1: found [{'local': 'a'}]"]),
        ({"packages.yml": "packages:\n"}, ["packages.yml:1: nothing below `packages`"]),
        (
            {"packages.yml": "packages:\n- git: \"{{ env_var('NO_URL') }}\"\n"},
            ["packages.yml:2: Env var required but not provided: 'NO_URL'"],
        ),
        ({"packages.yml": "packages: [\n"}, ["packages.yml: Runtime Error"]),
        (
            {
                "dbt_project.yml": "name: a b\nprofile: jaffle\nvars: []\nmodel-path: [m]\n"
                'seed-paths:\n- 7\nmodels: {jaffle: {+schema: "{{ target.name }}"}}\n'
                "require-dbt-version: x\ntests: {}\non-run-end: \"{{ env_var('NO_HOOK') }}\"\n",
                "selectors.yml": "selectors:\n- {name: a, definition: {union: 7}}\n"
                "- name: b\n  definition: {method: selector, value: a}\n"
                "- name: c\n  definition:\n    - a\n- definition: a\n",
            },
            [
                "dbt_project.yml:1: name: 'a b' does not match '^[^\\\\d\\\\W]\\\\w*$'",
                "dbt_project.yml:3: vars: found []",
                "dbt_project.yml:4: model-path: Additional properties are not allowed "
                "('model-path' was unexpected)",
                "dbt_project.yml:5: seed-paths: found [7]",
                'dbt_project.yml:8: require-dbt-version: "x" is not a valid semantic version.',
                'selectors.yml:2: Invalid value for key "union". Expected a list.',
                "selectors.yml:6: found ['a']",
                "selectors.yml:8: 'name' is a required property",
            ],
        ),
        (
            {
                "dbt_project.yml": "name: jaffle\nprofile: jaffle\nvars: &v {a: *v}\non: 7\n",
                "packages.yml": "packages:\n  package: a/b\n  version: 1.0.0\n",
                "dependencies.yml": "# \xe9t\xe9\n",
                "selectors.yml": "selectors:\n  name: a\n  definition: b\n",
            },
            [
                "dbt_project.yml:3: vars: Cycle detected: None input has a reference to itself",
                "dbt_project.yml:4: True: Additional properties are not allowed (True was "
                "unexpected)",
                "dependencies.yml: the file is not in UTF-8: save it in UTF-8",
                "packages.yml:2: found {'package': 'a/b', 'version': '1.0.0'}, not a list",
                "selectors.yml:2: found {'name': 'a', 'definition': 'b'}, not a list",
            ],
        ),
        (
            {"selectors.yml": "selectors:\n- definition: 7\n  name: a\n  <<: {description: b}\n"},
            ["selectors.yml:2: found 7"],
        ),
        (
            {
                "packages.yml": "packages: \"{{ {'a': 1} }}\"\n",
                "selectors.yml": "version: 2\nselectors:\n- name: a\n  definition:\n",
            },
            [
                "packages.yml:1: found \"{{ {'a': 1} }}\"",
                "selectors.yml:4: nothing below `definition`",
            ],
        ),
    ],
    ids=[
        *("each", "two files", "list", "nothing", "variable", "torn"),
        *("settings", "forms", "merged", "rendered"),
    ],
)
def test_each_mistake_in_a_refused_configuration_has_its_line(
    tmp_path: Path, files: dict[str, str], messages: list[str]
) -> None:
    project = shutil.copytree(_JAFFLE, tmp_path / "jaffle", ignore=shutil.ignore_patterns("target"))
    for name, text in files.items():
        (project / name).write_bytes(text.encode("latin-1"))

    with pytest.raises(ConfigErrors) as caught:
        Dbt(project).parse()

    assert [error.message.splitlines()[0] for error in caught.value.errors] == messages
    assert "correct the mistake that dbt reports" not in str(caught.value)


def test_an_error_of_another_form_is_reported_as_dbt_words_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dbt may stop before it has the folder of the profile."""
    project = shutil.copytree(_JAFFLE, tmp_path / "jaffle", ignore=shutil.ignore_patterns("target"))
    (project / "selectors.yml").write_text("a: 7")

    def fail(dbt: object) -> None:
        raise AttributeError("PROFILES_DIR")

    monkeypatch.setattr(DbtInvocations, "_profile", fail)

    with pytest.raises(ConfigError, match=r"Could not parse selector file data"):
        Dbt(project).parse()
