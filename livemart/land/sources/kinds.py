"""Opens the record log of a source by its kind, as installed packages offer kinds.

Used by landing before anything runs. A package offers a kind by an entry point of the group
`livemart.sources`: a class or function that takes the source's `options` by name.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from livemart.errors import ConfigError, ConfigErrors
from livemart.land.sources.log_deliveries import LogDeliveries
from livemart.land.sources.record_log import RecordLog
from livemart.project.graph import AfterLoss, SourceTable
from livemart.project.record_logs.options import plain_option
from livemart.project.sources import FILES_KIND, SOURCE_KINDS_GROUP


def open_logs(sources: Iterable[SourceTable]) -> dict[str, LogDeliveries]:
    """Return the record log of each source that reads one, by relation; equal ones are shared.

    Raises:
        ConfigError: SOURCE_KIND_BROKEN, EXTRA_MISSING; all mistakes at once.
    """
    logs: dict[tuple[object, ...], LogDeliveries] = {}
    by_relation: dict[str, LogDeliveries] = {}
    mistakes: list[ConfigError] = []
    for source in sources:
        arrival = source.arrival
        if arrival.kind == FILES_KIND:
            continue
        key = arrival.kind, arrival.options, arrival.after_loss
        try:
            if key not in logs:
                options = {name: plain_option(value) for name, value in arrival.options}
                logs[key] = open_log(arrival.kind, options, arrival.after_loss)
            by_relation[source.relation] = logs[key]
        except ConfigError as error:
            mistakes.append(error)
        # It is code of others.
        except Exception as error:
            mistakes.append(
                ConfigError(
                    "SOURCE_KIND_BROKEN",
                    f"{source.file}: {source.relation}: kind {arrival.kind}: "
                    f"{type(error).__name__}: {error}",
                    hint="correct `options` of the source, or the package that offers the kind",
                )
            )
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise ConfigErrors(mistakes)
    return by_relation


def open_log(
    kind: str, options: Mapping[str, Any], after_loss: AfterLoss = "stop"
) -> LogDeliveries:
    """Return the record log of a kind, opened with the options as YAML holds them.

    Raises:
        ConfigError: EXTRA_MISSING.
    """
    (entry,) = entry_points(group=SOURCE_KINDS_GROUP, name=kind)
    log: RecordLog = entry.load()(**options)
    pickle.dumps(log)
    return LogDeliveries(kind, log, after_loss)
