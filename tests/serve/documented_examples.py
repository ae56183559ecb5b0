"""Takes the examples out of a document: commands with what they print, and what has their form.

A value is of the form of another if both are written in the same way: an instant, an amount, an id.
Three dots in an example leave out further members, items or lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOTS = "..."
# The first that fits a documented text says how the text that is found must be written.
_WRITTEN = [
    re.compile(pattern, re.ASCII)
    for pattern in (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
        r"-?\d+\.\d+",
        r"-?\d+",
        # A record is written as it came.
        r"\{.*\}",
        r"[0-9a-f]{8}-\d+",
        r"[0-9a-f]{8}",
        # Sealed: as long as what it seals.
        r"[A-Za-z0-9_-]{40,}",
        r'(W/)?"\d+-[0-9a-f]{16}"',
        r".*",
    )
]


@dataclass(frozen=True, slots=True)
class Example:
    """A command of a document, and the lines that it is said to print; `line`: where, from 1."""

    line: int
    command: str
    output: str


def read_examples(document: str) -> list[Example]:
    """Return the commands of all blocks of a console, in their order."""
    found = []
    for start, block in _blocks(document, "console"):
        lines = block.splitlines()
        begins = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        assert begins[:1] == [0], f"line {start}: a block of a console begins with a command"
        for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
            command = [lines[begin][2:]]
            while command[-1].endswith("\\"):
                command.append(lines[begin + len(command)])
            output = "\n".join(lines[begin + len(command) : end]).strip("\n")
            found.append(Example(start + begin, "\n".join(command), output))
    return found


def read_json_blocks(document: str) -> list[Any]:
    """Return the values of all blocks of JSON."""
    return [json.loads(block) for _, block in _blocks(document, "json")]


def _blocks(document: str, language: str) -> Iterator[tuple[int, str]]:
    for block in _BLOCK.finditer(document):
        if block[1] == language:
            yield document.count("\n", 0, block.start(2)) + 1, block[2]


def read_dotted(text: str) -> Any:
    """Return the value of JSON in which three dots leave something out.

    >>> read_dotted('{"a": {...}, "b": [...], ...}')
    {'a': {'...': None}, 'b': ['...'], '...': None}
    """
    dotted = re.sub(r"([{,]\s*)\.\.\.(?=\s*\})", rf'\1"{_DOTS}": null', text)
    return json.loads(re.sub(r"([\[,]\s*)\.\.\.(?=\s*\])", rf'\1"{_DOTS}"', dotted))


def differences(documented: Any, found: Any, place: str = "$") -> list[str]:
    """Return where a value has not the form of the documented one; a documented null fits any.

    >>> differences({"id": "r17", "n": 1, "at": "2026-03-02T14:35:00Z"}, {"id": "x", "at": "now"})
    ["$: found ['id', 'at'] instead of ['id', 'n', 'at']", "$.at: found 'now'"]
    """
    match documented, found:
        case dict(), dict():
            names = [name for name in documented if name != _DOTS]
            has = [name for name in found if name in names or _DOTS not in documented]
            wrong = [] if has == names else [f"{place}: found {has} instead of {names}"]
            for name in names:
                if name in found:
                    wrong += differences(documented[name], found[name], f"{place}.{name}")
            return wrong
        case list(), list():
            forms = [item for item in documented if item != _DOTS]
            if forms and not found:
                return [f"{place}: found no items"]
            return [
                wrong
                for number, item in enumerate(found if forms else ())
                for wrong in differences(forms[min(number, len(forms) - 1)], item, f"{place}[]")
            ]
        case None, _:
            return []
        case str(), str():
            written = next(form for form in _WRITTEN if form.fullmatch(documented))
            return [] if written.fullmatch(found) else [f"{place}: found {found!r}"]
    return [] if type(documented) is type(found) else [f"{place}: found {found!r}"]


@dataclass(frozen=True, slots=True)
class DocumentedEvent:
    """An event of a stream as it is printed; `data` may have three dots."""

    kind: str
    event_id: str | None
    data: Any


def read_events(text: str, *, is_dotted: bool = False) -> list[DocumentedEvent]:
    """Return the events of a printed stream that are whole, without comments and `retry`."""
    events = []
    for block in text.split("\n\n")[: None if is_dotted else -1]:
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in fields:
            read = read_dotted if is_dotted else json.loads
            data = read(fields["data"])
            events.append(DocumentedEvent(fields["event"], fields.get("id"), data))
    return events


def event_differences(documented: list[DocumentedEvent], found: list[DocumentedEvent]) -> list[str]:
    """Return where a stream has not the form of the documented one, in which each change is one."""
    wrong, rest = [], list(found)
    for event in documented:
        alike = 0
        while rest and (event.kind == "change" or not alike) and rest[0].kind == event.kind:
            it = rest.pop(0)
            alike += 1
            for one, other in ((event.event_id, it.event_id), (event.data, it.data)):
                wrong += differences(one, other, event.kind)
            if event.event_id is None and it.event_id is not None:
                wrong.append(f"{event.kind}: found an id")
        if not alike:
            wrong.append(f"no event {event.kind} where one is documented")
    return wrong


def with_values(command: str, values: Mapping[str, str]) -> str:
    """Return a command with the values that were printed before in place of documented ones."""
    for documented, found in values.items():
        command = command.replace(documented, found)
    return command
