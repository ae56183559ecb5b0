"""Checks the options of a source of the kind `kafka`, and makes the settings of its client.

Used by `KafkaLog`. Secrets are named by environment variables: so no option holds one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# A setting of the client whose value is a secret, by its name.
_SECRET_WORDS = ("password", "secret", "sasl.oauthbearer.config", "key.pem", "private.key")
# What a range of offsets is read by is not for a project to decide.
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
    """Yield what is wrong with the settings of a client and the names of its secrets."""
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
        if name in client:
            yield f"secrets: {name} is in `client` as well"
        if not isinstance(variable, str) or not variable.isidentifier():
            # Of what is there nothing is said: it may be the secret itself.
            yield f"secrets: {name}: write the name of an environment variable"


def is_secret(name: str) -> bool:
    """Return whether the value of a setting of the client is a secret.

    >>> is_secret("sasl.password"), is_secret("sasl.username")
    (True, False)
    """
    return any(word in name for word in _SECRET_WORDS)
