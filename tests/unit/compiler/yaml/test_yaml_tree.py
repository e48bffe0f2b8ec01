# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files that cannot be read, or would be misread, are findings with a place."""

from __future__ import annotations

from pathlib import Path

import pytest
from forewarn.compiler.findings import Finding, SourceText
from forewarn.compiler.yaml.tree import MOST_BYTES, Mapping, Scalar, YamlFile
from forewarn.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.suite.sizes import examples


def read(text: str | bytes) -> YamlFile:
    return YamlFile.from_bytes("f.yml", text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))


def only(text: str | bytes) -> Finding:
    (finding,) = read(text).report.findings
    return finding


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", (3, 1)),
        ("a: 1\n---\nb: 2\n", "several-documents", (2, 1)),
        ("a:\n\tb: 1\n", "tab", (2, 1)),
        ("a: !affects_me\n", "yaml-tag", (1, 4)),
        ("a: !!python/object:os.system {}\n", "yaml-tag", (1, 4)),
        ("a: !!binary YQ==\n", "yaml-tag", (1, 4)),
        ("# nothing\n", "empty-file", (1, 1)),
        ("---\n", "empty-file", (1, 1)),
        ("a: *x\n", "yaml-alias", (1, 4)),
        ("a: &x [*x]\n", "yaml-alias", (1, 8)),
        ("a: &x {b: *x}\n", "yaml-alias", (1, 11)),
        ("? [1, 2]\n: 3\n", "yaml-key", (1, 3)),
        ("a: 'b\nc: d\n", "yaml-syntax", (1, 4)),
        ("a: b: c\n", "yaml-syntax", (1, 5)),
        ("a: 'b' == c\n", "yaml-syntax", (1, 8)),
        ("a: `b`\n", "yaml-syntax", (1, 4)),
        ("a: @b\n", "yaml-syntax", (1, 4)),
        ("a:\n  - b\n c\n", "yaml-syntax", (3, 2)),
        ("a: {b: 1\nc: 2\n", "yaml-syntax", (2, 2)),
        ('a: "\\q"\n', "yaml-syntax", (1, 6)),
        ("a: b\x07\n", "encoding", (1, 5)),
        ("a: b\u2028c\n", "encoding", (1, 5)),
        ('a: "\\ud800"\n', "encoding", (1, 4)),
        (b"a: b\nc: \xff\n", "encoding", (2, 4)),
        ("a:" + " [" * 70 + "]" * 70, "too-large", (1, 130)),
    ],
)
def test_unreadable_file_has_a_code_and_place(text: str | bytes, code: str, place: tuple[int, int]) -> None:
    finding = only(text)
    assert (finding.code, (finding.line, finding.column)) == (code, place)
    assert finding.severity == "error"


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 30)]
    finding = only("\n".join(lines))
    assert finding.code == "too-large"
    assert finding.line < 7


def test_an_alias_stands_for_what_it_names() -> None:
    root = read("a: &hooks # shared\n  - run: [x]\nb: *hooks\nc: &t text\nd: *t\n").root
    assert root is not None
    assert root.data() == {"a": [{"run": ["x"]}], "b": [{"run": ["x"]}], "c": "text", "d": "text"}


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "f.yml"
    path.write_bytes(b"#" * (MOST_BYTES + 10))
    (finding,) = YamlFile.read(path).report.findings
    assert finding.code == "too-large"


def test_a_missing_file_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        YamlFile.read(tmp_path / "none.yml")
    with pytest.raises(InputError, match="directory"):
        YamlFile.read(tmp_path)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            (word, word)
            for word in ("on", "off", "yes", "no", "y", "n", "True", "NULL", "0123", "0o17", "0x1F", "1_000")
        ),
        *((word, word) for word in ("1:30", "2026-01-01", "2026-01-01T00:00:00Z", ".inf", "+5", "1.", "<<", "=")),
        ("9", 9),
        ("-1", -1),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("'9'", "9"),
        ('"true"', "true"),
        ("|-\n  9", "9"),
        ("1" * 5000, "1" * 5000),
    ],
)
def test_a_plain_scalar_is_what_it_looks_like(written: str, value: object) -> None:
    """YAML 1.1 would read ``on`` as true, ``0123`` as 83, ``1:30`` as 90 and a date as an object."""
    root = read(f"a: {written}\n").root
    assert isinstance(root, Mapping)
    node = root.get("a")
    assert isinstance(node, Scalar)
    assert node.data() == value
    assert type(node.data()) is type(value)


def test_a_byte_order_mark_moves_nothing() -> None:
    finding = only(b"\xef\xbb\xbfa: 1\r\na: 2\r\n")
    assert (finding.line, finding.column, finding.source_line) == (2, 1, "a: 2")


@given(st.text(alphabet="ab:-{}[]&*!|>'\"%@` \n\t#,?0~\r\x00é", max_size=40))
@settings(max_examples=examples(400), deadline=None)
def test_no_text_whatever_makes_the_reader_fail(text: str) -> None:
    file = read(text)
    assert file.root is None or not any(finding.code == "yaml-syntax" for finding in file.report.findings)
    if file.root is not None:
        file.root.data()


@given(st.binary(max_size=30))
def test_no_bytes_whatever_make_the_reader_fail(content: bytes) -> None:
    read(content)


@given(st.text(alphabet="a\r\n\té", max_size=30), st.data())
def test_a_place_is_where_an_editor_says(text: str, data: st.DataObject) -> None:
    source = SourceText("f", text)
    offset = data.draw(st.integers(0, len(text)))
    line, column = source.place(offset)
    before = text[:offset].replace("\r\n", "\n")
    if not (before.endswith("\r") and text[offset : offset + 1] == "\n"):  # within a CRLF: either is right
        before = before.replace("\r", "\n")
        assert line == before.count("\n") + 1
        assert column == len(before) - (before.rfind("\n") + 1) + 1
