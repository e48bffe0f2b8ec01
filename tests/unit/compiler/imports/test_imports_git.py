# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries of commits in git: fetched once, read as they were, and kept for those who have no network."""

from __future__ import annotations

import http.server
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from forewarn.compiler.imports import git_files, origins
from forewarn.compiler.imports.errors import ImportedFileError
from forewarn.compiler.policies import Compilation, compile_policies
from forewarn.compiler.yaml.tree import MOST_BYTES

LIBRARY = "name: lib\nlibrary: true\nimports: [{path: ../other.yml}]\nvariables: [{name: brief, expression: NAME}]\n"
OTHER = "name: other\nlibrary: true\nvariables: [{name: other, expression: affects_me}]\n"


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=directory, check=True, capture_output=True, text=True).stdout.strip()


def commit(directory: Path, message: str) -> str:
    git(directory, "add", ".")
    git(directory, "commit", "--quiet", f"--message={message}")
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "forewarn" / "imports"


@pytest.fixture
def repository_of_libraries(tmp_path: Path, cache: Path) -> Path:
    """Return a repository with a library that imports another; the cache is one of this test."""
    assert not cache.exists()
    home = tmp_path / "a repository"
    (home / "shared").mkdir(parents=True)
    git(home, "init", "--quiet", "--initial-branch=main")
    (home / "shared" / "lib.yml").write_text(LIBRARY.replace("NAME", "variables.other && leader"))
    (home / "other.yml").write_text(OTHER)
    return home


def compiled(directory: Path, url: str, at: str, path: str = "shared/lib.yml") -> Compilation:
    entry = f'{{git: "{url}", commit: {at}, path: "{path}"}}'
    rule = "rule: {match: [{condition: variables.brief, output: approve}]}\n"
    (directory / "p.yml").write_text(f"name: p\nimports:\n  - {entry}\n{rule}")
    return compile_policies([directory / "p.yml"])


def refusal(found: Compilation) -> str:
    (finding,) = found.findings
    assert (finding.code, finding.line) == ("import-missing", 3)
    return f"{finding.message} {finding.suggestion}"


def test_commit_is_read_unchanged_and_cached(tmp_path: Path, repository_of_libraries: Path, cache: Path) -> None:
    home = repository_of_libraries
    first = commit(home, "one")
    (home / "shared" / "lib.yml").write_text("no library any more\n")
    commit(home, "two")
    url = home.as_uri().replace("%20", " ").replace(" ", "%20")
    found = compiled(tmp_path, url, first)
    assert found.findings == []
    assert found.artifact is not None
    assert [(one["path"], one.get("repository"), one.get("commit")) for one in found.artifact["sources"]] == [
        ("p.yml", None, None),
        ("other.yml", url, first),
        ("shared/lib.yml", url, first),
    ]
    (variable, _) = found.artifact["policies"][0]["rule"]["variables"]
    assert variable["expr"]["file"] == f"{url}@{first[:12]}:other.yml"
    assert [path.name for path in cache.iterdir()] == [first]
    shutil.rmtree(home)
    assert compiled(tmp_path, url, first).artifact == found.artifact, "nothing is fetched again"
    assert cache.stat().st_mode & 0o077 == 0


def test_server_without_single_commits_sends_everything(
    tmp_path: Path, repository_of_libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit(repository_of_libraries, "one")
    (repository_of_libraries / "more").write_text("x")
    commit(repository_of_libraries, "two")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")  # with which a server offers its branches only
    found = compiled(tmp_path, repository_of_libraries.as_uri(), first)
    assert found.findings == []


def test_what_cannot_be_had_is_said(
    tmp_path: Path, repository_of_libraries: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = repository_of_libraries
    (home / "link.yml").symlink_to("other.yml")
    (home / "large.yml").write_bytes(b"#" * (MOST_BYTES + 1))
    first = commit(home, "one")
    url = home.as_uri()
    assert f"has no commit {'a' * 40}" in refusal(compiled(tmp_path, url, "a" * 40))
    assert [path.name for path in cache.iterdir()] == [], "no half of a repository is left"
    assert "does not appear to be a git repository" in refusal(compiled(tmp_path, f"{url}-x", first))
    secret = f"https://me:secret@127.0.0.1:9/{'x'}"
    said = refusal(compiled(tmp_path, secret, "b" * 40))
    assert "git fetch https://127.0.0.1:9/x" in said
    assert "secret" not in said
    assert "has no shared/nothing.yml in the commit" in refusal(compiled(tmp_path, url, first, "shared/nothing.yml"))
    assert "there is a directory of this name" in refusal(compiled(tmp_path, url, first, "shared"))
    assert "is a symbolic link" in refusal(compiled(tmp_path, url, first, "link.yml"))
    assert "is larger than 1024 KiB" in refusal(compiled(tmp_path, url, first, "large.yml"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git cannot be run: No such file" in refusal(compiled(tmp_path, url, "c" * 40))


@pytest.mark.parametrize(("path", "says"), [("../x.yml", "leads out of the repository"), ("/x.yml", "absolute path")])
def test_no_path_leads_out(tmp_path: Path, repository_of_libraries: Path, path: str, says: str) -> None:
    (repository_of_libraries / "shared" / "out.yml").write_text(
        f"name: out\nlibrary: true\nimports: [{{path: {os.path.join('..', path)}}}]\n"  # noqa: PTH118 - as it is written
    )
    first = commit(repository_of_libraries, "one")
    for found in (
        compiled(tmp_path, repository_of_libraries.as_uri(), first, path),
        compiled(tmp_path, repository_of_libraries.as_uri(), first, "shared/out.yml"),
    ):
        (finding,) = found.findings
        assert finding.code == "import-path"
        assert says in finding.message


def test_a_tag_and_a_blob_are_no_commit(tmp_path: Path, repository_of_libraries: Path) -> None:
    commit(repository_of_libraries, "one")
    git(repository_of_libraries, "tag", "--annotate", "--message=v1", "v1")
    for name in ("v1", "HEAD:other.yml", "HEAD^{tree}"):
        no_commit = git(repository_of_libraries, "rev-parse", name)
        assert "has no commit" in refusal(compiled(tmp_path, repository_of_libraries.as_uri(), no_commit))


def test_nothing_of_a_repository_runs(
    tmp_path: Path, repository_of_libraries: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither hooks, nor filters of .gitattributes, nor submodules, nor what a template of the user has."""
    home = repository_of_libraries
    ran = tmp_path / "ran"
    script = f"#!/bin/sh\necho $0 >> {ran}\ncat\n"
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-merge", "post-rewrite", "pre-auto-gc", "fsmonitor"):
        for hooks in (home / ".git" / "hooks", template):
            hooks.mkdir(exist_ok=True)
            (hooks / name).write_text(script)
            (hooks / name).chmod(0o755)
    (home / ".gitattributes").write_text("*.yml filter=run diff=run\n")
    git(home, "-c", "core.hooksPath=/dev/null", "add", ".")
    git(home, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message=one")
    first = git(home, "rev-parse", "HEAD")
    settings = {"init.templateDir": str(template.parent), "filter.run.smudge": str(template / "fsmonitor")}
    monkeypatch.setenv("GIT_CONFIG_COUNT", str(len(settings)))
    for number, (key, value) in enumerate(settings.items()):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", key)
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", value)
    assert compiled(tmp_path, home.as_uri(), first).findings == []
    assert not ran.exists()
    assert not (cache / first / "hooks").exists()


def test_nobody_is_asked_for_a_password(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    helper = tmp_path / "ask"
    helper.write_text(f"#!/bin/sh\ntouch {asked}\n")
    helper.chmod(0o755)
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(helper))
    with http.server.HTTPServer(("127.0.0.1", 0), UnauthorizedHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(git_files, "_PROTOCOLS", "http")
        monkeypatch.setattr(git_files, "URL", re.compile("http:.*"))
        with pytest.raises(ImportedFileError, match="terminal prompts disabled"):
            git_files.read_file(f"http://127.0.0.1:{server.server_port}/x", "a" * 40, "lib.yml")
        server.shutdown()
        thread.join()
    assert not asked.exists()
    assert list(cache.iterdir()) == []


class UnauthorizedHandler(http.server.BaseHTTPRequestHandler):
    """Wants a user and a password."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


def test_a_damaged_cache_is_fetched_again(tmp_path: Path, repository_of_libraries: Path, cache: Path) -> None:
    first = commit(repository_of_libraries, "one")
    url = repository_of_libraries.as_uri()
    found = compiled(tmp_path, url, first)
    for damage in ("HEAD", "objects"):
        path = cache / first / damage
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        assert compiled(tmp_path, url, first).artifact == found.artifact


def test_cache_writable_by_others_is_not_used(
    tmp_path: Path, repository_of_libraries: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit(repository_of_libraries, "one")
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert compiled(tmp_path, repository_of_libraries.as_uri(), first).findings == []
    assert list(cache.iterdir()) == []
    assert list(tmp_path.glob("forewarn-*")) == []


def test_what_killed_processes_left_goes_after_a_day(
    tmp_path: Path, repository_of_libraries: Path, cache: Path
) -> None:
    first = commit(repository_of_libraries, "one")
    for name in (".part-old", ".part-new"):
        (cache / name / "objects").mkdir(parents=True)
    cache.chmod(0o700)
    os.utime(cache / ".part-old", (0, 0))
    assert compiled(tmp_path, repository_of_libraries.as_uri(), first).findings == []
    assert sorted(path.name for path in cache.iterdir()) == [".part-new", first]


def test_missing_cache_means_fetching_each_file(
    tmp_path: Path, repository_of_libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = commit(repository_of_libraries, "one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert compiled(tmp_path, repository_of_libraries.as_uri(), first).findings == []


def test_unreachable_repository_is_tried_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(url: str, _commit: str, _path: str) -> bytes:
        asked.append(url)
        raise ImportedFileError("no answer")

    monkeypatch.setattr(origins, "read_file", refuse)
    entry = f"{{git: 'https://git.example/x', commit: {'a' * 40}, path: lib.yml}}"
    for name in "pqr":
        text = f"name: {name}\nimports: [{entry}]\nrule: {{match: [{{output: hold}}]}}\n"
        (tmp_path / f"{name}.yml").write_text(text)
    assert [one.code for one in compile_policies([tmp_path]).findings] == ["import-missing"] * 3
    assert asked == ["https://git.example/x"]
    assert not cache.exists()


def test_many_processes_fetch_at_once(tmp_path: Path, repository_of_libraries: Path, cache: Path) -> None:
    first = commit(repository_of_libraries, "one")

    def fetch() -> None:
        content = git_files.read_file(repository_of_libraries.as_uri(), first, "other.yml")
        sys.exit(0 if content == OTHER.encode() else 1)

    processes = [multiprocessing.get_context("fork").Process(target=fetch) for _ in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 8
    assert [path.name for path in cache.iterdir()] == [first]


def test_git_hook_environment_changes_nothing(
    tmp_path: Path, repository_of_libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pre-commit runs ``policy check`` with GIT_DIR and GIT_INDEX_FILE set."""
    first = commit(repository_of_libraries, "one")
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    assert compiled(tmp_path, repository_of_libraries.as_uri(), first).findings == []
    assert not (other / ".git" / "FETCH_HEAD").exists()


def test_a_fetch_that_does_not_end_is_ended(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children, too: they would keep the pipes open."""
    programs = tmp_path / "bin"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *" fetch "*) sleep 600 & echo $! > {tmp_path}/pid; wait;; esac\nexec {real} "$@"\n'
    )
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(git_files, "_FETCH_SECONDS", 0.2)
    assert "no answer within 0.2 s" in refusal(compiled(tmp_path, "file:///x", "a" * 40))
    assert list(cache.iterdir()) == []
    stat = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert not stat.exists() or stat.read_text().split()[2] in ("Z", "X")
