"""How the page of a model looks is checked when the project is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from livemart.project.declared.model_page import PageSpec, parse_page
from livemart.project.yaml_places import Where, node_lines

ROOT = Path(__file__).resolve().parents[4]
COLUMNS = ["shop_id", "Day", "sales", "currency_code", "share"]
WHOLE = {
    "title": "Sales by day",
    "chart": "lines",
    "x": "day",
    "numbers": ["sales", "share"],
    "by": "shop_id",
    "tiles": ["sales"],
    "order": ["day.desc", "shop_id"],
    "formats": {"sales": "money", "share": "percent"},
    "currency": "currency_code",
}


def test_a_page_names_its_parts_by_columns() -> None:
    page, mistakes = parse_page(WHOLE, "m.yml: model sales", COLUMNS)

    assert mistakes == []
    assert page == PageSpec(
        "Sales by day",
        "lines",
        "day",
        ("sales", "share"),
        ("shop_id",),
        ("sales",),
        ("day.desc", "shop_id"),
        {"sales": "money", "share": "percent"},
        "currency_code",
    )
    assert parse_page(None, "m.yml: model sales", COLUMNS) == (PageSpec(), [])


@pytest.mark.parametrize(
    ("meta", "place", "words"),
    [
        ("Sales", "page: ", "'Sales'"),
        ({"titles": "x"}, "page.titles: ", "did you mean title?"),
        ({"title": 5}, "page.title: ", "found 5"),
        ({"title": " "}, "page.title: ", "found ' '"),
        ({"chart": "line"}, "page.chart: ", "did you mean lines?"),
        ({"chart": ["lines"]}, "page.chart: ", "['lines']"),
        ({"x": "curency_code"}, "page.x: ", "did you mean currency_code?"),
        ({"numbers": "sale"}, "page.numbers: ", "did you mean sales?"),
        ({"numbers": []}, "page.numbers: ", "no column"),
        ({"numbers": ["sales", 5]}, "page.numbers: ", "5"),
        ({"numbers": ["sales", "sales"]}, "page.numbers: ", "sales more than once"),
        ({"by": ["shop_id"] * 5}, "page.by: ", "shop_id"),
        ({"tiles": {"sales": 1}}, "page.tiles: ", "{'sales': 1}"),
        ({"order": "day.down"}, "page.order: ", "found column day.down"),
        ({"order": "dai.desc"}, "page.order: ", "found column dai"),
        ({"formats": "money"}, "page.formats: ", "'money'"),
        ({"formats": {"share": "procent"}}, "page.formats.share: ", "did you mean percent?"),
        ({"formats": {"share": 13}}, "page.formats.share: ", "found 13"),
        ({"formats": {"share": True}}, "page.formats.share: ", "found True"),
        ({"formats": {"shere": 2}}, "page.formats.shere: ", "did you mean share?"),
        ({"formats": {"sales": "money"}}, "page.formats.sales: ", "without a currency"),
        ({"currency": "EUR"}, "page.currency: ", "without an amount"),
        (
            {"formats": {"sales": "money"}, "currency": "curency_code"},
            "page.currency: ",
            "did you mean currency_code?",
        ),
    ],
)
def test_a_mistake_is_refused_where_it_is_written(meta: object, place: str, words: str) -> None:
    _, [mistake] = parse_page(meta, "m.yml: model sales", COLUMNS)

    assert mistake.code == "PAGE_INVALID"
    assert mistake.message.startswith(f"m.yml: model sales: meta.livemart.{place}")
    assert words in mistake.message


def test_all_mistakes_are_found_at_once_each_with_its_line() -> None:
    text = (
        "models:\n"
        "  - name: sales\n"
        "    config:\n"
        "      meta:\n"
        "        livemart:\n"
        "          page:\n"
        "            chart: line\n"
        "            formats:\n"
        "              sales: mony\n"
    )
    where = Where("m.yml", "model sales", node_lines(text, ("models", "sales")))
    meta = yaml.safe_load(text)["models"][0]["config"]["meta"]["livemart"]["page"]

    _, mistakes = parse_page(meta, where)

    assert [it.message.partition(": ")[0] for it in mistakes] == ["m.yml:7", "m.yml:9"]


def test_names_of_unknown_columns_wait_until_the_rows_are_known() -> None:
    page, mistakes = parse_page({**WHOLE, "x": "Date", "by": "area", "order": "b.desc"}, "m.yml: m")

    assert mistakes == []
    fitted, unknown = page.fitted(["SHOP_ID", "sales", "Share", "Currency_Code", "b.desc"])
    assert unknown == ("Date", "area")
    assert (fitted.x, fitted.by, fitted.numbers) == ("", (), ("sales", "Share"))
    # A column may end like a direction.
    assert fitted.order == ("b.desc.asc",)
    assert fitted.formats == {"sales": "money", "Share": "percent"}
    assert fitted.currency == "Currency_Code"


def test_three_capital_letters_are_a_currency_unless_they_are_a_column() -> None:
    page = PageSpec(formats={"sales": "money"}, currency="EUR")

    assert page.fitted(["sales"]) == (page, ())
    assert page.fitted(["sales", "eur"])[0].currency == "eur"
    assert (
        parse_page({"formats": {"sales": "money"}, "currency": "EUR"}, "m: m", ["sales"])[1] == []
    )


def pages_of_projects() -> list[Any]:
    """Return the pages of the examples, of the starter and of the reference mart."""
    files = [
        path
        for folder in ("examples", "livemart/starter", "models")
        for path in sorted((ROOT / folder).rglob("*.yml"))
        if "models" in path.parts
    ]
    return [
        pytest.param(path, model, page, id=model["name"])
        for path in files
        for model in yaml.safe_load(path.read_text(encoding="utf-8")).get("models", ())
        if (meta := model.get("config", {}).get("meta"))
        and (page := meta.get("livemart", {}).get("page"))
    ]


@pytest.mark.parametrize(("path", "model", "meta"), pages_of_projects())
def test_the_pages_of_the_examples_are_right(
    path: Path, model: Mapping[str, Any], meta: object
) -> None:
    sql = next(path.parent.rglob(f"{model['name']}.sql")).read_text(encoding="utf-8")
    declared = [column["name"] for column in model["columns"]]

    page, mistakes = parse_page(meta, f"{path}: {model['name']}")

    assert mistakes == []
    assert [it for _, it in page.named() if it not in sql and it not in declared] == []
