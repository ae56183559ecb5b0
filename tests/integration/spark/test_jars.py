"""Spark's resolver says in a sentence that it cannot reach a jar."""

from __future__ import annotations

from pathlib import Path

import pytest

from livemart.errors import ConfigError
from livemart.spark import jars as jars_module
from livemart.spark.jars import Jar, resolve_jars

NOWHERE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers>
    <filesystem name="nowhere"><artifact pattern="{folder}/[artifact].[ext]"/></filesystem>
  </resolvers>
</ivysettings>
"""


def test_a_jar_that_cannot_be_reached_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(NOWHERE.format(folder=tmp_path / "empty"))
    monkeypatch.setenv("LIVEMART_IVY_SETTINGS", str(settings))
    monkeypatch.setenv("LIVEMART_JARS", str(tmp_path / "jars"))
    jar = Jar("io.delta", "delta-nowhere", "4.4.0", "0" * 64)
    monkeypatch.setattr(jars_module, "DELTA_JARS", (jar,))

    with pytest.raises(ConfigError) as caught:
        resolve_jars()

    assert caught.value.code == "JARS_UNREACHABLE"
    assert "io.delta:delta-nowhere:4.4.0" in caught.value.message
    assert list((tmp_path / "jars").iterdir()) == []
