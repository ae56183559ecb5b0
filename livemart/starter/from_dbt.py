"""Lists the needs of an existing dbt-spark project for livemart.

Used by the command `init --from-dbt`. It changes no file that is there, and makes one at most,
`profiles/profiles.yml`, where no profile of the project's own is in its way; all else is said.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from livemart.errors import ConfigError, ConfigErrors
from livemart.inspect.plan_report import describe_plans, render_plans
from livemart.plan.project_plans import ProjectPlans
from livemart.project.dbt import Dbt
from livemart.project.graph import Project, SourceTable
from livemart.project.profiles import find_profiles, no_project, profiles_folder
from livemart.project.session_spec import is_without_meaning
from livemart.publish.exposures import exposure_to_paste
from livemart.run.target_folder import target_folder
from livemart.settings import Settings
from livemart.storage.scratch import temporary_folder

_TARGET = "livemart"
_TYPES_OF_TIME = ("timestamp", "timestamp_ntz", "date")
_NOTES = {
    "incremental": "kept fresh from the full SQL: the code in is_incremental() is not used",
    "snapshot": "made by dbt in `livemart build`, and when they are new or edited",
    "other": "custom materialization: made by dbt, once built in a refresh as well",
}


@dataclass(frozen=True, slots=True)
class ProfileAdvice:
    """The next step for the profile."""

    file: Path
    target: str | None = None
    """The target to name to every command; None if it is the profile's own."""
    written: bool = False
    """True if the file was made."""
    paste: str | None = None
    """The lines to put into `file`; None if it needs none."""
    replaces: bool = False
    """True if they are for the place of an entry that is no profile."""
    unwritable: str | None = None
    """Why the file could not be made; None if it exists."""


def adapt_project(settings: Settings, say: Callable[[str], None]) -> None:
    """Report the findings, part by part, with the next steps.

    Raises:
        ConfigError: DBT_PROJECT_NOT_FOUND; YAML_INVALID; whatever keeps dbt from reading the
            project, after the profile was seen to.
    """
    project_dir, target = settings.project_dir.resolve(), settings.target
    name, profile = _names(project_dir)
    advice = ensure_profile(project_dir, settings.profiles_dir, profile, target, settings.vars)
    say(f"project {name} in {project_dir}")
    say(_describe_profile(advice, profile, project_dir))
    failure: ConfigError | None = None
    with _profile_to_read(advice, profile) as folder:
        dbt = Dbt(
            project_dir,
            folder,
            target=advice.target,
            vars=settings.vars,
            target_dir=target_folder(settings),
        )
        try:
            project = dbt.load()
        except ConfigError as error:
            failure, (project, _) = error, dbt.parse()
    asking, mistakes = _asking_and_mistakes(failure)
    say(describe_sources(project))
    say(describe_models(project))
    if failure is None:
        plans = ProjectPlans(project)
        report = render_plans(describe_plans(project, plans.models, plans.stored))
        say(f"strategies (`livemart plan` says more)\n{report}")
    if asking:
        say("strategies: models ask Spark while dbt compiles them; `livemart plan` starts one")
    if mistakes:
        raise ConfigErrors(mistakes)
    words = ["livemart", "build", "--project-dir", str(project_dir)]
    if settings.profiles_dir is not None:
        words += ["--profiles-dir", str(settings.profiles_dir)]
    if advice.target:
        words += ["--target", advice.target]
    if settings.vars:
        words += ["--vars", json.dumps(settings.vars)]
    say(f"next: {shlex.join(words)}")


def _asking_and_mistakes(
    failure: ConfigError | None,
) -> tuple[list[ConfigError], list[ConfigError]]:
    """Return the errors of models that only lack a Spark to ask, and all others."""
    asking: list[ConfigError] = []
    mistakes: list[ConfigError] = []
    for error in getattr(failure, "errors", (failure,)) if failure else ():
        (asking if error.code == "DBT_NEEDS_SPARK" else mistakes).append(error)
    return asking, mistakes


def ensure_profile(
    project_dir: Path,
    profiles_dir: Path | None,
    profile: str,
    target: str | None = None,
    variables: Mapping[str, object] | None = None,
) -> ProfileAdvice:
    """Find a target with method session, or write or word one.

    No existing profile is ever changed. If it is outside the project (`~/.dbt`), the file
    `profiles/profiles.yml` is made, which livemart reads before it and plain dbt does not.
    """
    to_write = project_dir / "profiles" / "profiles.yml"
    try:
        folder = find_profiles(project_dir, profiles_dir)
        file = profiles_folder(project_dir, profiles_dir) / "profiles.yml"
    except ConfigError as error:
        if error.code != "PROFILES_NOT_FOUND" or profiles_dir is not None:
            raise
        return _write_profile(to_write, profile, _session_output(None))
    # The profile as dbt reads it, environment and all.
    with suppress(ConfigError):
        Dbt(project_dir, profiles_dir, target=target, vars=variables).check_profile()
        return ProfileAdvice(file, target)
    entries = _read(file)
    entry = entries.get(profile)
    outputs = entry.get("outputs") if isinstance(entry, Mapping) else None
    outputs = outputs if isinstance(outputs, Mapping) else {}
    chosen = target or (str(entry.get("target", "default")) if isinstance(entry, Mapping) else "")
    other = next((str(name) for name, output in outputs.items() if _is_session(output)), None)
    if other is not None:
        return ProfileAdvice(file, other)
    output = _session_output(outputs.get(chosen))
    # A name that dbt has to render first is none to write down.
    if folder is None and "{" not in profile:
        return _write_profile(to_write, profile, output)
    if outputs:
        return ProfileAdvice(file, _TARGET, paste=_output_lines(output))
    return ProfileAdvice(file, paste=_profile_text(profile, output), replaces=profile in entries)


def describe_sources(project: Project) -> str:
    """Return the sources, and for each that livemart does not land the lines to fill in."""
    sources = [source for source in project.sources.values() if not source.is_provided]
    landed = [source for source in sources if source.stream is not None]
    lines = [f"sources: {len(sources)}, of which livemart lands {len(landed)}"]
    lines += [
        f"  {it.source_name}.{it.name}: {it.arrival.path or it.arrival.kind}" for it in landed
    ]
    for source in sources:
        if source.stream is not None:
            continue
        if source.disabled_seed is not None:
            lines.append(
                f"  {source.source_name}.{source.name} ({source.file}) is a table that a disabled "
                f"seed would fill, {source.disabled_seed}: enable the seed, often by a variable "
                "that its `enabled` reads, or let livemart land the source"
            )
            continue
        if (seed := project.seed_of_another_schema(source)) is not None:
            lines.append(
                f"  {source.source_name}.{source.name} ({source.file}) is {source.relation}, and "
                f"the seed {seed.file} is {seed.relation}. It fills the source if both are in one "
                "schema: set that of the profile, or `+schema` of the seed"
            )
            continue
        package = source.unique_id.split(".")[1]
        if package == project.name:
            place, do, suggested = source.file, "fill in", suggested_meta(source, project)
        else:
            place = f"{source.file} of package {package}"
            do = "write a YAML file below models, as those of a package are not yours to change"
            suggested = suggested_override(source, project, package)
        lines += [
            f"  {source.source_name}.{source.name} ({place}) is read where it is, "
            f"WAREHOUSE/{source.relation.replace('.', '/')}. To let livemart land it, {do}:",
            *(f"      {line}" for line in suggested),
        ]
    return "\n".join(lines)


def suggested_meta(source: SourceTable, project: Project) -> list[str]:
    """Return lines for the source's YAML; a comment marks each guess to confirm."""
    names = [column.name for column in source.columns]
    times = [c.name for c in source.columns if (c.data_type or "").lower() in _TYPES_OF_TIME]
    keys = _tested_keys(source, project)
    event_time = source.event_time or next(iter(times), None)
    lines = ["config:"]
    if event_time is not None:
        check = "" if source.event_time else "   # when it happened: check"
        lines.append(f"  event_time: {event_time}{check}")
    lines += [
        "  meta:",
        "    livemart:",
        "      format: json   # or csv",
        f"      path: {source.name}/*.jsonl   # below the landing folder",
    ]
    if keys:
        newer = times[-1] if times else "updated_at"
        lines += [
            f"      keys: [{', '.join(keys)}]",
            f"      sequence_by: [{newer}]   # which of two versions is newer: check",
        ]
    else:
        lines.append(
            "      # keys and sequence_by, if records are corrected; else each line is a row"
        )
    untyped = [column.name for column in source.columns if column.data_type is None]
    if not names:
        lines.append("columns: []   # - {name: ..., data_type: ...} for each column")
    elif untyped:
        lines.append(f"# columns that need a data_type, too: {', '.join(untyped)}")
    return lines


def suggested_override(source: SourceTable, project: Project, package: str) -> list[str]:
    """Return a YAML file that lands a source of an installed package.

    dbt takes no `config` of a table there, so `meta` is at the table, and no event time is said.
    """
    lines = suggested_meta(source, project)
    meta = lines.index("  meta:")
    return [
        "sources:",
        f"  - name: {source.source_name}",
        f"    overrides: {package}",
        "    tables:",
        f"      - name: {source.name}",
        *(f"      {line}" for line in lines[meta:] if line.startswith("  ")),
        *(f"        {line}" for line in lines[meta:] if not line.startswith("  ")),
    ]


def describe_models(project: Project) -> str:
    """Return the number of nodes of each kind, and how livemart treats the odd ones."""
    names: dict[str, list[str]] = defaultdict(list)
    for model in project.models.values():
        names[model.materialized].append(model.name)
    counted = ", ".join(f"{len(names[kind])} {kind}" for kind in sorted(names))
    lines = [
        f"models: {counted or 'none'}; {len(project.tests)} tests, "
        f"{len(project.exposures)} exposures"
    ]
    for kind, note in _NOTES.items():
        if kind in names:
            lines.append(f"  {kind}: {', '.join(names[kind])}: {note}")
    if not project.exposures:
        tables = _last_tables(project)
        kind = "models that are to be read"
        if not any(key.startswith("model.") for key in tables):
            kind = "model to be read, materialized as a table: a view is not served"
        lines += [
            "  no exposure: nothing is served until one names the models to serve; paste this into "
            f"a YAML file, with the {kind}:",
            indent(exposure_to_paste(tables), "    "),
        ]
    return "\n".join(lines)


def _last_tables(project: Project) -> list[str]:
    """Return the stored models that no other model reads, in the order of the project."""
    is_read = {node for model in project.models.values() for node in model.depends_on}
    return [
        unique_id
        for unique_id, model in project.models.items()
        if model.is_stored and unique_id not in is_read
    ]


def _describe_profile(advice: ProfileAdvice, profile: str, project_dir: Path) -> str:
    if advice.written:
        return f"profile {profile}: wrote {advice.file}, method session"
    if advice.unwritable is not None:
        return (
            f"profile {profile}: no target of type spark with method session exists, and "
            f"{advice.file} cannot be made ({advice.unwritable}). Put this into a profiles.yml, "
            f"there or in a folder that you name with --profiles-dir\n{advice.paste}"
        )
    if advice.paste is None:
        chosen = f", target {advice.target}" if advice.target else ""
        return f"profile {profile}: {advice.file}{chosen}: method session, as livemart needs it"
    where = "below its outputs" if advice.target else "into it"
    if advice.replaces:
        where = f"in the place of its entry {profile}"
    then = (
        f"; then say `target: {advice.target}` in {project_dir / 'livemart.yml'}, or "
        f"--target {advice.target}"
        if advice.target
        else ""
    )
    return (
        f"profile {profile}: {advice.file} has no target of type spark with method session, and "
        f"is yours: paste {where}{then}\n{advice.paste}"
    )


@contextmanager
def _profile_to_read(advice: ProfileAdvice, profile: str) -> Iterator[Path]:
    """Yield a folder whose profile dbt can read: for now, one with the lines to paste."""
    if advice.paste is None:
        yield advice.file.parent
        return
    with temporary_folder("profile") as folder:
        text = _profile_text(profile, _session_output(None), advice.target or "local")
        (folder / "profiles.yml").write_text(text, encoding="utf-8")
        yield folder


def _write_profile(file: Path, profile: str, output: Mapping[str, Any]) -> ProfileAdvice:
    text = _profile_text(profile, output)
    try:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        return ProfileAdvice(file, paste=text, unwritable=error.strerror or str(error))
    return ProfileAdvice(file, written=True)


def _profile_text(profile: str, output: Mapping[str, Any], target: str = "local") -> str:
    text: str = yaml.safe_dump(
        {profile: {"target": target, "outputs": {target: output}}}, sort_keys=False
    )
    return text


def _output_lines(output: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(output, sort_keys=False, default_flow_style=True, width=1_000_000)
    return f"    {_TARGET}: {text.strip()}"


def _session_output(other: object) -> dict[str, Any]:
    """Return a target of method session in the place of another one, with what its SQL means.

    The settings of a Spark elsewhere, such as a time zone, are part of that.
    """
    output = {
        "type": "spark",
        "method": "session",
        "schema": _schema_of(other),
        "host": "NA",
        "threads": 1,
    }
    is_spark = isinstance(other, Mapping) and other.get("type") == "spark"
    parameters = other.get("server_side_parameters") if isinstance(other, Mapping) else None
    if is_spark and isinstance(parameters, Mapping):
        with_meaning = {
            name: value for name, value in parameters.items() if not is_without_meaning(str(name))
        }
        output |= {"server_side_parameters": with_meaning} if with_meaning else {}
    return output


def _is_session(output: object) -> bool:
    return (
        isinstance(output, Mapping)
        and output.get("type") == "spark"
        and output.get("method") == "session"
    )


def _schema_of(output: object) -> str:
    """Return the schema of a target; one that dbt has to render first is not known.

    >>> _schema_of({"type": "bigquery", "dataset": "sales"})
    'sales'
    """
    output = output if isinstance(output, Mapping) else {}
    schema = output.get("schema") or output.get("dataset")
    return schema if isinstance(schema, str) and "{" not in schema else "analytics"


def _names(project_dir: Path) -> tuple[str, str]:
    """Return the project's name and that of its profile."""
    file = project_dir / "dbt_project.yml"
    if not file.is_file():
        raise no_project(project_dir)
    text = _read(file)
    name = str(text.get("name", project_dir.name))
    return name, str(text.get("profile", name))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    # ValueError: a day that no calendar has.
    except (yaml.YAMLError, ValueError) as error:
        message = " ".join(str(error).split())
        raise ConfigError("YAML_INVALID", f"{file}: {message}", hint="write valid YAML") from error
    return loaded if isinstance(loaded, Mapping) else {}


def _tested_keys(source: SourceTable, project: Project) -> list[str]:
    """Return the column of a source that is tested to be unique, if there is one."""
    return [
        test.column_name
        for test in project.tests.values()
        if test.kind == "unique" and test.attached_to == source.unique_id and test.column_name
    ][:1]
