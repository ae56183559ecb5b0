"""Which clients count as one address."""

from __future__ import annotations

from livemart.serve.http.origin import origin_of


def test_a_client_has_one_address_of_ipv4_and_a_whole_network_of_ipv6() -> None:
    assert origin_of("2001:db8:0:1::1") == origin_of("2001:db8:0:1:ffff::2")
    assert origin_of("2001:db8:0:1::1") != origin_of("2001:db8:0:2::1")
    assert origin_of("::ffff:192.0.2.7") == origin_of("192.0.2.7") == "192.0.2.7"
    assert origin_of("192.0.2.7") != origin_of("192.0.2.8")
    assert origin_of("testclient") == "testclient"
