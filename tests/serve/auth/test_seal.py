"""Only the server opens its seals, for their purpose, and in one spelling."""

from __future__ import annotations

import string

import pytest

from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey

SEAL = Seal(SigningKey("a key of thirty-two characters...."))
LETTERS = string.ascii_letters + string.digits + "-_"


@pytest.mark.parametrize("size", [0, 1, 2, 3, 24, 1_000])
def test_what_is_sealed_is_opened_for_its_purpose_alone(size: int) -> None:
    plain = bytes(number % 251 for number in range(size))
    sealed = SEAL.close(plain, "changes", "a", ["r1", "\udcff"])

    assert SEAL.open(sealed, "changes", "a", ["r1", "\udcff"]) == plain
    for purpose in (("changes", "a", ["r1"]), ("changes", "a", None), ("rows", "a", ["r1"]), ()):
        assert SEAL.open(sealed, *purpose) is None
    assert set(sealed) <= set(LETTERS)


def test_no_letter_may_be_another_one() -> None:
    """Base64 of 40 bytes has four bits to spare: most readers pass them over."""
    sealed = SEAL.close(bytes(24), "changes")

    for place, letter in enumerate(sealed):
        for other in LETTERS:
            if other != letter:
                assert SEAL.open(sealed[:place] + other + sealed[place + 1 :], "changes") is None


@pytest.mark.parametrize("text", ["", "A", "AAAA", "A" * 54, "é" * 54, "A=" * 27, " ", "0", "\n"])
def test_what_is_not_sealed_is_nothing(text: str) -> None:
    assert SEAL.open(text, "changes") is None


def test_another_server_with_the_key_opens_it_and_one_with_another_key_does_not() -> None:
    sealed = SEAL.close(b"plain", "changes")

    assert Seal(SigningKey("a key of thirty-two characters....")).open(sealed, "changes")
    assert Seal(SigningKey("another key, as long as the first")).open(sealed, "changes") is None


def test_equal_texts_are_sealed_equally_and_others_have_nothing_in_common() -> None:
    first, second = (SEAL.close(bytes(23) + bytes([last]), "changes") for last in (0, 1))

    assert first == SEAL.close(bytes(24), "changes")
    assert sum(one == other for one, other in zip(first, second, strict=True)) < 12
