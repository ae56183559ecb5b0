"""Finds the place of a configuration, by file and line.

Used by all code that refuses the analyst's input, so that each mistake names its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from livemart.errors import ConfigError, nearest

# How alike two words are, from 0 to 1: a swapped, missing or doubled letter, or another case.
_NEAR = 0.8
# How deep keys are found below `livemart`: `page: {formats: {share: percent}}`.
_DEPTH = 3
# Twenty times as fast, where PyYAML was built with it.
_LISTS = ("sources", "tables", "versions")
_TEXT = "tag:yaml.org,2002:str"
# A value may have another text than is written; `<<` and `=` have no value.
_VALUES = {f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "null", "timestamp")}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Where:
    """The place of a configuration: its file, its node, and the line of each of its keys.

    `lines`: path below the node (("columns", "order_id"), ("meta", "keys")) to its line, from 1;
    `repeated`: columns that are declared more than once, their line is that of the last.
    """

    file: str
    node: str
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()

    def at(self, *path: str) -> str:
        """Return `file:line: node: key`, with the line of the nearest known parent."""
        parents = (path[:size] for size in range(len(path), -1, -1))
        line = next((self.lines[parent] for parent in parents if parent in self.lines), None)
        place = f"{self.file}:{line}" if line else self.file
        key = ".".join(("meta.livemart", *path[1:]) if path[:1] == ("meta",) else path)
        return f"{place}: {self.node}: {key}"


class Mistakes:
    """Collects the mistakes of one configuration, each with its place."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self.errors: list[ConfigError] = []

    def refuse(self, code: str, path: tuple[str, ...], finding: str, hint: str) -> None:
        """Note a mistake at `path`, and the right form."""
        self.errors.append(ConfigError(code, f"{self._where.at(*path)}: {finding}", hint=hint))

    def refuse_unknown(
        self, code: str, meta: Iterable[Any], keys: Sequence[str], hint: str
    ) -> None:
        """Note each key of `config.meta.livemart` that is none of `keys`."""
        for key in map(str, meta):
            if key not in keys:
                self.refuse(code, ("meta", key), f"found key {key}{nearest(key, keys)}", hint)


def text_of(file: Path) -> str:
    """Return the text of a file of the project; empty if it cannot be read.

    A file of an installed package is elsewhere, and not the analyst's to mend.
    """
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def by_line(message: str) -> list[str | int]:
    """Return a key that sorts messages by file and line: line 9 comes before line 10.

    >>> sorted(["a.yml:10: x", "a.yml:9: y", "a.sql: z"], key=by_line)
    ['a.sql: z', 'a.yml:9: y', 'a.yml:10: x']
    """
    # Text and number take turns, so that two keys never compare one with the other.
    parts = re.split(r":(\d+)", message)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def place_of(where: Where | str) -> Where:
    """Return a place; a string is file and node in one."""
    if isinstance(where, Where):
        return where
    file, _, node = where.partition(": ")
    return Where(file, node)


def livemart_misspelled(
    code: str, meta: Mapping[Any, Any], config: Mapping[str, Any], place: Where
) -> list[ConfigError]:
    """Return a mistake for each key that must mean `livemart`; it would not be read.

    Args:
        meta: all of a node's `meta`.
        config: keys of the node's config that dbt does not know.
    """
    mistakes = Mistakes(place)
    for key in map(str, meta):
        if key != "livemart" and _is_near(key):
            finding = f"found key {key}, did you mean livemart?"
            mistakes.refuse(
                code, ("config.meta", key), finding, "write `livemart`, or another word"
            )
    beside = {*config, *(path[0] for path in place.lines if len(path) == 1)}
    for key in sorted(beside):
        if _is_near(key):
            finding = f"found key {key} beside meta"
            mistakes.refuse(code, (key,), finding, "write it below `config: meta:`, as `livemart`")
    return mistakes.errors


def _is_near(key: str) -> bool:
    return bool(get_close_matches(key.lower(), ["livemart"], cutoff=_NEAR))


def node_lines(text: str, *steps: tuple[str, str]) -> dict[tuple[str, ...], int]:
    """Return the line of every key of one node in a YAML file, for `Where.lines`.

    Args:
        steps: group and name on the way to the node: `("sources", "shop"), ("tables", "orders")`.
    """
    node = _found(text, steps)
    if node is None:
        return {}
    lines: dict[tuple[str, ...], int] = {(): node.start_mark.line + 1}
    for name, line in _declared_columns(node):
        lines["columns", name] = line
    config = _child(node, "config")
    for place in (node, config):
        lines = {(str(key.value),): key.start_mark.line + 1 for key, _ in _pairs(place)} | lines
        lines |= _meta_lines(_child(place, "meta"))
    return lines


def top_setting(text: str, name: str) -> str | None:
    """Return a setting at the top of a YAML file, None without one or if jinja has to render it.

    >>> top_setting("packages-install-path: lib", "packages-install-path")
    'lib'
    """
    value = getattr(_child(_composed(text), name), "value", None)
    return value if isinstance(value, str) and value and "{" not in value else None


def folder_setting_line(
    text: str, section: str, folders: Iterable[str], names: Collection[str]
) -> int | None:
    """Return the line of the setting in `dbt_project.yml` that holds for a node, None without one.

    Args:
        section: the kind of the node, as `models`.
        folders: the package and the folders of the node, from the top.
        names: of the setting, which may have a `+` in front.

    >>> text = "models:\\n  +schema: a\\n  shop: {schema: b}"
    >>> folder_setting_line(text, "models", ["shop"], ["schema"])
    3
    """
    line, node = None, _child(_composed(text), section)
    for folder in (*folders, ""):
        for key, _ in _pairs(node):
            if str(key.value).removeprefix("+") in names:
                line = key.start_mark.line + 1
        node = _child(node, folder)
    return line


def data_test_line(
    text: str,
    steps: Iterable[tuple[str, str]],
    column: str | None,
    kind: str,
    words: Collection[str],
    setting: str | None = None,
) -> int | None:
    """Return the line of a generic data test in a YAML file; of several like it, the best.

    Args:
        steps: as of `node_lines`.
        column: that is tested; None if it is the node as a whole.
        kind: the test's name, without that of its package.
        words: other known words of it: its own name, and the values of its arguments.
        setting: a key of the test whose line is asked for.

    Returns:
        The line of the column, or of the node, if the test is not found there; None if neither is.
        The line of the setting if one is asked for; None if the test does not have it.
    """
    node = _found(text, steps)
    places = [] if node is None else [node]
    if column is not None:
        places += filter(None, [_named(_child(node, "columns"), column)])
    tests = [
        item
        for place in places[-1:]
        for group in ("data_tests", "tests")
        for item in getattr(_child(place, group), "value", [])
        if isinstance(item, yaml.Node) and kind in _test_names(item)
    ]
    if tests:
        places = [max(tests, key=lambda test: len(_scalars(test) & {*words}))]
    if setting is not None:
        return _line_of_key(places[-1], setting) if tests else None
    return places[-1].start_mark.line + 1 if places else None


def line_below(text: str, path: Iterable[str], *steps: tuple[str, str]) -> int | None:
    """Return the line of a place in a YAML file, or of the nearest place above it that is found.

    Args:
        path: keys, and positions in lists, from the entry down.
        steps: on the way to a named entry, as of `node_lines`; none is the whole file.

    >>> text = "sources:\\n- name: raw\\n  tables:\\n  - named: a"
    >>> line_below(text, ["tables", "0"], ("sources", "raw"))
    4
    """
    node = _found(text, steps)
    line = None if node is None else node.start_mark.line + 1
    for part in path:
        if isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
            node = node.value[int(part)]
            line = node.start_mark.line + 1
            continue
        for key, value in reversed(_pairs(node)):
            if _is_key(key, part):
                node, line = value, key.start_mark.line + 1
                break
    return line


def _line_of_key(node: yaml.Node, name: str) -> int | None:
    """Return the line of the first key of this name below a node."""
    for key, value in _pairs(node):
        if key.value == name:
            return int(key.start_mark.line) + 1
        if (line := _line_of_key(value, name)) is not None:
            return line
    return None


def _test_names(test: yaml.Node) -> list[str]:
    """Return a word that may name a test: `not_null`, `not_null: {..}`, `test_name: x`."""
    if isinstance(test, yaml.ScalarNode):
        names = [test.value]
    else:
        names = [value for key, value in _scalar_pairs(test) if key == "test_name"]
        names += [str(key.value) for key, _ in _pairs(test)]
    return [name.rpartition(".")[2] for name in names]


def _scalar_pairs(node: yaml.Node) -> Iterator[tuple[str, str]]:
    for key, value in _pairs(node):
        if isinstance(value, yaml.ScalarNode):
            yield str(key.value), value.value


def _scalars(node: yaml.Node) -> set[str]:
    """Return every value below a node that is written as one word or text."""
    if isinstance(node, yaml.ScalarNode):
        return {node.value}
    parts = [part for pair in _pairs(node) for part in pair]
    if isinstance(node, yaml.SequenceNode):
        parts = node.value
    return {word for part in parts for word in _scalars(part)}


def empty_lists(text: str) -> list[tuple[str, int]]:
    """Return each key of a YAML file that dbt reads a list from, and that has none; and its line.

    dbt 1.11 fails on these keys alone without the name of the file.

    >>> empty_lists("sources:\\n  - name: raw\\n    tables:")
    [('tables', 3)]
    """
    empty = []
    for node in _nodes(text):
        for key, value in _pairs(node):
            items = value.value if isinstance(value, yaml.SequenceNode) else [value]
            if key.value in _LISTS and any(map(_is_nothing, items)):
                empty.append((str(key.value), key.start_mark.line + 1))
    return sorted(empty, key=lambda it: it[1])


def keys_of_other_types(text: str) -> list[tuple[str, int]]:
    """Return each key of a YAML file that YAML reads as no text, such as `off`; and its line.

    >>> keys_of_other_types("models:\\n  shop:\\n    off: {}\\n    2024: {}")
    [('off', 3), ('2024', 4)]
    """
    return sorted(
        (
            (str(key.value), key.start_mark.line + 1)
            for node in _nodes(text)
            for key, _ in _pairs(node)
            if isinstance(key, yaml.ScalarNode) and key.tag != _TEXT
        ),
        key=lambda it: it[1],
    )


def _nodes(text: str) -> Iterator[yaml.Node | None]:
    """Yield every node of a YAML file once, each before those below it."""
    stack, seen = [_composed(text)], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            # An alias, which may be below its own anchor.
            continue
        seen.add(id(node))
        yield node
        stack += node.value if isinstance(node, yaml.SequenceNode) else []
        stack += [value for _, value in _pairs(node)]


def _is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def repeated_columns(text: str, *steps: tuple[str, str]) -> tuple[str, ...]:
    """Return the columns that one node of a YAML file declares more than once; dbt keeps the last.

    Args:
        steps: as of `node_lines`.
    """
    counts = Counter(name for name, _ in _declared_columns(_found(text, steps)))
    return tuple(name for name, count in counts.items() if count > 1)


def _found(text: str, steps: Iterable[tuple[str, str]]) -> yaml.Node | None:
    node = _composed(text)
    for group, name in steps:
        node = _named(_child(node, group), name)
    return node


def _declared_columns(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    """Yield the name and line of each column below a node."""
    for column in getattr(_child(node, "columns"), "value", []):
        name_node = _child(column, "name")
        if name_node is not None:
            yield str(name_node.value), column.start_mark.line + 1


@lru_cache(maxsize=16)
def _composed(text: str) -> yaml.Node | None:
    """Return a file as it is written, read once for all that it describes; None if it is torn."""
    try:
        return yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        return None


def _meta_lines(meta: yaml.Node | None) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    for key, value in _pairs(meta):
        lines["config.meta", str(key.value)] = key.start_mark.line + 1
        if key.value == "livemart":
            lines["meta",] = key.start_mark.line + 1
            lines |= _lines_below(value, ("meta",))
    return lines


def _lines_below(node: yaml.Node, path: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    """Return the line of each key below a node; an anchor may make the node its own part."""
    lines: dict[tuple[str, ...], int] = {}
    for key, value in _pairs(node) if len(path) <= _DEPTH else ():
        inner = (*path, str(key.value))
        lines[inner] = key.start_mark.line + 1
        lines |= _lines_below(value, inner)
    return lines


def _pairs(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    """Return the value of a key; the last one if it comes twice, as YAML's readers do."""
    return next((value for key, value in reversed(_pairs(node)) if key.value == name), None)


def _is_key(key: yaml.Node, name: str) -> bool:
    """Return whether a key has this name, as written or as text of its value: `on` is True."""
    if not isinstance(key, yaml.ScalarNode):
        return False
    return name == key.value or (key.tag in _VALUES and name == str(yaml.safe_load(key.value)))


def _named(node: yaml.Node | None, name: str) -> yaml.Node | None:
    for item in node.value if isinstance(node, yaml.SequenceNode) else []:
        name_node = _child(item, "name")
        if name_node is not None and name_node.value == name:
            return item  # type: ignore[no-any-return]
    return None
