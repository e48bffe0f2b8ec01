# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``runner_build``: makes on the control node what a VM gets. Options and results are documented in the module.

What came of the policies is kept below Ansible's home directory: the next run with the same files has it at once.
What is compiled, tested and proven is left to the command ``forewarn`` of this collection, in a process of its own: an
operator sees the same text here as there. Only the parameters of each host are checked in this process.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ansible import constants as C  # noqa: N812 - its usual name
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase
from ansible_collections.forewarn.azure.plugins.module_utils import forewarn as package
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn import __version__, bundle
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.cli.main import POLICY_COMMANDS
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.compiler.paths import paths_of
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.errors import ForewarnError, InputError
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.events import LATEST_API_VERSION
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.artifact import load
from ansible_collections.forewarn.azure.plugins.module_utils.forewarn.policy.engine import PolicySet
from ansible_collections.forewarn.azure.plugins.plugin_utils import _policies as kept_policies

_OPTIONS = {
    "policies": {"type": "list", "elements": "str", "default": []},
    "git": {"type": "str", "default": ""},
    "ref": {"type": "str", "default": "HEAD"},
    "api_version": {"type": "str", "default": LATEST_API_VERSION},
    "params": {"type": "dict", "default": {}},
    "gate": {"type": "str", "default": "error", "choices": ["error", "warn"]},
}
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent / "module_utils"
_PATIENCE_SECONDS = 600
_DIGITS = 16  # of a digest, in a file's name
_KEPT = 16  # of what was built in earlier runs, the ones used last


class BuildError(Exception):
    """Why nothing is rolled out, as text for an operator."""


class ActionModule(ActionBase):
    """Builds once for all hosts of a run that want the same."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the task."""
        super().run(tmp, task_vars)
        # Templating leaves subclasses of str and dict, about which the evaluator is strict.
        options: dict[str, Any] = json.loads(json.dumps(_options(dict(self._task.args))))
        home = Path((task_vars or {}).get("playbook_dir") or ".")
        try:
            paths_of(options["policies"])  # which are not empty: where they are is another question
            paths = options["policies"] if options["git"] else [str(_find(path, home)) for path in options["policies"]]
            built = build(paths, options["git"], options["ref"], options["api_version"])
            artifact = load(Path(built["artifact"]).read_bytes())
            policies = PolicySet(artifact, options["params"])
        except BuildError as error:
            return {"failed": True, "msg": str(error)}
        except ForewarnError as error:
            return {"failed": True, "msg": f"{error} Nothing was rolled out."}
        objections = built["objections"]
        if objections and options["gate"] == "error":
            return {"failed": True, "msg": "\n\n".join(["Nothing was rolled out.", *objections])}
        hooks = {kind for hook in policies.every_hook() for kind in ("run", "unit", "http") if kind in hook}
        return {
            **built,
            "changed": False,
            "api_version": artifact.api_version,
            "digest": artifact.digest,
            "name": f"policy-{artifact.digest.partition(':')[2][:_DIGITS]}.json",
            "policy_names": list(policies.names),
            "hooks": sorted(hooks),
            "version": __version__,
            "warnings": [*objections, *built["remarks"]],
            "msg": f"{', '.join(policies.names)}: {artifact.digest}",
        }


def build(paths: Sequence[str], git: str, ref: str, api_version: str) -> dict[str, Any]:
    """Return what was built of the same inputs in this run, or build it now. Raises BuildError.

    Each host has a process of its own. What one has built the others take from the run's private directory, so a
    branch that moves meanwhile, or a file that is edited, does not split a fleet.
    """
    key = hashlib.sha256(json.dumps([list(paths), git, ref, api_version]).encode()).hexdigest()
    directory = _run_directory(key[:_DIGITS])
    with _locked(directory / "lock"):
        done = directory / "built.json"
        if not done.exists():
            content = json.dumps(_build(directory, paths, git, ref, api_version))
            (directory / "part").write_text(content, encoding="utf-8")
            (directory / "part").replace(done)
        result: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
    if "refused" in result:
        raise BuildError(result["refused"])
    return result


def _build(directory: Path, paths: Sequence[str], git: str, ref: str, api_version: str) -> dict[str, Any]:
    try:
        commit = None
        if git:
            commit = _check_out(git, ref, directory / "checkout")
            home = directory / "checkout"
            paths = [_inside(home, path) for path in paths or ["."]]
        else:
            home = directory
        artifact = directory / "policy.json"
        pyz = _bundle()
        with Keep() as keep:
            objections, remarks = _kept_policies(keep, home, artifact, paths, api_version)
    except BuildError as error:
        return {"refused": str(error)}
    return {
        "pyz": str(pyz),
        "pyz_sha256": hashlib.sha256(pyz.read_bytes()).hexdigest(),
        "artifact": str(artifact),
        "commit": commit,
        "objections": objections,
        "remarks": remarks,
    }


def _bundle() -> Path:
    """Build the runner, or return what was built in this run: it is the same whatever the policies."""
    directory = _run_directory("runner")
    pyz = directory / "forewarn.pyz"
    with _locked(directory / "lock"):
        if not pyz.exists():
            try:
                bundle.build(Path(package.__file__).parent, pyz)
            except InputError as error:
                raise BuildError(f"{error} Nothing was rolled out.") from error
    return pyz


def _kept_policies(
    keep: Keep, home: Path, artifact: Path, paths: Sequence[str], api_version: str
) -> tuple[list[str], list[str]]:
    """Do what ``_policies`` does, unless an earlier run has done it with the same files."""
    # What is said names the files by their paths, so these count too; in a checkout they are relative ones.
    name = json.dumps([api_version, list(paths), _contents(home, paths)])
    known = keep.find(name)
    if known is not None:
        found = json.loads(known)
        artifact.write_text(found["artifact"], encoding="utf-8")
        return found["objections"], found["remarks"]
    objections, remarks = _policies(home, artifact, paths, api_version)
    if _contents(home, paths) == json.loads(name)[2]:  # nobody has changed a file meanwhile
        content = {"artifact": artifact.read_text(encoding="utf-8"), "objections": objections, "remarks": remarks}
        keep.store(name, json.dumps(content).encode())
    return objections, remarks


def _contents(home: Path, paths: Sequence[str]) -> list[list[str]]:
    """Return name and digest of every file that policies at these paths, and their tests, may be in."""
    files: list[Path] = []
    for path in paths:
        whole = home / path
        if whole.is_dir():
            files += (file for file in whole.rglob("*") if ".git" not in file.relative_to(whole).parts)
        else:  # its tests lie beside it, or in a directory beside it
            files += [whole, *whole.parent.glob("*.y*ml"), *whole.parent.glob("tests/*.y*ml")]
    try:
        return [
            [
                str(file.relative_to(home) if file.is_relative_to(home) else file),
                hashlib.sha256(file.read_bytes()).hexdigest(),
            ]
            for file in sorted(set(files))
            if file.is_file()
        ]
    except OSError as error:
        raise BuildError(f"{error.filename}: {error.strerror}. Nothing was rolled out.") from error


class Keep:
    """What earlier runs of this very version have built, below Ansible's home directory. A name says what it is of."""

    def __init__(self) -> None:
        self._directory = kept_policies._home() / "built"
        self._sources = _package_state()

    def __enter__(self) -> Keep:
        with contextlib.suppress(OSError):  # what cannot be kept is built again
            self._directory.mkdir(mode=0o700, exist_ok=True)
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):
            known = sorted(self._directory.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
            for old in known[_KEPT:]:
                old.unlink(missing_ok=True)

    def find(self, name: str) -> bytes | None:
        """Return what is kept under a name, None if there is nothing."""
        try:
            path = self._path(name)
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return content

    def store(self, name: str, content: bytes) -> None:
        """Keep something, if that can be done."""
        path = self._path(name)
        part = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            part.write_bytes(content)
            part.replace(path)

    def _path(self, name: str) -> Path:
        return self._directory / hashlib.sha256(json.dumps([self._sources, name]).encode()).hexdigest()


def _package_state() -> list[Any]:
    """Return what changes when anything of the package does."""
    root = Path(package.__file__).parent
    files = sorted(file for file in root.rglob("*") if file.suffix in (".py", ".json"))
    states = [(str(file.relative_to(root)), file.stat()) for file in files]
    return [__version__, sys.version, [(name, state.st_mtime_ns, state.st_size) for name, state in states]]


def _run_directory(name: str) -> Path:
    directory = Path(C.DEFAULT_LOCAL_TMP) / f"forewarn-build-{name}"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


def _policies(home: Path, artifact: Path, paths: Sequence[str], api_version: str) -> tuple[list[str], list[str]]:
    """Write the artifact. Return what speaks against rolling it out, and what ought to be known."""
    if not paths:
        raise BuildError("No policies were named. Nothing was rolled out.")
    compiled = [path for path in paths if path.endswith(".json")]
    if compiled:
        if len(paths) > 1:
            raise BuildError(f"{compiled[0]} is an artifact, which has all its policies in it: name nothing beside it.")
        try:
            content = (home / compiled[0]).read_bytes()
            found = load(content)
        except (OSError, ForewarnError) as error:
            raise BuildError(f"{compiled[0]}: {error} Nothing was rolled out.") from error
        if found.api_version != api_version:
            raise BuildError(
                f"{compiled[0]} was compiled for api-version {found.api_version}, and {api_version} is wanted."
            )
        artifact.write_bytes(content)
        return [], [f"{compiled[0]} was compiled elsewhere: its tests were not run."]
    _forewarn(home, "policy", "compile", "--api-version", api_version, "--output", str(artifact), "--", *paths)
    objections, remarks = [], []
    for path in paths:
        test = _run_forewarn(home, "policy", "test", "--", path)
        if test.returncode == 1:
            objections.append(f"Tests of the policies fail:\n{test.stdout.strip()}")
        elif test.returncode:
            remarks.append(f"The policies were not tested: {_said(test)}")
    if "verify" in POLICY_COMMANDS:
        verify = _run_forewarn(home, "policy", "verify", "--api-version", api_version, "--", *paths)
        if verify.returncode:
            objections.append(f"forewarn policy verify objects:\n{_said(verify)}")
    return objections, remarks


def _forewarn(home: Path, *arguments: str) -> None:
    process = _run_forewarn(home, *arguments)
    if process.returncode:
        raise BuildError(f"Nothing was rolled out. forewarn {' '.join(arguments[:2])} says:\n{_said(process)}")


def _run_forewarn(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The interpreter that runs Ansible has the libraries that the compiler needs, if any has.
    command = [sys.executable, "-m", "forewarn.cli.main", *arguments]
    environment = {**os.environ, "PYTHONPATH": _python_path(), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return _run(command, home, environment)


def _python_path() -> str:
    return os.pathsep.join(filter(None, [str(_PACKAGE_PARENT), os.environ.get("PYTHONPATH")]))


def _run(
    command: Sequence[str], home: Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - no shell, and the programs are ours and git
            command,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]} on the control node: {error}. Nothing was rolled out.") from error


def _said(process: subprocess.CompletedProcess[str]) -> str:
    return (process.stderr.strip() + "\n" + process.stdout.strip()).strip() or f"exit code {process.returncode}"


def _check_out(url: str, ref: str, directory: Path) -> str:
    """Fetch one commit of a repository and return its name. Raises BuildError."""
    if url.startswith("-") or ref.startswith("-") or not ref:
        raise BuildError(f"git {url!r}, ref {ref!r}: neither may be empty or begin with a '-'.")
    directory.mkdir(exist_ok=True)
    # A question, for a password say, would wait for ever; GIT_DIR would name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
    environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C.UTF-8")

    def git(*arguments: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        process = _run(["git", *arguments], directory, environment)
        if process.returncode and not may_fail:
            raise BuildError(f"git {arguments[0]} {url} {ref}: {_said(process)}. Nothing was rolled out.")
        return process

    git("init", "--quiet")
    # Not every server hands out a commit by its name alone: then all is fetched.
    if git("fetch", "--quiet", "--depth", "1", "--", url, ref, may_fail=True).returncode:
        git("fetch", "--quiet", "--tags", "--", url, "+refs/heads/*:refs/remotes/origin/*")
        git("checkout", "--quiet", "--detach", ref)
    else:
        git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    return git("rev-parse", "HEAD").stdout.strip()


def _inside(home: Path, path: str) -> str:
    """Return a path of a checkout that does not lead out of it. Raises BuildError."""
    whole = (home / path).resolve()
    if not whole.is_relative_to(home.resolve()):
        raise BuildError(f"{path} is not inside the repository: name paths relative to its root.")
    if not whole.exists():
        raise BuildError(f"There is no {path} in the repository. Nothing was rolled out.")
    return path


def _find(path: str, playbook_directory: Path) -> Path:
    """Return a path of the control node: relative to the playbook, else to where it was started."""
    wanted = Path(path).expanduser()
    for found in (playbook_directory / wanted, wanted):
        if found.exists():
            return found.resolve()
    places = "" if wanted.is_absolute() else f" in {playbook_directory.resolve()} and in {Path.cwd()}"
    raise BuildError(f"There is no {wanted}{places}, on the control node. Nothing was rolled out.")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _options(given: dict[str, Any]) -> dict[str, Any]:
    validation = ArgumentSpecValidator(_OPTIONS).validate(given)
    if validation.error_messages:
        raise AnsibleActionFail("; ".join(validation.error_messages))
    options: dict[str, Any] = validation.validated_parameters
    return options
