"""Makes up restaurants in several time zones and currencies, and their dishes.

Used by the market. Names and prices follow from the random numbers given.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from zoneinfo import ZoneInfo

# City, IANA time zone, currency, and what a currency unit buys there compared with a euro. Each has
# one beside it with its currency, in another zone where there is one: there its restaurants move.
_CITIES = (
    ("Berlin", "Europe/Berlin", "EUR", Decimal(1)),
    ("London", "Europe/London", "GBP", Decimal("0.9")),
    ("New York", "America/New_York", "USD", Decimal("1.2")),
    ("Tokyo", "Asia/Tokyo", "JPY", Decimal(150)),
    ("São Paulo", "America/Sao_Paulo", "BRL", Decimal(5)),
    ("Mumbai", "Asia/Kolkata", "INR", Decimal(60)),
    ("Sydney", "Australia/Sydney", "AUD", Decimal("1.5")),
    ("Lisbon", "Europe/Lisbon", "EUR", Decimal("0.8")),
)
_OWNERS = ("Joe", "Aisha", "Mei", "Luca", "O'Hara", "Priya", "Noor", "Ana", "Kofi", "Ines")
_KITCHENS = ("Grill", "Noodle Bar", "Pizzeria", "Curry House", "Taqueria", "Bakery", "Diner")
_DISHES = (
    "Burger", "Margherita", "Pad Thai", "Ramen", "Falafel Wrap", "Chicken Curry", "Tacos al Pastor",
    "Caesar Salad", "Fish & Chips", "Lasagne", "Bibimbap", "Shakshuka", "Gyoza", "Moussaka", "Poke",
    "Pierogi", "Jollof Rice", "Tiramisu", "Mango Lassi", "Lemonade",
)  # fmt: skip
_MOVES = {
    ("Berlin", "Helsinki"): "Europe/Helsinki",
    ("London", "Gibraltar"): "Europe/Gibraltar",
    ("New York", "Chicago"): "America/Chicago",
    ("Tokyo", "Osaka"): "Asia/Tokyo",
    ("São Paulo", "Manaus"): "America/Manaus",
    ("Mumbai", "Delhi"): "Asia/Kolkata",
    ("Sydney", "Perth"): "Australia/Perth",
    ("Lisbon", "Madrid"): "Europe/Madrid",
}
_FRIENDS = "& Friends' "
_STYLES = ("House", "Grandma's", "Classic", "Large", "Famous")


@dataclass(frozen=True, slots=True)
class Dish:
    """A dish of one restaurant; `price` in the restaurant's currency."""

    dish_id: str
    restaurant_id: str
    name: str
    price: Decimal


@dataclass(frozen=True, slots=True)
class Restaurant:
    """A restaurant as it is now; `weight` is its share of all orders, by a Zipf law."""

    restaurant_id: str
    name: str
    time_zone: ZoneInfo
    currency: str
    weight: float
    dishes: tuple[Dish, ...]
    dish_weights: tuple[float, ...]

    def renamed(self) -> Restaurant:
        """Return the restaurant with friends as owners, or without them again."""
        owner, _, place = self.name.partition(" ")
        if place.startswith(_FRIENDS):
            name = f"{owner} {place.removeprefix(_FRIENDS)}"
        else:
            name = f"{owner} {_FRIENDS}{place}"
        return self._changed(name)

    def moved(self) -> Restaurant:
        """Return the restaurant in another city with its currency, or back in its first one."""
        for (here, there), zone in _MOVES.items():
            if self.name.endswith(f" {here}"):
                return self._changed(f"{self.name.removesuffix(here)}{there}", ZoneInfo(zone))
            if self.name.endswith(f" {there}"):
                first = next(it for city, it, *_ in _CITIES if city == here)
                return self._changed(f"{self.name.removesuffix(there)}{here}", ZoneInfo(first))
        raise AssertionError(f"{self.name} is in no city")

    def _changed(self, name: str, time_zone: ZoneInfo | None = None) -> Restaurant:
        return Restaurant(
            self.restaurant_id,
            name,
            time_zone or self.time_zone,
            self.currency,
            self.weight,
            self.dishes,
            self.dish_weights,
        )


def zipf(size: int, exponent: float = 1.0) -> tuple[float, ...]:
    """Return the weights 1, 1/2, 1/3, ... scaled to a sum of 1.

    >>> [round(weight, 3) for weight in zipf(3)]
    [0.545, 0.273, 0.182]
    """
    weights = [(rank + 1) ** -exponent for rank in range(size)]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def open_restaurants(rng: random.Random, *, restaurants: int, dishes: int) -> Sequence[Restaurant]:
    """Return the restaurants of a market, most popular first.

    Args:
        rng: decides names and prices.
        restaurants: how many; at least one.
        dishes: how many each of them cooks; at least one.
    """
    weights = zipf(restaurants)
    opened = []
    for number in range(restaurants):
        restaurant_id = f"r{number + 1:04d}"
        city, zone, currency, level = _CITIES[number % len(_CITIES)]
        name = f"{rng.choice(_OWNERS)}'s {rng.choice(_KITCHENS)} {city}"
        menu = tuple(
            Dish(
                f"{restaurant_id}-d{position + 1:02d}",
                restaurant_id,
                _dish_name(position),
                _price(rng, currency, level),
            )
            for position in range(dishes)
        )
        # Favourites differ from restaurant to restaurant.
        dish_weights = list(zipf(dishes, 0.9))
        rng.shuffle(dish_weights)
        opened.append(
            Restaurant(
                restaurant_id,
                name,
                ZoneInfo(zone),
                currency,
                weights[number],
                menu,
                tuple(dish_weights),
            )
        )
    return opened


def renamed_dish(name: str, step: int) -> str:
    """Return the name that a dish of this first name gets at a step.

    >>> renamed_dish("Lasagne", 3), renamed_dish("Lasagne", 6)
    ('Large Lasagne', "Grandma's Lasagne")
    """
    return f"{_STYLES[step % len(_STYLES)]} {name}"


def _dish_name(position: int) -> str:
    name = _DISHES[position % len(_DISHES)]
    return name if position < len(_DISHES) else f"{name} No. {position // len(_DISHES) + 1}"


def _price(rng: random.Random, currency: str, level: Decimal) -> Decimal:
    cents = Decimal(rng.randrange(300, 2_400, 10)) / 100
    step = Decimal(1) if currency == "JPY" else Decimal("0.01")
    return (cents * level).quantize(step)
