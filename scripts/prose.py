"""Counts, for each room, words that make a reader stop and sentences that are too long.

Used by `make lint`, which also prints the lines of code of each room. The counts are kept in
`prose_counts.json` and may only fall: exits with 1 and lists the places of each count that rose.
`--write` stores counts that fell. CONTRIBUTING holds the plain words to take instead.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Literal

_ROOT = Path(__file__).resolve().parent.parent
_COUNTS = _ROOT / "scripts" / "prose_counts.json"

LONGEST_SENTENCE = 30
"""In words."""

WORDS = {
    "anew": r"\banew\b",
    "comes to": r"\b(?:comes?|came)\s+to\b",
    "hangs on": r"\bh[au]ngs?\s+on\b",
    "is made of": r"\b(?:is|are|was|were|be)\s+made\s+of\b",
    "lies": r"\b(?:lies?|lay)\b",
    "nobody": r"\bnobody\b",
    "of its own": r"\bof\s+(?:its|their)\s+own\b",
    "stands": r"\b(?:stands?|stood)\b(?!-|\s+for\b)",
    "told": r"\btold\b",
    "whoever": r"\bwhoever\b",
}
"""Patterns that count wherever they are found, in small and capital letters."""

_WORD = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in WORDS.items()}
# A sentence that begins with one of these makes its reader wait for the verb.
_OPENING = {"What ...": re.compile(r"What\b"), "Of ...": re.compile(r"Of\b")}
_LONG = f"over {LONGEST_SENTENCE} words"
_SUMMARY = "first line is no sentence"

_CODE = re.compile(r"(`+)(?:.|\n)+?\1")
_FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^ *>>>.*?(?=\n *\n|\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\])\([^)\n]*\)")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
# An empty line, an item of a list, `name: ` of a section of a docstring, a heading, a cell.
_PARAGRAPH = re.compile(r"\n\s*(?=\n)|\n\s*(?=(?:[-*#]|\d+\.|\w+:)\s)|\||:\n")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')*]*\s+")
_QUOTES = re.compile(r"^([A-Za-z]*)(\"\"\"|'''|\"|')(.*)\2$", re.DOTALL)
_SQL = re.compile(r"(?:select|with|create|insert|merge|update|delete|alter)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text as it is written, which begins at a line of its file (from 1)."""

    line: int
    text: str
    kind: Literal["docstring", "comment", "string", "page"] = "page"


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file taken apart: its passages, and how many of its lines hold code."""

    passages: tuple[Passage, ...]
    lines_of_code: int


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Return a text of the same length whose matches are letters without a meaning."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)


def _tokens(source: str) -> Iterator[tuple[int, str, int, int]]:
    """Yield kind, text, first and last line of each token; an f-string is one, as in 3.11."""
    lines = source.splitlines(keepends=True)
    starts = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
    ends = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
    opened: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type in starts:
            opened.append(token.start)
        elif token.type in ends:
            (row, column), (end_row, end_column) = opened.pop(), token.end
            if not opened:
                text = "".join(lines[row - 1 : end_row - 1]) + lines[end_row - 1][:end_column]
                yield tokenize.STRING, text[column:], row, end_row
        elif not opened:
            yield token.type, token.string, token.start[0], token.end[0]


def _content(literal: str) -> str:
    """Return what is between the quotes of a string; a placeholder is one word."""
    match = _QUOTES.match(literal)
    prefix, text = (match[1], match[3]) if match else ("", literal)
    return _without(_PLACEHOLDER, text) if "f" in prefix.lower() else text


def taken_apart(source: str) -> Source:
    """Return docstrings, comments and other strings of a Python file, and count its code.

    A line of code holds more than a comment or a part of a docstring.

    >>> taken_apart("def f():\\n    # Once.\\n\\n    return 1\\n").lines_of_code
    2
    """
    skipped = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    passages: list[Passage] = []
    comments: list[tuple[int, str]] = []
    statement: list[tuple[int, str, int, int]] = []
    code: set[int] = set()
    for token in _tokens(source):
        kind, text, first, _ = token
        if kind == tokenize.COMMENT:
            comments.append((first, text.lstrip("#:! ")))
        elif kind != tokenize.NEWLINE:
            statement += [] if kind in skipped else [token]
        elif [kind for kind, *_ in statement] == [tokenize.STRING]:
            passages.append(Passage(statement[0][2], _content(statement[0][1]), "docstring"))
            statement = []
        else:
            code.update(*(range(first, last + 1) for _, _, first, last in statement))
            for kind, pieces in groupby(statement, key=lambda token: token[0]):
                if kind == tokenize.STRING:
                    parts = list(pieces)
                    written = "".join(_content(text) for _, text, _, _ in parts)
                    passages.append(Passage(parts[0][2], written.replace("\\n", "\n"), "string"))
            statement = []
    # Comments of lines that follow each other are one text.
    for _, lines in groupby(enumerate(comments), key=lambda item: item[1][0] - item[0]):
        block = [comment for _, comment in lines]
        passages.append(Passage(block[0][0], "\n".join(text for _, text in block), "comment"))
    return Source(tuple(passages), len(code))


def _is_message(text: str) -> bool:
    return text.count(" ") >= 3 and not _SQL.match(text.strip())


def _sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield place and text of each sentence; the cells of a table and items of a list are some."""
    place = 0
    for separator in (*_PARAGRAPH.finditer(text), None):
        end = separator.start() if separator else len(text)
        begin = place
        for gap in (*_SENTENCE.finditer(text, place, end), None):
            stop = gap.start() if gap else end
            sentence = text[begin:stop].lstrip(" \n#-*")
            yield stop - len(sentence), sentence
            begin = gap.end() if gap else end
        place = separator.end() if separator else end


def occurrences(passage: Passage) -> Iterator[tuple[str, int]]:
    """Yield name and line of each thing in a passage that is counted; code in it is not read.

    >>> list(occurrences(Passage(7, "What is told.\\nOf two, the `told` one.")))
    [('told', 7), ('What ...', 7), ('Of ...', 8)]
    """
    text = passage.text
    for pattern in (_FENCE, _EXAMPLE, _CODE, _LINK):
        text = _without(pattern, text)

    def line_of(place: int) -> int:
        return passage.line + text.count("\n", 0, place)

    for name, pattern in _WORD.items():
        yield from ((name, line_of(match.start())) for match in pattern.finditer(text))
    for place, sentence in _sentences(text):
        yield from ((name, line_of(place)) for name, own in _OPENING.items() if own.match(sentence))
        if sum(any(map(str.isalnum, word)) for word in sentence.split()) > LONGEST_SENTENCE:
            yield _LONG, line_of(place)
    first_line = passage.text.partition("\n")[0].rstrip()
    if passage.kind == "docstring" and not first_line.endswith((".", ":", "?")):
        yield _SUMMARY, passage.line


def _files() -> Iterator[tuple[str, Path]]:
    """Yield room and path of each file that is read: not decisions, which are never edited."""
    for path in sorted((_ROOT / "livemart").rglob("*.py")):
        room = "/".join(path.relative_to(_ROOT).parent.parts[:2])
        yield room, path
    for folder in ("bench", "demo", "scripts", "tests"):
        yield from ((folder, path) for path in sorted((_ROOT / folder).rglob("*.py")))
    yield from (("docs", path) for path in sorted((_ROOT / "docs").glob("*.md")))
    yield from ((name, _ROOT / name) for name in ("CONTRIBUTING.md", "README.md"))


def _read(place: tuple[str, Path]) -> tuple[str, int, list[tuple[str, str]]]:
    """Return room, lines of code, and name and `file:line` of each thing that counts in a file."""
    room, path = place
    text = path.read_text(encoding="utf-8")
    source = taken_apart(text) if path.suffix == ".py" else Source((Passage(1, text),), 0)
    in_package = room.startswith("livemart")
    things = [
        (name, f"{path.relative_to(_ROOT)}:{line}")
        for passage in source.passages
        # Strings of tests are data.
        if passage.kind != "string" or (in_package and _is_message(passage.text))
        for name, line in occurrences(passage)
    ]
    return room, source.lines_of_code if in_package else 0, things


def risen(before: Mapping[str, int], places: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a line for each thing that a room holds more often than before, with its places.

    >>> list(risen({"told": 1}, {"told": ["a.py:3"], "anew": ["a.py:4", "b.py:1"]}))
    ['anew: 2, at most 0: a.py:4 b.py:1']
    """
    for name, found_at in sorted(places.items()):
        if len(found_at) > (most := before.get(name, 0)):
            yield f"{name}: {len(found_at)}, at most {most}: {' '.join(found_at)}"


def main(arguments: list[str] | None = None) -> int:
    """Print the lines of code of each room, and the counts that rose; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="store counts that fell")
    parser.add_argument("--places", action="store_true", help="print the place of each thing")
    options = parser.parse_args(arguments)
    before: dict[str, dict[str, int]] = json.loads(_COUNTS.read_text(encoding="utf-8"))
    lines: Counter[str] = Counter()
    places: dict[str, dict[str, list[str]]] = {}
    with ProcessPoolExecutor() as pool:
        for room, count, things in pool.map(_read, list(_files()), chunksize=40):
            lines[room] += count
            for name, place in things:
                places.setdefault(room, {}).setdefault(name, []).append(place)

    rooms = sorted(places.items())
    counts = {room: {name: len(names[name]) for name in sorted(names)} for room, names in rooms}
    mistakes = [
        f"{room}: {line}" for room, names in rooms for line in risen(before.get(room, {}), names)
    ]
    if options.places:
        for room, names in rooms:
            print("\n".join(f"{room}: {name}: {' '.join(names[name])}" for name in sorted(names)))
    print("\n".join(f"{count:7,} {room}" for room, count in sorted(lines.items()) if count))
    total = sum(sum(names.values()) for names in counts.values())
    print(f"{lines.total():7,} lines of code; {total:,} words and sentences to replace")
    if mistakes:
        print("\n".join(mistakes), file=sys.stderr)
        print('  next: see "Plain words" in CONTRIBUTING.md', file=sys.stderr)
        return 1
    if options.write:
        _COUNTS.write_text(f"{json.dumps(counts, indent=1)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
