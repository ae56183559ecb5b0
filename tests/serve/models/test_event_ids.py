"""Only its receiver can use a change's id, which hides how much others changed."""

from __future__ import annotations

from itertools import product

import pytest

from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.http.problems import ProblemError
from livemart.serve.models.event_ids import EventIds
from livemart.store.positions import Position

SEAL = Seal(SigningKey("k" * 32))
SCOPES = [None, frozenset[str](), frozenset({"r1"}), frozenset({"r2"}), frozenset({"r1", "r2"})]


def test_an_id_is_good_for_its_model_and_its_tenants_alone() -> None:
    position = Position(7, "5d01c3aa", 8, 1_000)
    readers = [EventIds(SEAL, model, tenants) for model in ("a", "b") for tenants in SCOPES]

    for writer, reader in product(readers, readers):
        text = writer.write(position)
        if reader == writer:
            assert reader.read(text) == position
        else:
            with pytest.raises(ProblemError) as caught:
                reader.read(text)
            assert (caught.value.code, caught.value.status) == ("POSITION_REFUSED", 400)


def test_ids_are_as_long_for_the_first_change_as_for_the_millionth() -> None:
    ids = EventIds(SEAL, "a", None)

    assert {len(ids.write(Position(7, "5d01c3aa", 8, at))) for at in (-1, 0, 1_000_000)} == {54}


@pytest.mark.parametrize("text", ["", "1", "00", "x", "5d01c3aa-7", "5d01c3aa-7.8.0", "A" * 54])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ProblemError) as caught:
        EventIds(SEAL, "a", None).read(text)

    assert caught.value.code == "POSITION_REFUSED"


def test_zero_is_before_all_rows() -> None:
    assert EventIds(SEAL, "a", None).read("0") == Position(0, "")
