"""The Python code on the documentation's pages is run: python blocks as scripts, pycon blocks as sessions."""

import collections
import doctest
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMPAT = ROOT / "docs" / "compat.md"
BLOCK = re.compile(r"^(<!-- not run: .*-->\n)?```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(page, kind):
    return [body for skipped, found, body in BLOCK.findall(page.read_text()) if found == kind and not skipped]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_scripts_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for body in blocks(page, "python"):
        exec(compile(body, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "pycon")], ids=lambda p: p.name)
def test_sessions_of(page):
    session = doctest.DocTestParser().get_doctest("\n".join(blocks(page, "pycon")), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(session)
    assert runner.failures == 0


def test_every_deliberate_difference_has_a_test():
    listed, file = collections.Counter(), None
    table = COMPAT.read_text().split("## Deliberate differences")[1]
    for where in re.findall(r"^\| (?:flax|mygrad|mlx-lattice|TorchLean) \|.*\| (.*) \|$", table, re.M):
        file = file if where == "the same" else where.strip("`")
        listed[file] += 1
    assert sum(listed.values()) >= 15
    for file, rows in listed.items():
        assert (ROOT / file).read_text().count("\ndef test_difference_") == rows, file
