"""Which connection is closed in favour of which, and which one is refused."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from ipaddress import ip_network
from itertools import pairwise

from livemart.serve.connections.kept import Admission, ConnectionLimits, Connections
from livemart.serve.http.measurements import Measurements


@dataclass(eq=False)
class Client:
    deadline: float = math.inf
    is_cut_off: bool = False
    expired_at: float | None = None

    def expire(self, now: float) -> None:
        self.expired_at, self.deadline = now, math.inf

    def cut_off(self) -> None:
        self.is_cut_off = True


def connections(most: int = 3, reserve: int = 1, of_address: int = 2) -> Connections:
    limits = ConnectionLimits(most, reserve, of_address, (ip_network("10.0.0.0/8"),))
    return Connections(limits, Measurements())


def test_the_one_that_was_silent_for_longest_makes_room() -> None:
    kept, (first, second, third, fourth) = connections(), (Client() for _ in range(4))
    for number, client in enumerate((first, second, third)):
        assert kept.admit(client, f"192.0.2.{number}") is Admission.OPEN
    kept.note_busy(first)
    kept.note_silent(first)

    assert kept.admit(fourth, "192.0.2.9") is Admission.OPEN

    assert [client.is_cut_off for client in (first, second, third)] == [False, True, False]
    assert len(kept) == 3


def test_where_all_are_busy_there_is_a_reserve_and_then_nothing() -> None:
    kept, clients = connections(), [Client() for _ in range(5)]
    places = []
    for number, client in enumerate(clients):
        places.append(kept.admit(client, f"192.0.2.{number}"))
        kept.note_busy(client)

    assert places == [Admission.OPEN] * 3 + [Admission.RESERVE, Admission.REFUSED]
    assert not any(client.is_cut_off for client in clients)
    kept.leave(clients[0])
    assert kept.admit(Client(), "192.0.2.9") is Admission.RESERVE
    kept.leave(clients[1])
    kept.leave(clients[2])
    assert kept.admit(Client(), "192.0.2.9") is Admission.OPEN


def test_an_address_makes_room_for_its_own_and_is_refused_while_all_of_its_own_are_busy() -> None:
    kept, (one, two, three, other) = connections(), (Client() for _ in range(4))
    kept.admit(other, "192.0.2.2")
    kept.admit(one, "192.0.2.1")
    kept.admit(two, "192.0.2.1")

    assert kept.admit(three, "192.0.2.1") is Admission.OPEN
    assert (one.is_cut_off, other.is_cut_off) == (True, False)
    kept.note_busy(two)
    kept.note_busy(three)
    assert kept.admit(Client(), "192.0.2.1") is Admission.REFUSED
    assert kept.admit(Client(), "::ffff:192.0.2.1") is Admission.REFUSED


def test_a_network_of_ipv6_is_one_address_and_a_proxy_is_none() -> None:
    kept = connections(most=10, of_address=1)
    clients = [Client() for _ in range(4)]
    for client, address in zip(
        clients, ("2001:db8::1", "10.0.0.7", "10.0.0.7", "::ffff:10.0.0.7"), strict=True
    ):
        kept.admit(client, address)
        kept.note_busy(client)

    assert len(kept) == 4
    assert kept.admit(Client(), "2001:db8::2") is Admission.REFUSED
    assert kept.admit(Client(), "2001:db8:0:1::2") is Admission.OPEN


def test_only_those_whose_deadline_has_passed_are_asked() -> None:
    kept, (early, late) = connections(), (Client(5.0), Client(7.0))
    kept.admit(early, "192.0.2.1")
    kept.admit(late, "192.0.2.2")

    asyncio.run(kept.expire(6.0))

    assert (early.expired_at, late.expired_at) == (6.0, None)


def test_others_have_their_turn_while_many_are_ended() -> None:
    kept, clients = connections(most=100), [Client(5.0) for _ in range(50)]
    for number, client in enumerate(clients):
        kept.admit(client, f"192.0.2.{number}")
    ended: list[int] = []

    async def look_between() -> None:
        while not ended or ended[-1] < len(clients):
            ended.append(sum(client.expired_at is not None for client in clients))
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(kept.expire(6.0), look_between())

    asyncio.run(both())

    steps = [after - before for before, after in pairwise(ended)]
    assert max(steps) < len(clients) / 10
    assert ended[-1] == len(clients)


def test_one_that_asks_again_or_leaves_meanwhile_is_not_ended() -> None:
    kept, clients = connections(most=100), [Client(5.0) for _ in range(50)]
    for number, client in enumerate(clients):
        kept.admit(client, f"192.0.2.{number}")

    async def ask_again_and_leave() -> None:
        clients[-1].deadline = math.inf
        kept.leave(clients[-2])

    async def both() -> None:
        await asyncio.gather(kept.expire(6.0), ask_again_and_leave())

    asyncio.run(both())

    assert [client.expired_at for client in clients[-3:]] == [6.0, None, None]


def test_few_descriptors_leave_half_of_them_to_the_rest_of_the_process() -> None:
    few = ConnectionLimits.within(64, 1_000)

    assert (few.most, few.reserve, few.of_address) == (32, 8, 16)
