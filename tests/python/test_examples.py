"""The example scripts run, hold what they assert, and leave the pictures that they say."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "examples" / "python").glob("*.py") if path.name != "pictures.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script, tmp_path):
    picture = tmp_path / "picture.png"
    subprocess.run([sys.executable, script, "--quick", "--out", picture], check=True, cwd=tmp_path, timeout=60)
    assert picture.read_bytes().startswith(b"\x89PNG")
    # The full picture is on the page about the package.
    shown = f"pictures/{script.stem}.png"
    assert (ROOT / "docs" / shown).exists() and shown in (ROOT / "docs" / "python.md").read_text()
