"""Says which addresses count as one, where something is counted by address.

Used for connections, wrong tokens, and the shares of callers without a token.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address


@lru_cache(maxsize=10_000)
def origin_of(address: str) -> str:
    """Return what counts as one address: for IPv6 the /64, which belongs to one client.

    >>> origin_of("192.0.2.7"), origin_of("2001:db8:0:1:5::7")
    ('192.0.2.7', '2001:db8:0:1::/64')
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv4Address):
        return address
    mapped = ip.ipv4_mapped
    return str(mapped) if mapped else str(IPv6Network((int(ip), 64), strict=False))
