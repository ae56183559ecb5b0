"""Holds what dbt's words select of a project's nodes.

Used by commands with `--select`, `--exclude` or `--selector`, which `Dbt.selection` looks up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from livemart.settings import Settings


@dataclass(frozen=True, slots=True)
class Selection:
    """Words of dbt's, or the name of a selector in `selectors.yml`; all nodes if there are none."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    selector: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Selection:
        return cls(settings.select, settings.exclude, settings.selector)

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude or self.selector)

    def __str__(self) -> str:
        return " ".join(self.arguments)

    @property
    def arguments(self) -> list[str]:
        """The flags that say the same to a command.

        >>> Selection(("+orders", "tag:new"), ("customers",)).arguments
        ['--select', '+orders', 'tag:new', '--exclude', 'customers']
        """
        given = {
            "--select": self.select,
            "--exclude": self.exclude,
            "--selector": (self.selector,) if self.selector else (),
        }
        return [word for flag, words in given.items() if words for word in (flag, *words)]
