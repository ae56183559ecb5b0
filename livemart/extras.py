"""Finds the installed extras of the package, by a module of each.

Used before something that needs an extra begins. Nothing is imported to find it out.
"""

from __future__ import annotations

from importlib.util import find_spec

from livemart.errors import ConfigError

# The modules that each extra of pyproject.toml brings.
EXTRAS = {
    "serve": (
        "sqlalchemy",
        "psycopg",
        "fastapi",
        "uvicorn",
        "sse_starlette",
        "jinja2",
        "python_multipart",
        "itsdangerous",
        "babel",
        "prometheus_client",
    ),
    "kafka": ("confluent_kafka",),
    "nats": ("nats",),
    "s3": ("obstore",),
}


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that cannot be imported."""
    return [module for module in EXTRAS[extra] if find_spec(module) is None]


def install_hint(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'livemart[{extra}]'"


def require_extra(extra: str) -> None:
    """Check that a command has the packages of an extra.

    Raises:
        ConfigError: EXTRA_MISSING.
    """
    if missing := missing_modules(extra):
        raise ConfigError(
            "EXTRA_MISSING",
            f"extra {extra}: found no {', '.join(missing)}",
            hint=install_hint(extra),
        )
