"""Holds connections that say nothing, of many addresses, until it is ended.

Used by `bench.serve` as a separate process, so that its work does not delay the clock of the reads
beside it. `python -m bench.silent HOST PORT COUNT` prints a line once it is connected. When it gets
SIGTERM, it prints the most connections that were open at once, and their mean number.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from statistics import mean

from bench.serve import NICE, Address, cancelled

# The server ends each one after 10 s; then it stays away for so long.
_AGAIN_S = 30
# So many come in a second at first: as many as 6,000 of them do later on.
_RATE = 150


async def be_silent(address: Address, count: int) -> dict[str, float]:
    """Return the most and the mean number of open connections until SIGTERM."""
    are_open = set[int]()
    counts = [0]

    async def hold(number: int) -> None:
        origin = (f"127.0.{1 + number // 200 % 200}.{1 + number % 200}", 0)
        await asyncio.sleep(number / _RATE)
        is_first = number == 0
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*address, local_addr=origin)
                are_open.add(number)
                if is_first:
                    print("connected", flush=True)
                    is_first = False
                await reader.read()
                writer.close()
            are_open.discard(number)
            await asyncio.sleep(_AGAIN_S)

    async def look() -> None:
        while True:
            await asyncio.sleep(0.5)
            counts.append(len(are_open))

    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    async with cancelled([look(), *(hold(number) for number in range(count))]):
        await is_over.wait()
    return {"most": max(counts), "mean": mean(counts)}


if __name__ == "__main__":
    os.nice(NICE)
    host, port, count = sys.argv[1:]
    print(json.dumps(asyncio.run(be_silent((host, int(port)), int(count)))))
