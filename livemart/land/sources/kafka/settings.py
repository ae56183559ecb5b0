"""Turns the options of a source of the kind `kafka` into checked settings of its client.

Used by `KafkaLog`. Secrets are named by environment variables: so no option holds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from livemart.epoch import parse_moment
from livemart.land.secrets import check_variable

# A setting of the client whose value is a secret, by its name.
_SECRET_WORDS = ("password", "secret", "sasl.oauthbearer.config", "key.pem", "private.key")
# livemart sets these itself to read ranges of offsets; a project cannot.
_OWN = (
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.partition.eof",
    "group.id",
    "metadata.broker.list",
)


def check_client(client: Mapping[str, object], secrets: Mapping[str, object]) -> Iterator[str]:
    """Yield the mistakes in the settings of a client and the names of its secrets."""
    for name, value in client.items():
        if is_secret(name):
            yield (
                f"client: {name} is a secret: put it in an environment variable and name that, "
                f"`secrets: {{{name}: KAFKA_SECRET}}`"
            )
        elif name in _OWN:
            yield f"client: {name} is set by livemart: leave it out"
        elif not isinstance(value, str | int | float):
            yield f"client: {name}: write a text, a number, true or false"
    for name, variable in secrets.items():
        yield from check_variable(name, variable, client)


def check_moment(option: str, value: object, words: Sequence[str]) -> Iterator[str]:
    """Yield the mistakes in a place of a log, as `start` and `end` name one."""
    if isinstance(value, Mapping):
        for name, offset in value.items():
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                yield f"{option}: {name}: found {offset!r}: write an offset"
    elif not isinstance(value, str) or (value not in words and not _is_moment(value)):
        choices = "".join(f"{word}, " for word in words)
        yield (
            f"{option}: found {value!r}: write {choices}a time such as 2026-03-01T12:00:00Z, or "
            "offsets by partition, {orders/0: 17}"
        )


def _is_moment(text: str) -> bool:
    try:
        parse_moment(text)
    except ValueError:
        return False
    return True


def is_secret(name: str) -> bool:
    """Return whether the value of a setting of the client is a secret.

    >>> is_secret("sasl.password"), is_secret("sasl.username")
    (True, False)
    """
    return any(word in name for word in _SECRET_WORDS)
