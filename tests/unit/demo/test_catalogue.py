"""Names of the demo stay names, however long it runs."""

from __future__ import annotations

import random
from zoneinfo import ZoneInfo

from demo.catalogue import open_restaurants


def test_a_restaurant_that_is_renamed_again_and_again_has_one_of_two_names() -> None:
    (restaurant,) = open_restaurants(random.Random(1), restaurants=1, dishes=1)
    names = [restaurant.name]

    for _ in range(4):
        restaurant = restaurant.renamed()
        names.append(restaurant.name)

    assert names == [names[0], names[1]] * 2 + [names[0]]
    assert names[1].count("Friends") == 1


def test_a_restaurant_moves_to_a_city_of_its_zone_and_back() -> None:
    for restaurant in open_restaurants(random.Random(1), restaurants=8, dishes=1):
        moved = restaurant.renamed().moved()

        assert moved.name.split()[-1] != restaurant.name.split()[-1]
        assert moved.currency == restaurant.currency
        assert moved.moved().renamed() == restaurant


def test_tokyo_is_never_in_madrid() -> None:
    restaurants = open_restaurants(random.Random(1), restaurants=8, dishes=1)
    (tokyo,) = (it for it in restaurants if it.name.endswith(" Tokyo"))

    moved = tokyo.moved()

    assert (moved.name.split()[-1], moved.time_zone) == ("Osaka", ZoneInfo("Asia/Tokyo"))
