"""The page of dead letters: for admins, as text whatever the records hold, with its commands."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from httpx2 import Response

from livemart.cli.commands import cli
from livemart.land.letters.redriven import mark
from livemart.serve.page import page as page_module
from tests.serve.apps import Site, site
from tests.serve.letters.stored_letters import HOSTILE, NOON, letter, store_letters
from tests.store.stores import fill_store

QUOTED = "bronze.it's $(touch here) \"&<b>"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("letters page")
    letters = [letter(number) for number in range(3)] + [
        letter(3, source=QUOTED, origin=HOSTILE, detail=HOSTILE, record=HOSTILE),
        letter(4, record="x" * 8_192, record_bytes=20_000),
        letter(5, record="\n".join(map(str, range(20)))),
        letter(6, reason="EVENT_TIME_MOVED", record=None, record_bytes=None),
    ]
    warehouse = store_letters(folder / "warehouse", letters)
    mark(warehouse, "bronze._dead_letters", letters[:1], "orders/redrive-1.jsonl", NOON)
    with site(folder, page=True) as one:
        yield one


def ask(one: Site, query: str = "") -> Response:
    return one.client.get(f"/dead-letters?{query}", headers={"Accept": "text/html"})


def commands(answer: Response) -> list[list[str]]:
    """Return the commands that a page shows, as a shell reads them."""
    blocks = re.findall(r"<pre><code>(.*?)</code></pre>", answer.text, re.DOTALL)
    return [shlex.split(html.unescape(re.sub(r"<[^>]*>", "", block))) for block in blocks]


def test_the_page_is_complete_and_kept_by_nobody(one: Site) -> None:
    answer = ask(one)

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.count("<li ") == 6
    assert "a value does not fit its column&#39;s type" in answer.text
    assert "<code>event_time_is_fixed</code>" in answer.text
    assert "20,000 bytes, of which the beginning is kept" in answer.text
    assert "it has no record" in answer.text
    assert "<script" not in answer.text


def test_text_of_a_record_stays_text_that_is_seen(one: Site) -> None:
    text = ask(one).text

    shown = r"&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;\x1b[2J\u202e\x00&amp;amp;"
    # As origin, detail and record.
    assert text.count(shown) == 3
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)


def test_a_long_record_is_unfolded(one: Site) -> None:
    text = ask(one).text

    assert text.count("<details") == 2
    assert f"<bdi>{'x' * 600}</bdi>" in text and f"<bdi>{'x' * 8_192}</bdi>" in text
    assert "<bdi>0\n1\n2\n3\n4\n5\n6\n7</bdi>" in text


def test_letters_that_were_redriven_are_shown_to_who_asks(one: Site) -> None:
    assert "orders/redrive-1.jsonl" not in ask(one).text
    shown = ask(one, "redriven=true").text

    assert shown.count('<span class="mark">re-driven</span>') == 1
    assert "orders/redrive-1.jsonl" in shown


@pytest.mark.parametrize(
    ("query", "letters"),
    [
        ("source=&reason=&from=&to=&redriven=", 6),
        ("source=bronze.orders&reason=EVENT_TIME_MOVED", 1),
        ("from=2026-03-01T12:01&to=2026-03-01T12:03:00", 2),
        ("source=bronze.nothing", 0),
        ("from=2027-01-01T00:00", 0),
    ],
)
def test_the_form_chooses_letters_and_stays_filled_in(one: Site, query: str, letters: int) -> None:
    text = ask(one, query).text

    assert text.count("<li ") == letters
    for name, value in re.findall(r"(\w+)=([^&]+)", query):
        field = rf'name="{name}"[^>]* value="{value}"|<option selected>{value}</option>'
        assert re.search(field, text), name


def test_counts_lead_to_their_letters(one: Site) -> None:
    addresses = [
        html.unescape(it) for it in re.findall(r'href="(/dead-letters\?[^"]*)"', ask(one).text)
    ]

    answers = [one.client.get(address) for address in addresses]

    assert len(addresses) == 3
    assert sorted(answer.text.count("<li ") for answer in answers) == [1, 1, 4]
    assert all('aria-current="true"' in answer.text for answer in answers)


def test_pages_lead_from_the_newest_to_the_oldest(
    one: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "_MOST_LETTERS", 2)
    answer, origins = ask(one, "source=bronze.orders"), []
    while True:
        origins += re.findall(r"<code>orders/1.jsonl:(\d)</code>", answer.text)
        older = re.search(r'href="([^"]*)" rel="next"', answer.text)
        if older is None:
            break
        answer = one.client.get(html.unescape(older[1]))

    assert origins == ["6", "5", "4", "2", "1"]
    assert 'href="/dead-letters?source=bronze.orders">Newest letters' in answer.text


def test_the_commands_are_those_of_the_command_line_for_these_very_letters(one: Site) -> None:
    redrive, export, of_file = commands(
        ask(one, "source=bronze.orders&reason=TYPE_MISMATCH&from=2026-03-01T12:00:30")
    )

    chosen = ["--source", "bronze.orders", "--reason", "TYPE_MISMATCH"]
    chosen += ["--since", "2026-03-01T12:00:30"]
    assert redrive[3:9] == chosen
    assert export[3:9] == chosen
    assert export[-2:] == [">", "letters.jsonl"]
    group = cli.commands["dead-letters"]
    for words in (redrive, export[:-2], of_file):
        assert words[:2] == ["livemart", "dead-letters"]
        command = group.get_command(None, words[2])  # type: ignore[attr-defined]
        # It takes each flag, and reads each value as its own.
        asked = command.make_context(words[2], [it for it in words[3:] if it != "letters.jsonl"])
        assert Path(asked.params["warehouse"]).is_dir()


def test_a_command_runs_nothing_but_itself(one: Site) -> None:
    redrive, export, _ = commands(ask(one, f"source={quote(QUOTED)}"))

    assert redrive[3:5] == export[3:5] == ["--source", QUOTED]
    # Without landed records there is nothing to hand over.
    assert commands(ask(one, f"source={quote(HOSTILE)}")) == []


@pytest.mark.parametrize("query", ["reason=WRONG", "from=soon", "to=2026-13-01T00:00", "after=x"])
def test_a_wrong_question_is_told(one: Site, query: str) -> None:
    answer = ask(one, query)

    assert (answer.status_code, "PARAMETER_WRONG" in answer.text) == (422, True)


def test_the_list_of_models_leads_admins_there(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        fill_store(one.url, {"days": pa.table({"day": [1]})}, {"days": ("day",)})
        one.until(lambda: one.shows(1))
        admin, owner = one.bearer(), one.bearer("r1")

        leads = [
            'href="/dead-letters"' in one.client.get("/models", headers=it).text
            for it in (admin, owner)
        ]

    assert leads == [True, False]
