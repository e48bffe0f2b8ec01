# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in what hooks print: masked in every form, wherever the output is cut into pieces."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from forewarn.hook_kinds.common.masking import Masker
from forewarn.hook_kinds.common.work import HttpReply, ProgramResult, Work
from forewarn.hook_kinds.galera_node import query
from forewarn.hook_kinds.patroni_api import request
from forewarn.runner.hooks.output import OUTPUT_PART_BYTES, Output
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples

# Of few letters, so that secrets overlap, repeat, and begin where others end.
SECRETS = st.lists(
    st.text('ab %"\n', min_size=1, max_size=12).filter(lambda text: text.strip()), min_size=1, max_size=3
)
NOISE = st.lists(st.text("abxy *\n", max_size=9), max_size=6)
FORMS = (
    str,
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: base64.b64encode(secret.strip().encode() + b"\n").decode(),
    lambda secret: quote(secret.strip()),
    lambda secret: quote(secret.strip(), safe=""),
    lambda secret: json.dumps(secret.strip())[1:-1],
)


@given(SECRETS, NOISE, st.data())
@settings(max_examples=examples(400))
def test_every_form_of_a_secret_is_masked(secrets: list[str], noise: list[str], data: st.DataObject) -> None:
    forms = [data.draw(st.sampled_from(FORMS))(data.draw(st.sampled_from(secrets))) for _part in noise]
    text = "".join(f"{part}{form}" for part, form in zip(noise, forms))
    whole, masker = Masker(secret.encode() for secret in secrets), Masker(secret.encode() for secret in secrets)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    pieces = [text[begin:end].encode() for begin, end in zip([0, *cuts], [*cuts, len(text)])]
    shown = b"".join([*map(masker.feed, pieces), masker.flush()]).decode()
    assert shown == whole.mask(text)
    for secret in {secret.strip() for secret in secrets} | set(forms):
        assert secret.strip() not in shown.replace("***", "\0") or not secret.strip(), (text, shown)


@given(st.text(max_size=60))
def test_what_has_no_secret_in_it_is_unchanged(text: str) -> None:
    masker = Masker([b"s3cret-\xc3\xa9"])
    assert masker.mask(text) == text
    assert Masker([]).mask(text) == text


def test_multiline_key_is_masked_line_by_line() -> None:
    key = b"-----BEGIN KEY-----\nMIIEvQIBADANBg\nq1Zf8w0BAQEFAA\n}\n"
    assert Masker([key]).mask("key: q1Zf8w0BAQEFAA }") == "key: *** }"


@given(st.integers(-20, 20), st.integers(1, 40))
@settings(max_examples=examples(200))
def test_secret_at_the_cut_of_output_is_masked(place: int, piece: int) -> None:
    secret = b"s3cret-of-the-drain"
    text = (
        b"." * (OUTPUT_PART_BYTES + place)
        + secret
        + b"." * (2 * OUTPUT_PART_BYTES)
        + secret
        + b"." * (OUTPUT_PART_BYTES + place)
    )
    output = Output((secret,))
    for begin in range(0, len(text), piece * 97):
        output.add(text[begin : begin + piece * 97])
    output.end()
    kept = output.text().partition("\n[")
    assert not set(kept[0]) - set(".*")
    assert not set(kept[2].partition("]\n")[2]) - set(".*")


def test_credentials_file_content_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    file = tmp_path / "credentials"
    file.write_text("admin:pa ss\n")
    work = Work({"url": "http://n1", "credentials": str(file)}, {}, 9.0, say=said.append)
    monkeypatch.setattr(Work, "http", lambda *_given, **_more: HttpReply(200, ""))
    request(work, "POST", "/switchover", {})
    work.say("refused: pa ss, admin:pa ss, pa%20ss, YWRtaW46cGEgc3M=")
    assert said == ["refused: ***, ***, ***, ***"]


def test_mariadb_client_password_is_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "galera.cnf"
    file.write_text("[client]\nuser = checker\npassword = 'pa55 word'\n")
    work = Work({"defaults_file": str(file)}, {}, 9.0, say=lambda _text: None)
    monkeypatch.setattr(Work, "run", lambda *_words, **_options: ProgramResult(0, "", ""))
    query(work, "SELECT 1")
    assert work.mask("checker pa55 word") == "checker ***"
