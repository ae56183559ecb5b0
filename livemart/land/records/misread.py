"""Recognizes files that hold no records, and names the next step.

Used for files that begin as another format does, and for contents that are no JSON object: what
the parser says of them names a character, and not the mistake.
"""

from __future__ import annotations

import json
import re

_ONE_A_LINE = "write one object a line (`jq -c .` does), or all as one array"
_FILES = {
    b"PK\x03\x04": "a zip archive (an .xlsx is one): deliver what is in it, a sheet as CSV",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: deliver what is in it",
    b"\xd0\xcf\x11\xe0\xa1\xb1": "a file of Office, as old .xls are: save it as CSV",
    b"\xfd7zXZ\0": "compressed by xz: use gzip, zstd or bzip2, or nothing",
    b"PAR1\x15": "a Parquet file: write `format: parquet` for its source, or correct the `path`",
    b"Obj\x01": "an Avro file: write `format: avro` for its source, or correct the `path`",
    b"%PDF-": "a PDF: deliver its data as JSON or CSV",
    b"SQLite format 3\0": "a SQLite database: export its tables as JSON or CSV",
    b"\xff\xfe\0\0": "UTF-32: write it as UTF-8 (`iconv -f UTF-32 -t UTF-8`)",
    b"\xff\xfe": "UTF-16: write it as UTF-8 (`iconv -f UTF-16 -t UTF-8`)",
    b"\xfe\xff": "UTF-16: write it as UTF-8 (`iconv -f UTF-16 -t UTF-8`)",
}
# Behind 257 bytes; no name in an archive begins with a line end.
_TAR = re.compile(rb"[^\n\f].{256}ustar(?:\0|  \0)", re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELD = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:')
_BRACKETS = re.compile(rb"[\[{]|[\]}],?")
# A first field that begins nothing of JSON, and something behind the sign that ends it.
_CSV = re.compile(rb"[^\[\]{}:,;\t\s][^\[\]{}]*?[,;\t]\s*\S")
_PYTHON_QUOTE = re.compile(rb"\{\s*'")
_PYTHON_WORD = re.compile(rb"([:,\[]\s*)(?:None|True|False)(?=\s*[,\]}])")
_COMMA = re.compile(rb",(\s*[}\]])")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def misread_file(head: bytes) -> str | None:
    """Return the kind of a file that has no lines, by its first 300 bytes; None if it may have.

    >>> misread_file(b"Obj\\x01...")
    'the file is an Avro file: write `format: avro` for its source, or correct the `path`'
    """
    if _TAR.match(head):
        return "the file is a tar archive: deliver what is in it"
    kind = next((name for magic, name in _FILES.items() if head.startswith(magic)), None)
    return None if kind is None else f"the file is {kind}"


def misread_json(raw: bytes) -> str | None:
    """Return the kind of a content that is no JSON object, None if it is not recognized.

    >>> misread_json(b'{"id": 1}, {"id": 2}')
    'several objects in one: write one object a line (`jq -c .` does), or all as one array'
    """
    content = raw.strip()
    if content.startswith(_BYTE_ORDER_MARK):
        return "a byte order mark: deliver files apart that were joined to one"
    if content.startswith(b"<"):
        return "XML or HTML: convert it to JSON, or correct what is delivered"
    if _BRACKETS.fullmatch(content) or _FIELD.match(content):
        return f"a part of an object that is spread over lines: {_ONE_A_LINE}"
    rest = _behind_object(content)
    if rest == b"":
        # One object, which the parser refuses for its content, such as a key twice.
        return None
    if _PYTHON_QUOTE.match(content) or _behind_object(_PYTHON_WORD.sub(rb"\1null", content)) == b"":
        return "an object as Python prints it: write it by `json.dumps`"
    if rest == b",":
        return f"a comma behind the object: {_ONE_A_LINE}"
    if rest is not None and rest.lstrip(b", \t\r\n").startswith(b"{"):
        return f"several objects in one: {_ONE_A_LINE}"
    if rest:
        return "text behind the object: deliver the object alone"
    if rest is None and _behind_object(_COMMA.sub(rb"\1", content)) == b"":
        return "a comma before a closing bracket: JSON has none there"
    if _behind_object(content[max(content.find(b"{"), 0) :]) == b"":
        return "text before the object: deliver the object alone"
    if _CSV.match(content):
        return "a line of CSV, it seems: write `format: csv` for its source, or correct the `path`"
    return None


def _behind_object(content: bytes) -> bytes | None:
    """Return the bytes behind the object that a content begins with, None without one."""
    if not content.startswith(b"{"):
        return None
    try:
        text = content.decode()
        return text[_DECODER.raw_decode(text)[1] :].strip().encode()
    except (ValueError, RecursionError):
        return None
