"""The node tests of poolings that the onnx package carries, through a small adapter from its attributes to cenote's."""

import importlib
import pkgutil
import warnings

import cenote
import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onnx.backend.test.case import node as node_tests

PADDING = {"SAME_UPPER": "same", "SAME_LOWER": "same_lower", "VALID": "valid"}


def windows(attributes):
    """The options of a window; ONNX gives all low paddings and then all high ones."""
    rank = len(attributes["kernel_shape"])
    pads = attributes.get("pads", [0] * 2 * rank)
    rule = attributes.get("auto_pad", b"NOTSET").decode()
    return dict(
        stride=attributes.get("strides", 1),
        dilation=attributes.get("dilations", 1),
        padding=PADDING.get(rule, tuple(zip(pads[:rank], pads[rank:]))),
        ceil=bool(attributes.get("ceil_mode", 0)),
    )


def max_pool(attributes, x):
    kind = "tensor_column" if attributes.get("storage_order", 0) else "tensor"
    options = dict(return_indices=True, index_kind=kind, **windows(attributes))
    return cenote.max_pool(x, attributes["kernel_shape"], **options)


def average_pool(attributes, x):
    divisor = "clipped" if attributes.get("count_include_pad", 0) else "valid"
    return (cenote.avg_pool(x, attributes["kernel_shape"], divisor=divisor, **windows(attributes)),)


def lp_pool(attributes, x):
    return (cenote.lp_pool(x, attributes["kernel_shape"], attributes.get("p", 2), **windows(attributes)),)


def max_unpool(attributes, x, indices, shape=None):
    """ONNX counts through the whole tensor that was pooled, the smallest that has these windows."""
    sizes = zip(x.shape[2:], attributes["kernel_shape"], attributes["strides"], windows(attributes)["padding"])
    plane = tuple((n - 1) * s + k - low - high for n, k, s, (low, high) in sizes)
    values = cenote.max_unpool(x, indices % np.prod(plane), x.shape[:2] + plane)
    more = [(0, 0)] * values.ndim if shape is None else [(0, a - b) for a, b in zip(shape, values.shape)]
    return (np.pad(values, more),)


RUN = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalMaxPool": lambda _, x: (cenote.global_max_pool(x),),
    "GlobalAveragePool": lambda _, x: (cenote.global_avg_pool(x),),
    "GlobalLpPool": lambda a, x: (cenote.lp_pool(x, x.shape[2:], a.get("p", 2)),),
    "MaxUnpool": max_unpool,
}


def cases():
    """Modules of node tests make their cases when they are imported; those of poolings have it in their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.iter_modules(node_tests.__path__):
            if "pool" in module.name:
                importlib.import_module(f"{node_tests.__name__}.{module.name}")
    return list(node_tests._NodeTestCases)


CASES = cases()


def test_every_pooling_of_onnx_is_here():
    # There is none of GlobalLpPool yet.
    assert {case.model.graph.node[0].op_type for case in CASES} | {"GlobalLpPool"} == set(RUN)
    assert len(CASES) >= 53


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_node_of_onnx(case):
    (node,) = case.model.graph.node
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    for inputs, outputs in case.data_sets:
        for got, expected in zip(RUN[node.op_type](attributes, *inputs), outputs):
            assert got.dtype == expected.dtype and got.shape == expected.shape
            if expected.dtype.kind == "f":
                assert_allclose(got, expected, rtol=case.rtol, atol=case.atol)
            else:
                assert_array_equal(got, expected)
