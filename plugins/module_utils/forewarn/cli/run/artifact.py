# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which policies a runner uses: those of the configuration, those that were in use last, or what the source offers.

With ``signers`` all of them need a valid signature, and a serial that is not older than that in use: docs/signing.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import InputError
from ...policy.artifact import MAX_BYTES, Artifact, load, load_file
from ...policy.engine import PolicySet
from ...runner.state import accepted_policy
from ...runner.state.accepted_policy import AcceptedPolicy, OlderPolicyError, SignedPolicy
from ...system import trust
from ...system.account import is_administrator
from ...system.files import open_to_read

if TYPE_CHECKING:
    from ...policy.signature import Signers


class LoadedPolicy(NamedTuple):
    """An artifact. With signers: its signed bytes, and ``problem``, why it is not that of the configuration.

    ``since`` is when this VM put it in use, in seconds since 1970, or None if it has not yet.
    """

    artifact: Artifact
    signed: SignedPolicy | None = None
    since: float | None = None
    problem: str | None = None


def accept(loaded: LoadedPolicy, state: str) -> LoadedPolicy:
    """Remember signed policies before they are put in use, and return them. Raises InputError."""
    if loaded.signed is None or loaded.artifact.serial is None:
        return loaded
    return loaded._replace(since=accepted_policy.accept(state, loaded.artifact.serial, loaded.signed).since)


class SignedFiles(NamedTuple):
    """What checks signed policies: who may sign, the state directory if there is one, and whether there is a source.

    ``scratch`` is a directory for temporary files, None where the system has its own.
    """

    signers: Signers
    state: str | None
    scratch: str | None = None
    has_source: bool = False

    def load(self, path: str) -> LoadedPolicy:
        """Return the policies of the configuration, or those in use if those are refused or older than the source's.

        Raises InputError if neither can be used.
        """
        accepted: AcceptedPolicy | None = None
        try:
            accepted = accepted_policy.read_accepted(self.state)
            return self._checked(self._read(path), path, accepted)
        except InputError as error:
            if accepted is None:
                raise
            try:
                found = self._checked(accepted.policy, "the policy in use", accepted)
            except InputError:
                raise error from None
            # With a source, the file is what the VM began with.
            expected = self.has_source and isinstance(error, OlderPolicyError)
            return found._replace(problem=None if expected else str(error))

    def check_offer(self, offer: SignedPolicy) -> LoadedPolicy:
        """Return what the source has offered. Raises InputError if it is refused."""
        return self._checked(offer, "the policy of the source", accepted_policy.read_accepted(self.state))

    def verify_file(self, path: str) -> Artifact:
        """Return the artifact in a signed file, whatever its serial. Raises InputError."""
        return self._verified(self._read(path), path)

    def _read(self, path: str) -> SignedPolicy:
        from ...policy.signature import MAX_SIGNATURE_BYTES, SUFFIX  # here: most have no signers

        trust.check_file(path, "artifact")
        return SignedPolicy(_content(path, MAX_BYTES), _content(path + SUFFIX, MAX_SIGNATURE_BYTES))

    def _checked(self, policy: SignedPolicy, what: str, accepted: AcceptedPolicy | None) -> LoadedPolicy:
        in_use = accepted is not None and accepted.policy == policy
        artifact = self._verified(policy, what, accepted.since if accepted is not None and in_use else None)
        if artifact.serial is None:
            hint = "Compile it again with --sign."
            raise InputError(f"{what} has no serial, so that nobody can tell whether it is older.", hint)
        oldest = accepted_policy.oldest_serial(self.state)
        if artifact.serial < oldest:
            raise OlderPolicyError(
                f"{what} has serial {artifact.serial}, which is older than {oldest}, the one in use.",
                "Sign it again with a newer serial, or accept it on this VM: forewarn policy accept --older",
            )
        same = accepted is not None and accepted.serial == artifact.serial
        return LoadedPolicy(artifact, policy, accepted.since if accepted is not None and same else None)

    def _verified(self, policy: SignedPolicy, what: str, accepted: float | None = None) -> Artifact:
        try:
            self.signers.verify(policy.artifact, policy.signature, self.scratch, accepted)
            return load(policy.artifact)
        except InputError as error:
            raise InputError(f"{what} is refused: {error.message}", error.hint) from error


def load_artifact(path: str, api_version: str | None, files: SignedFiles | None) -> LoadedPolicy:
    """Return the artifact of the configuration, or the one in use. Raises InputError."""
    if files is None:
        trust.check_file(path, "artifact")
        loaded = LoadedPolicy(load_file(path))
    else:
        loaded = files.load(path)
    return check_api_version(loaded, path, api_version)


def check_api_version(loaded: LoadedPolicy, path: str, api_version: str | None) -> LoadedPolicy:
    """Return what was loaded. Raises InputError if it is for another api-version than the one that is wanted."""
    if api_version not in (None, loaded.artifact.api_version):
        raise InputError(
            f"{path} is compiled for api-version {loaded.artifact.api_version}, not {api_version}.",
            f"Compile it again with --api-version {api_version}, or leave the option out.",
        )
    return loaded


def load_shadow(path: str, api_version: str, params: Mapping[str, Any], files: SignedFiles | None) -> PolicySet:
    """Return the policies that decide without effect. Raises InputError."""
    if files is None:
        trust.check_file(path, "artifact")
        artifact = load_file(path)
    else:
        artifact = files.verify_file(path)
    if artifact.api_version != api_version:
        raise InputError(
            f"{path} is compiled for api-version {artifact.api_version}, the live policies for {api_version}.",
            "Compile both for the same.",
        )
    declared = {entry["name"] for entry in artifact.params}
    return PolicySet(artifact, {name: value for name, value in params.items() if name in declared})


def compile_now(paths: Sequence[str], api_version: str) -> Artifact:
    """Return policies that are compiled from files. Raises InputError."""
    hint = "Use --artifact with the output of 'forewarn policy compile' on another machine."
    if sys.version_info < (3, 11):
        raise InputError("--policy compiles policies, which needs Python 3.11 or newer.", hint)
    # Imported here: a VM that runs an artifact has neither the compiler nor its libraries.
    try:
        from ...compiler.imports.libraries import imported_files
        from ...compiler.paths import find_policies, paths_of
        from ...compiler.policies import load_policies
        from ...compiler.requirements import MissingLibraryError
    except ModuleNotFoundError as error:
        raise InputError(f"--policy compiles policies, which needs the missing module {error.name}.", hint) from error
    try:
        found = paths_of(paths)
        if is_administrator():  # other users run policies of their own; an artifact is always checked
            policies = find_policies(found)
            for policy in policies:
                trust.check_file(str(policy.path), "policy")
            for origin in imported_files(policies).found:
                if (library := origin.file) is not None:
                    trust.check_file(str(library), "library of policies")
        return load_policies(found, api_version)
    except MissingLibraryError as error:
        raise InputError(f"--policy: {error.message}.", hint) from error


def _content(path: str, most: int) -> bytes:
    try:
        # Others may add to a directory such as /tmp: a signature that is a pipe must not stop the runner.
        with os.fdopen(open_to_read(path), "rb") as file:
            content = file.read(most + 1) or b""
    except OSError as error:
        hint = "With signers, an artifact needs the signature that forewarn policy compile --sign writes beside it."
        raise InputError(f"{path}: {error.strerror}.", hint) from error
    if len(content) > most:
        raise InputError(f"{path} is larger than {most} bytes.")
    return content
