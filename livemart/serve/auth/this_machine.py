"""Tells whether a request comes from this very machine.

Used as long as no token was made: then only this machine is let in. Neither a proxy nor a foreign
name that points at this machine counts as 'here'.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import Request

from livemart.settings import Settings

# Headers that a proxy on this machine adds: such a request comes from elsewhere.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


def is_from_this_machine(request: Request) -> bool:
    """Return True if no network is between: peer and name are loopback, and no proxy spoke."""
    peer = request.client.host if request.client else ""
    is_forwarded = any(name in request.headers for name in _FORWARDED)
    return _is_loopback(peer) and is_loopback_host(request) and not is_forwarded


def serves_this_machine_alone(settings: Settings) -> bool:
    """Return True if no other machine is meant to reach the server, by its host or a proxy.

    A proxy at this machine need not say that it is one; who has one names it in `public_url`.
    """
    return is_loopback_name(settings.host) and settings.public_url is None


def is_loopback_name(host: str) -> bool:
    """Return True for `localhost` and loopback addresses."""
    return host == "localhost" or _is_loopback(host)


def is_loopback_host(request: Request) -> bool:
    """Return True if the request names this machine as its host."""
    host = request.headers.get("host", "")
    try:
        return is_loopback_name(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


@lru_cache(maxsize=1_000)
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
