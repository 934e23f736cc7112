"""The wheel that `make python` left works where nothing else of the project is."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

WHEELS = sorted((pathlib.Path(__file__).parents[2] / "build" / "wheel").glob("cenote-*.whl"))
CHECK = """
import cenote
assert cenote.max_pool([[1, 2], [3, 4]], (2, 2)).tolist() == [[4]]
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libtbb" in line or "libhwy" in line}
assert len(loaded) == 1 and "site-packages/cenote/libtbb" in loaded.pop()
assert cenote.simd_target() in ("SSE4", "AVX2", "AVX3", "NEON"), cenote.simd_target()
"""


@pytest.fixture(scope="module")
def wheel():
    assert len(WHEELS) == 1, "`make python` leaves one wheel in build/wheel"
    return WHEELS[0]


def test_a_wheel_carries_its_libraries_and_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "cenote/py.typed" in names and "cenote/_core.pyi" in names
    assert [name.split(".so")[0] for name in names if ".so" in name and "_core" not in name] == ["cenote/libtbb"]
    assert not any(name.startswith(("include", "lib/", "src")) for name in names)


def test_a_wheel_works_in_a_clean_environment(wheel, tmp_path):
    moved = tmp_path / wheel.name
    moved.write_bytes(wheel.read_bytes())
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", moved], check=True)
    subprocess.run([python, "-c", CHECK], check=True, cwd=tmp_path)
