"""A place has one name for each engine that opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.storage.location import Location


@pytest.mark.parametrize("place", ["/data/ware house%20#?", Path("/data/ware house%20#?")])
def test_a_path_is_called_what_it_is(place: Path | str) -> None:
    location = Location.parse(place) / "mart"

    assert location.url == location.spark_url == "/data/ware house%20#?/mart"
    assert (location.scheme, location.bucket) == ("", "")


def test_a_bucket_is_no_folder_of_this_machine() -> None:
    assert Location.parse("mart").on_disk == Path("mart")
    with pytest.raises(ValueError, match="s3://my-mart/eu is on no disk"):
        _ = Location.parse("s3://my-mart/eu").on_disk


@pytest.mark.parametrize("url", ["s3://my-mart", "s3://my-mart/"])
def test_a_bucket_may_have_no_prefix(url: str) -> None:
    location = Location.parse(url)

    assert (location.url, location.bucket, location.path) == ("s3://my-mart", "my-mart", "")
    assert (location / "eu" / "orders").path == "eu/orders"
    assert location / "eu" == Location.parse("s3://my-mart/eu/")


@pytest.mark.parametrize("place", ["/data/mart", "mart", "s3://my-mart", "s3://my-mart/eu"])
def test_a_place_below_another_has_its_name_and_parent(place: str) -> None:
    location = Location.parse(place)

    assert ((location / "a b").name, (location / "a b").parent) == ("a b", location)
    assert str(location / "a b") == f"{place}/a b"


@pytest.mark.parametrize(
    "url",
    [
        *("s3://user:secret@mart/a", "s3://mart/a?sig=secret", "s3://mart//a", "s3:///a"),
        *("s3://mart/../secret", "s3://mart/secret/."),
    ],
)
def test_a_url_that_names_no_bucket_is_refused_without_its_secret(url: str) -> None:
    with pytest.raises(ValueError, match="write s3://bucket/folder") as caught:
        Location.parse(url)

    assert "secret" not in str(caught.value)
