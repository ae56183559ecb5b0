"""Checks the access to a store without opening it: its kind, its extra and its credentials.

Used where a storage is opened, and where settings name one. The client of a bucket is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping

from livemart.extras import require_extra
from livemart.storage.location import Location

# Variables of the environment that say who asks, and where; each engine is given the same.
_OPTIONS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
)
# Without one of these each engine would look for it elsewhere, and might find another one.
_NEEDED = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")


def check_access(location: Location, environment: Mapping[str, str]) -> None:
    """Check that the storage of a location can be opened; no request is made.

    Raises:
        ConfigError: EXTRA_MISSING; ValueError: a URL that names no bucket of a known kind, or
        credentials that the environment lacks.
    """
    match location.scheme:
        case "":
            return
        case "s3":
            require_extra("s3")
            access_options(environment)
        case _:
            raise ValueError(
                "name a folder, or s3://bucket/folder: no store of another kind is opened"
            )


def access_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the storage options that obstore and deltalake understand. They hold secrets.

    Raises:
        ValueError: the environment lacks some.

    >>> access_options({"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "a"})
    Traceback (most recent call last):
    ValueError: set AWS_SECRET_ACCESS_KEY in the environment
    """
    options = {name: value for name in _OPTIONS if (value := environment.get(name))}
    if region := environment.get("AWS_DEFAULT_REGION"):
        options.setdefault("AWS_REGION", region)
    if missing := [name for name in _NEEDED if name not in options]:
        raise ValueError(f"set {' and '.join(missing)} in the environment")
    if options.get("AWS_ENDPOINT_URL", "").startswith("http:"):
        options["AWS_ALLOW_HTTP"] = "true"
    return options
