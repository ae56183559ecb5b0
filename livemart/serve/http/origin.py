"""Says which addresses count as one, where something is counted by address.

Used for connections, streams, wrong tokens, and the shares of callers without a token.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


@lru_cache(maxsize=10_000)
def origin_of(address: str) -> str:
    """Return the network that counts as one address: for IPv6 the /64, which is one client's.

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


@lru_cache
def networks_of(names: tuple[str, ...]) -> tuple[Network, ...]:
    """Return the networks that a setting names."""
    return tuple(ip_network(name) for name in names)


@lru_cache(maxsize=10_000)
def is_within(address: str, networks: tuple[Network, ...]) -> bool:
    """Return True if an address is of one of these networks, such as those of proxies.

    >>> is_within("::ffff:10.0.0.7", (IPv4Network("10.0.0.0/24"),)), is_within("testclient", ())
    (True, False)
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    mapped = None if isinstance(ip, IPv4Address) else ip.ipv4_mapped
    return any((mapped or ip) in network for network in networks)
