"""Counts the way of one model through the code: stops, files, and returns to a file left before.

A stop is a place where a module of `livemart/` calls another one, counted once for each model
however often a loop passes it. Who reads what a refresh does makes these stops; each that leads to
a file seen before is a return. `python -m scripts.walk` refreshes a small project that has a model
of each strategy (a JVM, a minute) and prints a table; `--list` names the files and their stops.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

import livemart
from livemart.refresh import models as refresh_models
from livemart.settings import Settings
from livemart.spark.session import open_session
from tests.integration.mini import PROJECT, Mini, sale, visit
from tests.project_run import strategies

_PACKAGE = f"{Path(livemart.__file__).parent}/"
# The way that is read: below, a table is a table and Spark is Spark.
_ROOMS = ("refresh/", "plan/")
_RANGE = "over (partition by shop_id order by sold_at range between interval 1 hour preceding"
_SALES = "from {{ source('shop', 'sales') }}"
_MODELS = {
    "appended": "select shop_id, visited_at from {{ source('shop', 'visits') }}",
    "framed": f"select sale_id, shop_id, sold_at, max(amount) {_RANGE} and current row) as most"
    f" {_SALES}",
    "keyed": f"select shop_id, max(amount) as most {_SALES} group by 1",
    "last_hour": (PROJECT / "models" / "shop_last_hour.sql")
    .read_text()
    .replace("{{ ref('stg_shop__sales') }}", "{{ source('shop', 'sales') }}"),
    "looked_up": "select visits.shop_id, visits.visited_at, totals.amount from"
    " {{ source('shop', 'visits') }} as visits"
    " left join {{ ref('summed') }} as totals on visits.shop_id = totals.shop_id",
    "recomputed": f"select max(amount) as most {_SALES}",
    "running": f"select sale_id, shop_id, sold_at, sum(amount) {_RANGE} and current row) as total"
    f" {_SALES}",
    "summed": f"select shop_id, count(*) as n, sum(amount) as amount {_SALES} group by 1",
}


@dataclass
class Walk:
    """The stops of one model, in the order in which they were first made.

    A stop is the calling file and line, and the file that is called.
    """

    stops: dict[tuple[str, int, str], None] = field(default_factory=dict)

    def row(self, rooms: Sequence[str] = ("",)) -> tuple[int, int, int]:
        """Return the numbers of stops, files and returns within some rooms."""
        files = [callee for _, _, callee in self.stops if callee.startswith(tuple(rooms))]
        return len(files), len(set(files)), len(files) - len(set(files))


@contextmanager
def profiled() -> Iterator[dict[str, Walk]]:
    """Give the walks of the models that are refreshed within the block, by name."""
    walks: dict[str, Walk] = {}
    models = threading.local()
    start: CodeType = refresh_models._Refresher.refresh.__code__

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code is start and event in ("call", "return"):
            name = frame.f_locals["unique_id"].rpartition(".")[2]
            models.walk = walks.setdefault(name, Walk()) if event == "call" else None
        walk: Walk | None = getattr(models, "walk", None)
        if walk is None or event != "call" or not code.co_filename.startswith(_PACKAGE):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(_PACKAGE):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename != code.co_filename:
            files = [
                file.removeprefix(_PACKAGE)
                for file in (caller.f_code.co_filename, code.co_filename)
            ]
            walk.stops[files[0], caller.f_lineno, files[1]] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield walks
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walks_of_a_refresh(lane: str) -> tuple[dict[str, Walk], dict[str, str]]:
    """Return the walks of one refresh, and the strategies that it took, by model."""
    with TemporaryDirectory() as folder:
        settings = Settings(warehouse=Path(folder, "catalog"), master="local[2]", memory="1g")
        spark = open_session(settings)
        run = Mini(spark, Path(folder, "run"), flags={"lane": lane, "threads": 1})
        run.replace((PROJECT / "models" / "_sources.yml").read_text(), **_MODELS)
        run.deliver("sales", *(sale(f"s{n}", "ab"[n % 2], minutes=-n) for n in range(1, 40)))
        run.deliver("visits", *(visit("ab"[n % 2], -n) for n in range(1, 40)))
        run.build()
        run.deliver("sales", sale("s1", "a", "7.00", minutes=-1, updated=1, op="u"), sale("s40"))
        run.deliver("visits", visit("a", -1))
        with profiled() as walks:
            run.refresh()
        taken = strategies(run.newest)
        assert run.differing() == []
        spark.stop()
    return walks, taken


def main() -> None:
    """Print the walk of each model, over the whole package and over refresh and plan alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lane", choices=("small", "large"), default="small")
    parser.add_argument("--list", action="store_true", help="name the files and their stops")
    options = parser.parse_args()
    walks, taken = walks_of_a_refresh(options.lane)
    print(f"lane {options.lane}{'':<16}  all of livemart         refresh and plan")
    print(f"{'model':<12} {'strategy':<10} " + " stops files returns  " * 2)
    total = Counter[int]()
    for name, walk in sorted(walks.items()):
        numbers = (*walk.row(), *walk.row(_ROOMS))
        total.update(dict(enumerate(numbers)))
        print(f"{name:<12} {taken[name]:<10} {_row(numbers)}")
        if options.list:
            for file, count in Counter(callee for _, _, callee in walk.stops).most_common():
                print(f"{'':<12} {count:>4} {file}")
    print(f"{'together':<23} {_row([total[place] for place in range(6)])}")


def _row(numbers: Sequence[int]) -> str:
    stops, files, returns, *rest = (f"{number:>6}" for number in numbers)
    return f"{stops}{files}{returns:>8}   " + (_row(list(map(int, rest))) if rest else "")


if __name__ == "__main__":
    main()
