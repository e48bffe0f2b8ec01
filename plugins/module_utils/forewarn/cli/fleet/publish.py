# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``forewarn fleet publish``: signed policies for the VMs that pull them, a share of the VMs after the other."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ...analysis.diff.diff import Difference, compare
from ...analysis.query.query import query
from ...compiler.policies import load_policies
from ...errors import InputError
from ...events import parse_time
from ...fleet import signing, sources
from ...fleet.publish import ALL, Destination, Publication, Publisher
from ...policy.artifact import Artifact, encode, with_source
from ...policy.params import from_options
from ...policy.signature import Signers
from ...policy.waves import Wave
from ..output.console import Console, write_result
from ..output.page import iso
from ..policy.common import add_api_version, add_param
from ..policy.diff_options import add_fail_on, add_forbid, fail_on, is_refused
from ..policy.diff_report import Forbidden, show, show_forbidden
from ..policy.run_analysis import analysed
from .destination import Blobs, Files

_SETTINGS = ("to", "sign", "signers", "revoked_signers", "sas_file", "ca_file", "forbid", "fail_on", "paths")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="policy files, or directories of them (default: the policies that were published last)",
    )
    parser.add_argument(
        "--to", metavar="PLACE", help="file that a web server serves, or https address of a blob in Azure"
    )
    parser.add_argument("--sign", metavar="KEY", help="key that signs, as for policy compile")
    parser.add_argument("--signers", metavar="FILE", help="allowed signers of what is published (see ssh-keygen(1))")
    parser.add_argument("--revoked-signers", metavar="FILE", help="list of keys whose signatures are refused")
    parser.add_argument("--sas-file", metavar="FILE", help="file that has the SAS of an Azure container")
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to trust there (default: the system's)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--share", type=_share, metavar="PERCENT", help="for so many of the VMs, always the same first")
    what.add_argument(
        "--back", action="store_true", help="sign the policies before the last ones again, for all VMs at once"
    )
    parser.add_argument("--start", type=_time, metavar="TIME", help="when that share begins, such as 2026-12-01T08:00Z")
    add_api_version(parser)
    add_param(parser)
    add_fail_on(parser, "none")
    add_forbid(parser)
    parser.add_argument(
        "--settings", metavar="FILE", help=f"YAML file with any of {', '.join(_SETTINGS)}, which options override"
    )
    parser.add_argument("--check", action="store_true", help="show what would change, and publish nothing")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.epilog = (
        "Before anything is published, it is compared with what all VMs have, as policy diff does. Exit codes: 0 if it "
        "is published, 1 if --forbid or --fail-on refuses it, 2 for bad usage, 3 if the place does not answer."
    )


def run(args: argparse.Namespace) -> int:
    """Compare, and publish; return 1 and write nothing if the comparison refuses it."""
    _read_settings(args)
    for name in ("to", "sign", "signers"):
        if getattr(args, name) is None:
            raise InputError(f"--{name} is missing.", "Name it, also in the file of --settings.")
    signers = Signers(args.signers, args.revoked_signers)
    signers.check()
    publisher = Publisher(_destination(args), signers, args.sign)
    now = time.time()
    published = publisher.read()
    wave = _wave(args, publisher, published, now)
    everywhere = published.for_all(now)
    console = Console(sys.stderr if args.json else sys.stdout)
    # Nothing may delay the way back.
    if everywhere is not None and not args.back:
        old, new = publisher.artifact(everywhere), publisher.artifact(wave)
        if _refused(args, old, new, console):
            write_result(args.json, "publish", _content(args, published, published=False, refused=True))
            Console(sys.stderr).error("Nothing was published.", "Change the policies, or what is forbidden.")
            return 1
    done = published if args.check else publisher.publish(published, wave, now, remember=not args.back)
    _show(args, Publication((wave, *done.waves)) if args.check else done)
    return 0


def _wave(args: argparse.Namespace, publisher: Publisher, published: Publication, now: float) -> Wave:
    if args.back:
        if args.paths or args.start is not None:
            raise InputError("--back goes back to what was published, at once.", "Leave out policies and --start.")
        return publisher.back(published, now)
    if not args.paths:
        return publisher.widened(published, args.share, args.start, now)
    paths = [str(path.absolute()) for path in args.paths]
    compiled = load_policies(args.paths, args.api_version)
    newest = published.newest
    if newest is not None and publisher.artifact(newest).digest == compiled.digest:
        return publisher.widened(published, args.share, args.start, now)
    content = with_source(encode(compiled.data), sources.local(paths))
    return publisher.release(published, content, signing.serial_of(args.paths), args.share, args.start, now)


def _refused(args: argparse.Namespace, old: Artifact, new: Artifact, console: Console) -> bool:
    """Show the difference; return whether it must not be published."""
    given = from_options(args.param, (*old.params, *new.params))
    forbidden: list[Forbidden] = [
        Forbidden(one, analysed(partial(query, [old, new], one, given), expression=one)) for one in args.forbid
    ]
    difference: Difference = analysed(lambda progress: compare(old, new, given, progress))
    show(difference, console)
    show_forbidden(forbidden, ("published", "new"), console)
    console.line()
    return is_refused(difference, forbidden, args.fail_on)


def _show(args: argparse.Namespace, done: Publication) -> None:
    console = write_result(args.json, "publish", _content(args, done, published=not args.check))
    for wave in done.waves[: 1 if args.check else None]:
        who = "all VMs" if wave.share >= ALL else f"{wave.share:g} % of the VMs"
        who = "the other VMs" if wave.share >= ALL and wave is not done.waves[0] else who
        start = "" if wave.start is None else f", from {iso(wave.start)}"
        label = "would publish" if args.check else "published"
        console.result(label, f"serial {wave.serial} for {who}{start}, {wave.file}", "green")


def _content(args: argparse.Namespace, there: Publication, published: bool, refused: bool = False) -> dict[str, Any]:
    """Return the content of ``--json``: with --check the new wave and what is there, otherwise what is there now."""
    waves = [{**wave._asdict(), "start": None if wave.start is None else iso(wave.start)} for wave in there.waves]
    return {"to": args.to, "published": published, "refused": refused, "waves": waves}


def _destination(args: argparse.Namespace) -> Destination:
    if not re.match("(?i)https?://", args.to):
        return Files(args.to)
    if args.sas_file is None:
        raise InputError("--sas-file is missing.", "A SAS with the permissions r, c and w on the container is needed.")
    return Blobs(args.to, args.sas_file, args.ca_file)


def _read_settings(args: argparse.Namespace) -> None:
    """Fill in the options that the command line does not set. Paths are relative to the file. Raises InputError."""
    if args.settings is None:
        return
    found = _yaml(args.settings)
    unknown = sorted(set(found) - set(_SETTINGS))
    if unknown:
        raise InputError(f"{args.settings}: there is no setting {unknown[0]!r}.", f"There are {', '.join(_SETTINGS)}.")
    home = Path(args.settings).parent
    for name, value in found.items():
        many = name in ("forbid", "paths")
        texts = value if many and isinstance(value, list) else [value]
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise InputError(f"{args.settings}: {name} is not {'a list of texts' if many else 'a text'}.")
        if name == "forbid":
            args.forbid = [*args.forbid, *texts]
        elif name == "fail_on":
            args.fail_on = _fail_on(args, texts[0])
        elif name == "paths":
            args.paths = args.paths or ([] if args.back else [home / text for text in texts])
        elif getattr(args, name) is None:
            address = name == "to" and re.match("(?i)https?://", texts[0])
            setattr(args, name, texts[0] if address else str(home / texts[0]))


def _fail_on(args: argparse.Namespace, text: str) -> Sequence[str]:
    try:
        return args.fail_on if args.fail_on != ("none",) else fail_on(text)
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{args.settings}: fail_on: {error}.") from error


def _yaml(path: str) -> Mapping[str, Any]:
    import yaml  # here: only who has such a file needs it

    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}.") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} is not a mapping of settings.", f"Its settings are {', '.join(_SETTINGS)}.")
    return found


def _share(text: str) -> float:
    """Read --share. Raises argparse.ArgumentTypeError."""
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        share = 0.0
    if not 0 < share <= ALL:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage above 0 and up to 100")
    return share


def _time(text: str) -> float:
    """Read --start. Raises argparse.ArgumentTypeError."""
    try:
        return parse_time(text).timestamp()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-12-01T08:00:00Z") from error
