"""docs/tutorial.md, unchanged: its files are written, and its commands run in one shell.

Six of them start Spark, one after the other: minutes, so it is a test of `make test-all`.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.commands import RUNNER, Running, terminal_environ

# Only a hang uses it up.
_PATIENCE_S = 1_200.0
pytestmark = [
    pytest.mark.extended,
    pytest.mark.processes,
    pytest.mark.timeout(_PATIENCE_S + 60),
]
_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
_PART = re.compile(
    r"^(?:`(?P<file>[^`\n]+)`\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_END = "---- end of block {} ----"
# The server takes a free port, and says which: a question is sent to the one that it said last.
_CURL = """#!/bin/bash
until port=$(grep -o 'serving http://127.0.0.1:[0-9]*' "$SAID" | tail -n 1 | grep -o '[0-9]*$')
do sleep 0.1; done
exec {curl} "${{@/127.0.0.1:8000/127.0.0.1:$port}}"
"""
_LIVEMART = """#!/bin/sh
exec {runner} "$@"
"""


def script_and_answers(text: str) -> tuple[str, list[list[str]]]:
    """Return the document as a script, and for each of its blocks the lines that it must print."""
    lines: list[str] = []
    answers: list[list[str]] = []
    for part in _PART.finditer(text):
        if part["file"]:
            path, ending = part["file"], f"END_OF_{len(lines)}"
            lines += [f"mkdir -p {Path(path).parent}", f"cat > {path} <<'{ending}'"]
            lines += [part["text"] + ending]
        elif part["kind"] == "text":
            answers[-1] += part["text"].splitlines()
        else:
            assert part["kind"] == "sh"
            lines += [part["text"], f"echo '{_END.format(len(answers))}'"]
            answers.append([])
    return "\n".join(lines), answers


def test_whoever_follows_the_tutorial_sees_what_it_says(tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in {
        "curl": _CURL.format(curl=curl),
        "livemart": _LIVEMART.format(runner=shlex.join(RUNNER)),
    }.items():
        (commands / name).write_text(text, encoding="utf-8")
        (commands / name).chmod(0o755)
    script, answers = script_and_answers(_DOCUMENT.read_text(encoding="utf-8"))
    environ = terminal_environ()
    said = tmp_path / "said.txt"
    environ |= {
        "PATH": f"{commands}:{environ['PATH']}",
        "LIVEMART_PORT": "0",
        "SAID": str(said),
    }

    running = Running(["bash", "-ec", script], tmp_path, environ, said)
    try:
        code = running.process.wait(_PATIENCE_S)
    finally:
        running.kill()

    assert code == 0, running.output()
    rest = running.output()
    for number, expected in enumerate(answers):
        printed, _, rest = rest.partition(_END.format(number))
        lines = iter(printed.splitlines())
        # Each in order, whatever is between them.
        assert [line for line in expected if line not in lines] == [], printed
