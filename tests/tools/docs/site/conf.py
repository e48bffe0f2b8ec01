# Copyright (c) 2026, Forewarn maintainers
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sphinx's configuration of the documentation site, which build.sh builds from a copy of the repository.

Links in the pages are written for a checkout, and work there. Those to a file that is no page go to the repository on
the web. docs/README.md is the navigation: each of its sections becomes one of the sidebar. Diagrams are shown as their
source: to draw them, a page would have to ask another site for a program.
"""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from posixpath import normpath

from sphinx.application import Sphinx

project = "forewarn.azure"
copyright = "Forewarn maintainers"
html_title = "forewarn.azure"

extensions = ["myst_parser", "sphinx_antsibull_ext"]
root_doc = "README"
include_patterns = ["*.md", "docs/**", "roles/*/README.md", "collection/*.rst"]
exclude_patterns = ["docs/docsite/**"]
# Pages of findings are linked from the lists of findings.
suppress_warnings = ["toc.not_included"]

myst_heading_anchors = 4
pygments_style = "ansible"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False

_REPOSITORY = "https://github.com/forewarn/forewarn.azure/blob/main"
# An image, or the target of a link.
_LINK = re.compile(r"!\[[^]]*\]\([^)]*\)|\]\((?!https?:|mailto:|#)([^)#\s]+)([^)\s]*)\)")
# What the pages of plugins refer to in Ansible's own documentation: its inventory is not to be had without a network.
_ANSIBLE = "https://docs.ansible.com/projects/ansible/latest"
_ANSIBLE_PAGES = {
    "action_plugins": ("Action plugins", "plugins/action.html"),
    "ansible_configuration_settings": ("Ansible Configuration Settings", "reference_appendices/config.html"),
    "callback_plugins": ("Callback plugins", "plugins/callback.html"),
    "common_return_values": ("Return Values", "reference_appendices/common_return_values.html"),
}
_ANSIBLE_REFERENCE = re.compile(rf":ref:`(?:([^`<]+) <)?({'|'.join(_ANSIBLE_PAGES)})>?`")
_CONTENTS = re.compile(r"^\.\. contents::\n(?: +:.*\n)*", re.MULTILINE)  # the theme has its own beside each page
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def setup(app: Sphinx) -> None:
    """Have Sphinx give us the text of each page before it is parsed."""
    app.connect("source-read", _prepare)


def _prepare(app: Sphinx, name: str, content: list[str]) -> None:
    if name == root_doc:
        content[0] += _navigation(Path(app.srcdir))
    if name.startswith("collection/"):
        content[0] = _ANSIBLE_REFERENCE.sub(_ansible_link, _CONTENTS.sub("", content[0]))
    else:
        parts = _FENCED.split(content[0])
        parts[::2] = [_LINK.sub(lambda match: _link(name, match), part) for part in parts[::2]]
        parts[1::2] = [part.replace("```mermaid\n", "```text\n", 1) for part in parts[1::2]]
        content[0] = "".join(parts)


def _navigation(tree: Path) -> str:
    """Return a table of contents of each section of docs/README.md, and one of what antsibull-docs writes."""
    index = (tree / "docs" / "README.md").read_text(encoding="utf-8")
    sections = [("Reference", ["collection/index"])]
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        links = re.findall(r"^- \[.*?\]\((.+?)\.md\)", section, re.MULTILINE)
        sections.append((section.splitlines()[0], [normpath(f"docs/{path}") for path in links]))
    return "".join(
        "\n".join(("", "```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```", ""))
        for title, pages in sections
    )


def _link(page: str, match: re.Match[str]) -> str:
    target, rest = match.groups()
    if target is None:
        return match[0]
    path = normpath(PurePosixPath(page).parent / target)
    if path.endswith(".md") and any(_includes(pattern, path) for pattern in include_patterns):
        return match[0]
    return f"]({_REPOSITORY}/{path}{rest})"


def _includes(pattern: str, path: str) -> bool:
    """Return whether a pattern of Sphinx includes a file; of the wildcards, only ``**`` crosses a slash."""
    return fnmatch(path, pattern) and ("**" in pattern or path.count("/") == pattern.count("/"))


def _ansible_link(match: re.Match[str]) -> str:
    words, label = match.groups()
    title, page = _ANSIBLE_PAGES[label]
    return f"`{words or title} <{_ANSIBLE}/{page}>`__"
