"""The examples in docstrings are run as they stand."""

import doctest
import importlib
import pkgutil

import cenote
import pytest

# The part that needs JAX is tested beside JAX.
MODULES = ["cenote"] + [m.name for m in pkgutil.walk_packages(cenote.__path__, "cenote.") if "._jax" not in m.name]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_public_function_has_an_example():
    for name in cenote.__all__:
        item = getattr(cenote, name)
        if callable(item) and item.__module__.startswith("cenote._") and item.__module__ != "cenote._core":
            assert ">>>" in item.__doc__, name
