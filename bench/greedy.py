"""Asks for one path on many connections, again at once, until it is ended: a greedy caller.

Used by `bench.serve` as a separate process, so that its work does not delay the clock of the reads
beside it. `python -m bench.greedy HOST PORT TOKEN PATH CONNECTIONS` prints a line once it has an
answer. When it gets SIGTERM, it prints the number of answers by status.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress

from bench.serve import NICE, Address, read_answer, request_of


async def ask(address: Address, token: str, path: str, connections: int) -> dict[int, int]:
    """Return how many answers of each status came until SIGTERM."""
    answers = Counter[int]()

    async def pull() -> None:
        reader, writer = await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                writer.write(request_of(address, path, token))
                status, _ = await read_answer(reader)
                if not answers:
                    print("answered", flush=True)
                answers[status] += 1
        writer.close()

    is_over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
    tasks = [asyncio.create_task(pull()) for _ in range(connections)]
    await is_over.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return answers


if __name__ == "__main__":
    os.nice(NICE)
    host, port, token, path, connections = sys.argv[1:]
    print(json.dumps(asyncio.run(ask((host, int(port)), token, path, int(connections)))))
