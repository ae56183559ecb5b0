"""Invokes dbt in this process: one command at a time, on a checked profile, attached to livemart.

Used by `Dbt`. dbt's runner keeps its state in globals of the process.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from traceback import walk_tb
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from livemart.errors import ConfigError, ConfigErrors, nearest
from livemart.project.cursors import Connection, Cursor
from livemart.project.dbt_attachment import Replacement, attached, every_parse_error
from livemart.project.declared.config_mistakes import NOT_IN_UTF8, config_mistakes
from livemart.project.declared.node_files import PROJECT_FILE, NodeFiles
from livemart.project.declared.setting_places import setting_place
from livemart.project.manifest import prepare_nodes
from livemart.project.node_results import NodeProgress, as_compiled, node_progress
from livemart.project.profiles import profiles_folder
from livemart.project.questions import QuestionLog
from livemart.project.yaml_places import (
    by_line,
    data_test_line,
    empty_lists,
    keys_of_other_types,
    line_below,
    node_lines,
    text_of,
    top_setting,
)
from livemart.storage.location import StoragePlace

if TYPE_CHECKING:
    from dbt.cli.main import dbtRunnerResult
    from dbt.config.renderer import ProfileRenderer

_ONE_INVOCATION = threading.RLock()
# The modules of dbt that read one file of a project.
_FILES = {
    "dbt.config.project": "dbt_project.yml",
    "dbt.config.profile": "profiles.yml",
    "dbt.config.selectors": "selectors.yml",
}
# As dbt prints the file of an exposure, a group or a metric.
_FILE_PATH = re.compile(r"FilePath\(searched_path='([^']*)', relative_path='([^']*)'[^)]*\)")

# As dbt writes what a node names, and nothing has.
_UNFOUND = re.compile(
    r"'\w+\.(?P<package>\w+)\.[^']*' \((?P<file>[^()]+)\) depends on a \w+ named '(?P<name>[^']+)'"
)
# As dbt writes that a node may not read another one.
_PRIVATE = re.compile(
    r"Node \w+\.(?P<package>\w+)\.\S+ attempted to reference node \w+\.\w+\.(?P<name>\w+)"
)
# As dbt names the setting that has a wrong value, or its column.
_SETTING = re.compile(
    r"^\s*(?:at path \['(\w+)'|Field \"(\w+)\" of type .* has invalid value"
    r"|On instance\['(\w+)'\]|Node .* has an invalid value .* for the (access) field"
    r"|(latest_version): .* is not one of model|Invalid (group) '.*', expected one of"
    r"|Invalid (constraint) type on model|Invalid constraint type on column (?P<column>.+))",
    re.MULTILINE,
)
# As dbt writes that a variable has no value; it names the file if that is YAML.
_UNSET = re.compile(
    r"(?:Failed to render (?P<file>\S+) from project.*)?"
    r"(?P<kind>Required var|Env var required but not provided:) '(?P<name>\w+)'",
    re.DOTALL,
)


class DbtInvocations:
    """dbt on one project, in this process.

    Args:
        project_dir: folder of `dbt_project.yml`.
        profiles_dir: folder of `profiles.yml`; None leaves the search to dbt.
        target_dir: where dbt's own artifacts and logs go, in folders below it.
        target: target of the profile; None is the profile's own.
        vars: dbt variables, over those of the project.
        warehouse: root of all tables; needed to build.
        progress: called when a node begins or ends, and with what dbt prints of it, from dbt's
            threads.

    `manifest`: dbt's own, once the project is parsed; None parses it again.
    """

    def __init__(
        self,
        project_dir: Path,
        profiles_dir: Path | None,
        target_dir: Path,
        *,
        target: str | None,
        vars: dict[str, object],
        warehouse: StoragePlace | None,
        progress: Callable[[NodeProgress], None] | None,
    ) -> None:
        self.project_dir = project_dir
        self.profiles_dir = profiles_dir
        self.target_dir = target_dir
        self.target = target
        self.vars = vars
        self.warehouse = warehouse
        self.manifest: Any = None
        self._progress = progress
        # The errors that the last invocation reported, besides the one that it raised.
        self._errors: list[str] = []
        # The places of the errors of the nodes that it compiled, by unique id.
        self._node_places: dict[str, list[str]] = {}
        self._is_compiling = False
        # The words of its selection that name no node.
        self.unmatched: list[str] = []

    def check_profile(self) -> None:
        """Check the profile alone, before anything is started for the project.

        dbt itself would first ask for the packages of another connection.

        Raises:
            ConfigError: PROFILE_NOT_SESSION; PROFILE_INCOMPLETE; DBT_FAILED with dbt's own words
                for what else is wrong with it.
        """
        from dbt.config.profile import Profile, read_profile
        from dbt.config.project import load_raw_project

        file = profiles_folder(self.project_dir, self.profiles_dir) / "profiles.yml"
        chosen = self.target or _dbt_variable("TARGET")
        with _rendering(self.project_dir, self.vars) as renderer:
            written = load_raw_project(str(self.project_dir)).get("profile")
            name = _dbt_variable("PROFILE") or renderer.render_value(written)
            profiles: object = read_profile(str(file.parent))
            if not isinstance(profiles, dict):
                raise _not_of_form(f"{file}", profiles)
            # A list is no key that a mapping may be asked for.
            if name not in [*profiles]:
                raise _no_profile(file, name, [key for key in profiles if key != "config"])
            if not isinstance(profile := profiles[name], dict):
                raise _not_of_form(f"{file}: profile {name}", profile)
            if not isinstance(outputs := profile.get("outputs", {}), dict):
                raise _not_of_form(f"{file}: profile {name}: outputs", outputs)
            if chosen is None and isinstance(named := profile.get("target"), list | dict):
                raise _not_of_form(f"{file}: profile {name}: target", named, "a name")
            target, output = Profile.render_profile(profile, name, chosen, renderer)
        where = f"{file}: profile {name}, target {target}"
        kind, method = output.get("type"), output.get("method")
        if kind != "spark" or method != "session":
            raise ConfigError(
                "PROFILE_NOT_SESSION",
                f"{where}: found type {kind}, method {method}",
                hint="use type spark with method session, as livemart gives dbt its Spark session; "
                "`livemart init --from-dbt` prints a target to paste",
            )
        if not output.get("schema"):
            raise ConfigError(
                "PROFILE_INCOMPLETE",
                f"{where}: no schema",
                hint="name the schema that models go to: `schema: analytics`",
            )

    @contextmanager
    def held(
        self,
        make_cursor: Callable[[Mapping[str, str]], Cursor],
        questions: QuestionLog,
        before_compile: Callable[[Any], None] | None = None,
        only: Collection[str] | None = None,
        others: Sequence[Replacement] = (),
    ) -> Iterator[None]:
        """Hold dbt, and let it open our cursors, know our macros and take down questions."""
        from dbt.task.base import BaseRunner

        handle = BaseRunner.handle_exception

        def placing(runner: Any, error: Exception, context: Any) -> str:
            if self._is_compiling:
                # dbt keeps the text of the error alone.
                self._node_places[context.node.unique_id] = self._places(error)
            return handle(runner, error, context)

        connection = Connection(lambda parameters: questions.cursor(make_cursor(parameters)))
        others = (*others, (BaseRunner, "handle_exception", placing))
        with (
            _ONE_INVOCATION,
            attached(connection, self.warehouse, questions, before_compile, only, others),
        ):
            yield

    def parsed(self) -> Any:
        """Return dbt's manifest, parsed once, with nothing compiled left in it."""
        if self.manifest is None:
            with every_parse_error() as errors:
                result = self.invoke(["parse", "--no-write-json"])
            if errors:
                raise self._unparsed(errors)
            if not result.success:
                raise self._unconfigured(result.exception)
            self.manifest = result.result
            prepare_nodes(self.manifest)
        # Else dbt takes the ephemeral inputs of a node for injected already, and leaves them out.
        for node in self.manifest.nodes.values():
            if getattr(node, "compiled", False) and str(node.resource_type) != "seed":
                node.compiled = False
                node.compiled_code = None
                node._pre_injected_sql = None
                node.extra_ctes_injected = False
                node.extra_ctes = []
        return self.manifest

    def _unparsed(self, errors: Sequence[object]) -> ConfigError:
        """Return the errors that dbt met while it read the files, each once."""
        # The only reason that dbt gave is that it has stopped.
        self._errors = []
        failures = {it.message: it for it in map(self._unread, errors)}
        if len(failures) == 1:
            return failures.popitem()[1]
        return ConfigErrors([failures[message] for message in sorted(failures, key=by_line)])

    def _unconfigured(self, error: object) -> ConfigError:
        """Return all mistakes in the configuration that dbt refused, or the one that it reports."""
        from dbt.config.renderer import DbtProjectYamlRenderer

        if _stopped_file(error) not in (PROJECT_FILE, "selectors.yml"):
            return self._unread(error)
        mistakes = None
        # dbt may have stopped before its flags were set, and its errors are no interface.
        with suppress(Exception):
            renderer = DbtProjectYamlRenderer(self._profile(), self.vars)
            mistakes = self._mistakes(config_mistakes(self.project_dir, renderer))
        return mistakes or self._unread(error)

    def _mistakes(self, noted: Iterable[tuple[str, str]]) -> ConfigErrors | None:
        """Return messages and next steps as one error, in the order of their lines."""
        mistakes = [_dbt_failed(message, self.project_dir, hint) for message, hint in noted]
        mistakes.sort(key=lambda it: by_line(it.message))
        return ConfigErrors(mistakes) if mistakes else None

    def _unread(self, error: object) -> ConfigError:
        return self.failed(error, self._places(error))

    def _words(self, error: object) -> str:
        """Return the text of an error; without the whole entry of YAML that dbt repeats in it."""
        text = str(error).strip()
        entry = getattr(error, "yaml_data", None)
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if name is None or f": {entry} - " not in text:
            return text
        path, section = error.path, error.key  # type: ignore[attr-defined]
        file = Path(getattr(path, "project_root", self.project_dir))
        file /= getattr(path, "original_file_path", path)
        reason = text.partition(f": {entry} - ")[2]
        below = re.match(r"at path \[(.+?)\]: ", reason)
        steps = [step.strip("'") for step in below[1].split("][")] if below else []
        words = re.findall(r"'(\w+)' (?:was|were) unexpected", reason)
        line = line_below(text_of(file), [*steps, *words], (section, str(name)))
        place = file if line is None else f"{file}:{line}"
        return f"{place}: {section} {name}: {reason.removeprefix('at path []: ')}"

    def _project_name(self) -> str | None:
        return top_setting(text_of(self.project_dir / "dbt_project.yml"), "name")

    def _places(self, error: object) -> list[str]:
        """Return where an error of dbt's comes from, as far as dbt does not say it itself."""
        # dbt's values are no interface: a place that cannot be found never hides its message.
        with suppress(Exception):
            return self._lines(error) or _stopped_at(error)
        return _stopped_at(error)

    def _lines(self, error: object) -> list[str]:
        """Return the lines at which an error of dbt's has its cause, as far as they are found.

        An error of Python's own has no words for its cause, but few causes.
        """
        lines: list[str] = []
        if isinstance(error, AttributeError):
            text = text_of(self.project_dir / "dbt_project.yml")
            lines = [
                f"dbt_project.yml:{line}: YAML reads the key `{key}` as no text: put it in quotes"
                for key, line in keys_of_other_types(text)
            ]
        if type(error) is TypeError and (file := _stopped_file(error)) is not None:
            empty = empty_lists(text_of(self.project_dir / file))
            lines = [f"{file}:{line}: nothing below `{key}`" for key, line in empty]
        text = str(error)
        named, unset = _UNFOUND.search(text), _UNSET.search(text)
        private = _PRIVATE.search(text)
        # The file of a package is in another folder.
        if named is not None and named["package"] == self._project_name():
            lines = self._quoting(named["file"], named["name"].split(".")[-1])
        elif private is not None and private["package"] == self._project_name():
            node = _stopped_owner(error)
            lines = self._quoting(node.original_file_path, private["name"]) if node else []
        elif unset is not None and (where := unset["file"] or _stopped_file(error)) is not None:
            lines = self._rendered_at(error) or self._quoting(where, unset["name"])
        return lines or self._rendered_at(error) or self._set_at(error)

    def _set_at(self, error: object) -> list[str]:
        """Return the line of the setting that an error names, where a node or its YAML has it."""
        named = None if self._is_compiling else _SETTING.search(str(error))
        owner, file = named and _stopped_owner(error), _stopped_file(error) or ""
        if named is None or owner is None:
            return []
        word = str(named[named.lastindex or 0])
        project = str(self._project_name())
        files, line, place = NodeFiles(self.project_dir, project), None, None
        is_entry = file.endswith((".yml", ".yaml")) and owner.package_name == project
        if (test := _stopped_test(error)) is not None:
            # The setting of the same name of the tested node may be right.
            if is_entry:
                words = re.findall(r"\w+", str(error))
                column, kind = test["column_name"], test["builder"].name
                steps = _steps(test["target"])
                line = data_test_line(files.text(file), steps, column, kind, words, word)
        else:
            paths = (("columns", word),) if named["column"] else ((word,), (f"{word}s",))
            lines = node_lines(files.text(file), *_steps(owner)) if is_entry else {}
            line = next((lines[path] for path in paths if path in lines), None)
            if line is None and not named["column"] and hasattr(owner, "resource_type"):
                place = setting_place(owner, files, word)
        place = place if line is None else f"{file}:{line}"
        return [place] if place else []

    def _rendered_at(self, error: object) -> list[str]:
        """Return the line of a model or macro that dbt rendered when an error stopped it."""
        files = NodeFiles(self.project_dir, str(self._project_name()))
        places: list[str] = []
        for owner, line in _rendered_lines(error):
            file, written = files.of(owner), _code_of(owner)
            text = files.text(file)
            if written and (start := text.find(written)) >= 0:
                places = [f"{file}:{text.count(chr(10), 0, start) + line}"]
        return places

    def missing_model_paths(self) -> list[str]:
        """Return the folders of `model-paths` that the project does not have."""
        from dbt.config.runtime import load_project

        with suppress(Exception), _ONE_INVOCATION:
            project: Any = load_project(str(self.project_dir), False, self._profile(), self.vars)
            if "model-paths" in project.unrendered.project_dict:
                return [it for it in project.model_paths if not (self.project_dir / it).exists()]
        return []

    def _quoting(self, file: str, name: str) -> list[str]:
        """Return the place of the first line of a file that has a name in quotes, if one has."""
        text = text_of(self.project_dir / file)
        written = re.compile(f"""['"]{re.escape(name)}['"]""")
        numbers = [n for n, line in enumerate(text.splitlines(), 1) if written.search(line)]
        return [f"{file}:{number}" for number in numbers[:1]]

    def invoke(self, arguments: Sequence[str]) -> dbtRunnerResult:
        """Run a command of dbt's, while it is `held`; its failure is a part of the result."""
        from dbt.cli.main import dbtRunner

        common = [
            *("--project-dir", str(self.project_dir)),
            *("--target-path", str(self.target_dir / "livemart")),
            *("--log-path", str(self.target_dir / "logs")),
            *("--log-level", "none", "--log-level-file", "info", "--no-print"),
            *("--no-send-anonymous-usage-stats", "--no-use-colors"),
        ]
        if self.profiles_dir is not None:
            common += ["--profiles-dir", str(self.profiles_dir)]
        if self.target is not None:
            common += ["--target", self.target]
        if self.vars:
            common += ["--vars", json.dumps(self.vars, default=str)]
        self._errors, self._is_compiling = [], arguments[0] == "compile"
        self._node_places, self.unmatched = {}, []
        runner = dbtRunner(manifest=self.manifest, callbacks=[self._on_event])
        try:
            with catch_warnings():
                # The seeds of a folder may share `column_types`: each has some of the columns.
                filterwarnings("ignore", ".* does not match the name of any column", RuntimeWarning)
                result = runner.invoke([*arguments, *common])
        finally:
            _close_logs()
        if result.exception is not None and not isinstance(result.exception, Exception):
            # A signal is not a result.
            raise result.exception
        return result

    def failed(self, error: object, places: Sequence[str] = ()) -> ConfigError:
        """Return an error of dbt's: its places, itself, the reasons before it, each once."""
        text = str(error).strip()
        reasons = [self._words(error)]
        for said in self._errors:
            if said not in "\n".join(reasons) and text not in said:
                reasons.append(said)
        message = "\n".join((*places, *reasons))
        if "asks the database while it is compiled" in message:
            return ConfigError(
                "DBT_NEEDS_SPARK", message, hint="give it a Spark session, as `plan` and `build` do"
            )
        return _dbt_failed(message, self.project_dir)

    def uncompiled(self, node: Any, message: str) -> ConfigError:
        """Return dbt's error of a node that it cannot compile, which has the file as it is here."""
        file = NodeFiles(self.project_dir, str(self.manifest.metadata.project_name)).of(node)
        places = self._node_places.get(node.unique_id, [])
        return self.failed(message.replace(f"({node.original_file_path})", f"({file})"), places)

    def _on_event(self, event: Any) -> None:
        if event.info.level == "error" and (said := str(event.info.msg).strip()):
            self._errors.append(said)
        if event.info.name == "NoNodesForSelectionCriteria":
            self.unmatched.append(str(event.data.spec_raw))
        if self._progress is None or (progress := node_progress(event)) is None:
            return
        if not self._is_compiling:
            self._progress(progress)
        elif progress.line is None:
            self._progress(as_compiled(progress))

    def credentials(self) -> Any:
        """Return the profile's settings of the target."""
        return self._profile().credentials

    def _profile(self) -> Any:
        from dbt.config.runtime import load_profile

        profile, target = _dbt_variable("PROFILE"), self.target or _dbt_variable("TARGET")
        return load_profile(str(self.project_dir), self.vars, profile, target)


def _stopped_at(error: object) -> list[str]:
    """Return a line with the file at which an error stopped dbt; none if the error names it."""
    file = _stopped_file(error)
    if file is None or file in _FILE_PATH.sub(r"\1/\2", str(error)):
        return []
    if isinstance(error, UnicodeDecodeError):
        return [f"{file}: {NOT_IN_UTF8}"]
    return [f"{file}: dbt stopped at this file"]


def _stopped_file(error: object) -> str | None:
    """Return the file at which an error stopped dbt, None if no file is known.

    dbt keeps the file in the variables of its functions, and leaves it out of many messages.
    """
    file = node = None
    for frame, _ in walk_tb(getattr(error, "__traceback__", None)):
        file = _FILES.get(frame.f_globals.get("__name__", ""), file)
        given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        for name, value in frame.f_locals.items():
            if type(value).__module__.startswith("dbt."):
                block = getattr(value, "yaml", value)
                path = getattr(getattr(block, "file", None), "path", None)
                # A file that the function was not given is that of a loop which has ended.
                file = getattr(path, "original_file_path", file) if name in given else file
                node = node or getattr(value, "original_file_path", None)
    return file or node


def _stopped_owner(error: object) -> Any:
    """Return the node, or its entry of YAML, at which an error stopped dbt; None without one."""
    owner = None
    for frame, _ in walk_tb(getattr(error, "__traceback__", None)):
        values = frame.f_locals
        if owner is None and {"fqn", "resource_type", "project_name"} <= values.keys():
            # dbt makes no node before it has read the settings of its folders.
            owner = SimpleNamespace(
                fqn=values["fqn"],
                name=values["fqn"][-1],
                resource_type=values["resource_type"],
                package_name=values["project_name"],
                original_file_path="",
            )
        for value in values.values():
            if not type(value).__module__.startswith("dbt."):
                # Jinja's own values fail when they are asked for an attribute.
                continue
            is_entry = hasattr(value, "yaml_key") and hasattr(value, "package_name")
            if is_entry or (hasattr(value, "fqn") and hasattr(value, "original_file_path")):
                owner = value
                break
    return owner


def _stopped_test(error: object) -> Mapping[str, Any] | None:
    """Return the variables of dbt's function that reads a data test, if it met the error."""
    for frame, _ in walk_tb(getattr(error, "__traceback__", None)):
        if {"target", "builder", "column_name"} <= frame.f_locals.keys():
            return frame.f_locals
    return None


def _steps(owner: Any) -> list[tuple[str, str]]:
    """Return the way to an entry of YAML, or to the entry of a node, as of `node_lines`."""
    if hasattr(owner, "table"):
        return [("sources", owner.source.name), ("tables", owner.table.name)]
    kind = getattr(owner, "yaml_key", None) or f"{owner.resource_type}s"
    return [(str(kind), owner.name)]


def _code_of(node: object) -> str | None:
    """Return the text of a node or a macro as it is written, None if it is neither."""
    if not type(node).__module__.startswith("dbt."):
        return None
    return getattr(node, "macro_sql", None) or getattr(node, "raw_code", None)


def _rendered_lines(error: object) -> Iterator[tuple[Any, int]]:
    """Yield the nodes and macros that dbt rendered at an error, with lines, the caller first."""
    from dbt_common.clients.jinja import CallableMacroGenerator
    from jinja2 import TemplateSyntaxError
    from jinja2.runtime import Macro

    # That of the text rendered at this frame is the last one, None if it is not certain.
    owners: list[Any] = []
    # The node or macro of each template: the text below a `call` may run in another one's.
    written: dict[int, Any] = {}
    while isinstance(error, BaseException):
        for frame, number in walk_tb(error.__traceback__):
            values, names = frame.f_locals, frame.f_globals
            called = values.get("self")
            if isinstance(called, CallableMacroGenerator):
                if not owners or owners[-1] is not called.macro:
                    owners.append(called.macro)
            elif isinstance(called, Macro) and owners and frame.f_code.co_name == "_invoke":
                template = called._func.__globals__.get("__jinja_template__")
                if called.name:
                    written.setdefault(id(template), owners[-1])
                owners.append(written.get(id(template)))
            # dbt renders a description of a node with the node, too.
            elif (code := _code_of(values.get("node"))) and values.get("string") == code:
                owners = [values["node"]]
                written[id(values.get("template"))] = owners[0]
            if not owners or owners[-1] is None:
                continue
            if (template := names.get("__jinja_template__")) is not None:
                yield owners[-1], template.get_corresponding_lineno(number)
            elif "__jinja_exception__" in names:
                # Jinja has put its own line in the place of that of Python.
                yield owners[-1], number
        if owners and owners[-1] is not None and isinstance(error, TemplateSyntaxError):
            yield owners[-1], error.lineno
        # dbt raises its own error from that of jinja.
        error = error.__context__


def _close_logs() -> None:
    """Close the log file of an invocation, which dbt leaves to the garbage collector."""
    from dbt_common.events.event_manager_client import cleanup_event_logger, get_event_manager

    manager: Any = get_event_manager()
    for logger in manager.loggers:
        for handler in [*logger._python_logger.handlers]:
            handler.close()
            logger._python_logger.removeHandler(handler)
    cleanup_event_logger()


def render_in_project(text: str, project_dir: Path, variables: Mapping[str, object]) -> str:
    """Return a text of `dbt_project.yml` as dbt renders it.

    Raises:
        ConfigError: DBT_FAILED, if it cannot be rendered.
    """
    with _rendering(project_dir, variables) as renderer:
        return str(renderer.render_value(text))


@contextmanager
def _rendering(project_dir: Path, variables: Mapping[str, object]) -> Iterator[ProfileRenderer]:
    """Hold dbt, and yield the renderer of its configuration; its errors are ours."""
    from dbt.config.renderer import ProfileRenderer
    from dbt_common.context import set_invocation_context
    from dbt_common.exceptions import DbtBaseException

    with _ONE_INVOCATION:
        try:
            set_invocation_context(os.environ)
            yield ProfileRenderer(dict(variables))
        except (DbtBaseException, UnicodeDecodeError) as error:
            message = "\n".join((*_stopped_at(error), str(error).strip()))
            raise _dbt_failed(message, project_dir) from error


def _dbt_failed(
    message: str, project_dir: Path, hint: str = "correct the mistake that dbt reports"
) -> ConfigError:
    """Return an error with dbt's own message."""
    if (unset := _UNSET.search(message)) is not None:
        name = unset["name"]
        hint = f"set it in the environment, or write a default: env_var('{name}', '...')"
        if unset["kind"] == "Required var":
            hint = (
                f"give the value: `--vars '{{{name}: ...}}'`, or below `vars:` of livemart.yml or "
                "of dbt_project.yml"
            )
    elif (macro := re.search(r"No macro named '(\w+)' found within namesp", message)) is not None:
        hint = (
            f"write a macro `spark__{macro[1]}` or `default__{macro[1]}`, or leave its calls out "
            "for this target"
        )
    elif names := re.findall(
        r"^\s*- (\S+)$",
        message.partition("The valid target names for this profile are:")[2],
        re.MULTILINE,
    ):
        hint = f"name one of its targets: {', '.join(f'--target {name}' for name in names)}"
    elif 'Run "dbt deps"' in message:
        hint = f"install them, without Spark: dbt deps --project-dir {quote(str(project_dir))}"
    message = _FILE_PATH.sub(r"\1/\2", message.replace(f"{project_dir}/", ""))
    return ConfigError("DBT_FAILED", message, hint=hint)


def _not_of_form(place: str, content: object, form: str = "a mapping") -> ConfigError:
    return ConfigError(
        "PROFILE_INCOMPLETE",
        f"{place}: found {'nothing' if content is None else type(content).__name__}, not {form}",
        hint="write `target` and `outputs` below the name of the profile, as in "
        "docs/first-project.md",
    )


def _no_profile(file: Path, name: object, names: Sequence[str]) -> ConfigError:
    if name is None:
        return ConfigError(
            "PROFILE_INCOMPLETE",
            "dbt_project.yml: no profile",
            hint=f"write `profile:` and a name of {file}: {', '.join(names) or 'none is there'}",
        )
    return ConfigError(
        "PROFILE_INCOMPLETE",
        f"{file}: no profile {name}{nearest(str(name), names)}",
        hint=f"write the name after `profile:` in dbt_project.yml; {file.name} has "
        f"{', '.join(names) or 'none'}",
    )


def _dbt_variable(name: str) -> str | None:
    """Return a flag of dbt's that the environment sets; None if it sets none."""
    return os.environ.get(f"DBT_ENGINE_{name}") or os.environ.get(f"DBT_{name}")


def reserved_names() -> frozenset[str]:
    """Return the words that dbt takes for no project's name."""
    from dbt.contracts.project import BANNED_PROJECT_NAMES

    return frozenset(BANNED_PROJECT_NAMES)
