"""Parses the column types that the analyst declares: Spark DDL, without Spark.

Used where sources are checked and where records are converted. sqlglot's parser is no substitute:
of 58 texts that are refused here it takes 31, among them `array<int`, `int int`, `struct<1a int>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from livemart.errors import nearest
from livemart.spark_sql import unquoted

_ALIASES = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
SCALARS = (
    "string",
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "date",
    "timestamp",
    "timestamp_ntz",
    "binary",
)
TYPE_WORDS = (*SCALARS, "array", "struct", "map", *_ALIASES)

# Words of other databases, where the nearest word of Spark would be a type of other values.
TYPES_ELSEWHERE = {
    "text": "string",
    "json": "string",
    "jsonb": "string",
    "uuid": "string",
    "bool": "boolean",
    "bytes": "binary",
    "int4": "int",
    "int8": "bigint",
    "int64": "bigint",
    "number": "decimal",
    "float4": "float",
    "float8": "double",
    "float64": "double",
    "datetime": "timestamp_ntz",
    "timestamptz": "timestamp",
}
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([^\W\d]\w*)|(\d+)|('[^']*')|(.))", re.S)
MAX_PRECISION = 38


def type_instead(word: str, words: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    """Return ", did you mean string?" for a word that is no type; "" if nothing is near.

    Args:
        word: in lower case.
        words: the types that may be written.
        elsewhere: the type of Spark for a word of another database.
    """
    own_word = elsewhere.get(word)
    return f", did you mean {own_word}?" if own_word else nearest(word, words)


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type tree. `name` is Spark's own word in lower case, aliases resolved.

    `precision` and `scale` belong to decimal, `fields` to struct, `element` to array and map (its
    values), `key` to map.
    """

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, SparkType], ...] = ()
    element: SparkType | None = None
    key: SparkType | None = None

    def walk(self) -> Iterator[SparkType]:
        """Yield the type and all within it."""
        yield self
        for part in (self.key, self.element, *(member for _, member in self.fields)):
            if part is not None:
                yield from part.walk()

    def __str__(self) -> str:
        match self.name:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array":
                return f"array<{self.element}>"
            case "map":
                return f"map<{self.key},{self.element}>"
            case "struct":
                inner = ",".join(f"{name}:{kind}" for name, kind in self.fields)
                return f"struct<{inner}>"
            case _:
                return self.name


class TypeSyntaxError(ValueError):
    """A type that is not Spark DDL, or that landing does not support. `word`: as written."""

    def __init__(self, message: str, word: str) -> None:
        super().__init__(message)
        self.word = word


def parse_type(text: str) -> SparkType:
    """Return the type that `text` (Spark DDL, any case) declares.

    Raises:
        TypeSyntaxError: with the word that is not understood.

    >>> str(parse_type("ARRAY<STRUCT<dish_id STRING, unit_price: DECIMAL(10, 2)>>"))
    'array<struct<dish_id:string,unit_price:decimal(10,2)>>'
    """
    parser = _Parser(text)
    spark_type = parser.type()
    parser.expect("")
    return spark_type


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [
            next(part for part in match.groups() if part is not None)
            for match in _TOKEN.finditer(text.strip())
        ]
        self._next = 0

    def type(self) -> SparkType:
        word = self._take()
        name = _ALIASES.get(word.lower(), word.lower())
        match name:
            case "array":
                self.expect("<")
                element = self.type()
                self.expect(">")
                return SparkType("array", element=element)
            case "map":
                self.expect("<")
                key = self.type()
                self.expect(",")
                element = self.type()
                self.expect(">")
                if key.name != "string":
                    raise TypeSyntaxError(f"found map key {key}, expected string", str(key))
                return SparkType("map", element=element, key=key)
            case "struct":
                return SparkType("struct", fields=self._fields())
            case "decimal":
                return self._decimal()
            case _ if name in SCALARS:
                return SparkType(name)
            case _:
                raise TypeSyntaxError(f"found type {word or 'nothing'}", word)

    def expect(self, token: str) -> None:
        if (word := self._take()) != token:
            expected = token or "the end"
            raise TypeSyntaxError(f"found {word or 'the end'}, expected {expected}", word)

    def _take(self) -> str:
        if self._next >= len(self._tokens):
            return ""
        self._next += 1
        return self._tokens[self._next - 1]

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _decimal(self) -> SparkType:
        precision, scale = 10, 0
        if self._peek() == "(":
            self.expect("(")
            precision = self._number()
            if self._peek() == ",":
                self.expect(",")
                scale = self._number()
            self.expect(")")
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            text = f"decimal({precision},{scale})"
            raise TypeSyntaxError(f"found {text}, precision is 1 to 38, scale within it", text)
        return SparkType("decimal", precision, scale)

    def _number(self) -> int:
        if not (word := self._take()).isdigit():
            raise TypeSyntaxError(f"found {word or 'the end'}, expected a number", word)
        return int(word)

    def _fields(self) -> tuple[tuple[str, SparkType], ...]:
        self.expect("<")
        fields: dict[str, SparkType] = {}
        while True:
            name = self._take()
            if not re.fullmatch(r"`.+`|[^\W\d]\w*", name, re.S):
                raise TypeSyntaxError(f"found {name or 'the end'}, expected a field name", name)
            name = unquoted(name)
            if name.lower() in (other.lower() for other in fields):
                raise TypeSyntaxError(f"field {name} is declared twice", name)
            if self._peek() == ":":
                self.expect(":")
            fields[name] = self.type()
            self._skip_remarks()
            if self._peek() != ",":
                break
            self.expect(",")
        self.expect(">")
        return tuple(fields.items())

    def _skip_remarks(self) -> None:
        if self._peek().lower() == "not":
            self._take()
            if self._take().lower() != "null":
                raise TypeSyntaxError("expected NULL after NOT", "not")
        if self._peek().lower() == "comment":
            self._take()
            self._take()
