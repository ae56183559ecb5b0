"""`make bench-storage`: what a batch of the mart costs in a bucket, beside a disk.

The same history and batches, each in another process: once with tables, state and files on a
disk, once in a bucket of moto. JSON lines on standard output, progress on standard error.

moto is a server in Python on the same cores: `store_s_per_batch` are the seconds in which it
answered, of the `refresh_bucket_s` that they are part of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.history import END, History
from bench.live import make_batches
from bench.mart import Round, open_mart
from bench.refresh import add_rounds, label_of, report, working_folder
from tests.services.bucket import Buckets, buckets

_SEED = 20260301


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the figures, and return 1 if the answers differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.storage", description=__doc__)
    parser.add_argument("--orders", type=int, default=1_000_000, help="orders of the history")
    parser.add_argument("--batch", type=int, default=1_000, help="orders of a batch")
    add_rounds(parser, warm_up=10, batches=20)
    parser.add_argument("--folder", type=Path, help="where to work (2 GB)")
    # Given to the process that measures one place.
    parser.add_argument("--bucket", help=argparse.SUPPRESS)
    parser.add_argument("--in", dest="inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside is not None:
        print(json.dumps(_measure(given)), flush=True)
        return 0
    words = [f"--{name.replace('_', '-')}={getattr(given, name)}" for name in _SIZES]
    with working_folder(given.folder) as folder:
        disk = _run([*words, "--in", f"{folder}/disk"], {})
        with buckets() as server:
            server.make("livemart-bench")
            environ = {**server.environment, "XDG_STATE_HOME": f"{folder}/own"}
            place = ["--in", f"{folder}/bucket", "--bucket", server.endpoint]
            bucket = _run([*words, *place], environ)
    is_equal = disk["digest"] == bucket["digest"]
    label = label_of(given.orders)
    report("storage_equal", int(is_equal))
    report("refresh_bucket_over_disk", bucket["refresh_s"] / disk["refresh_s"])
    report("landing_bucket_over_disk", bucket["landing_s"] / disk["landing_s"])
    for name, found in (("disk", disk), ("bucket", bucket)):
        report(f"refresh_{name}_{label}_s", found["refresh_s"])
        report(f"landing_{name}_{label}_s", found["landing_s"])
        report(f"build_{name}_{label}_s", found["build_s"])
    for name in ("requests", "bytes"):
        report(f"{name}_per_batch", bucket[name])
    report("store_s_per_batch", bucket["seconds"])
    return 0 if is_equal else 1


_SIZES = ("orders", "batch", "warm_up", "batches")


def _run(words: Sequence[str], environ: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.storage", *words]
    done = subprocess.run(
        command, env={**os.environ, **environ}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _measure(given: argparse.Namespace) -> dict[str, float | str]:
    """Return the figures of one place, and a digest of the answers at its end."""
    began, url = time.monotonic(), "s3://livemart-bench"
    server = Buckets(given.bucket) if given.bucket else None

    def say(text: str) -> None:
        where = "bucket" if server else "disk"
        print(f"{where} {time.monotonic() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    history = History(given.orders, _SEED)
    batches = make_batches(history, given.warm_up + given.batches, given.batch)
    flags = {"warehouse": f"{url}/mart", "landing": f"{url}/landing"} if server else {}
    with open_mart(given.inside, say, flags=flags) as mart:
        mart.fill(history)
        build_s, _ = mart.build()
        say(f"built in {build_s:.1f} s")
        before = server.count() if server else {}
        rounds: Sequence[Round] = mart.refresh(batches)
        after = server.count() if server else {}
        answers = mart.answers(END)
    rows = sorted(map(str, ((name, row) for name, found in answers.items() for row in found)))
    counted = rounds[given.warm_up :]
    return {
        "digest": hashlib.sha256("\n".join(rows).encode()).hexdigest(),
        "build_s": build_s,
        "refresh_s": median(each.refresh_s - each.checks_s for each in counted),
        "landing_s": median(each.landing_s for each in counted),
        **{name: (after[name] - before[name]) / len(rounds) for name in after},
    }


if __name__ == "__main__":
    sys.exit(main())
