"""Filters of pictures held against scipy.ndimage, and blocks against scikit-image: the same windows, other borders."""

import cenote
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage
from skimage.measure import block_reduce

TYPES = ("u1", "i2", "i4", "i8", "f4", "f8")


@st.composite
def pictures(draw, types=TYPES):
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 9)) for _ in range(rank)]
    window = tuple(draw(st.integers(1, 5)) for _ in range(rank))
    numbers = np.random.default_rng(draw(st.integers(0, 999))).integers(0, 99, shape)
    return numbers.astype(draw(st.sampled_from(types))), window


def centred(window):
    """scipy's window of output o begins at o - k // 2."""
    return tuple((k // 2, k - 1 - k // 2) for k in window)


@settings(deadline=None, max_examples=50)
@given(picture=pictures())
def test_extremum_filters_are_scipys(picture):
    x, window = picture
    padding = centred(window)
    # Padding never wins here. There it is a number, which does not win either if it is as far out as any cell.
    expected = ndimage.maximum_filter(x, size=window, mode="constant", cval=0)
    assert_array_equal(cenote.max_pool(x, window, padding=padding), expected)
    expected = ndimage.minimum_filter(x, size=window, mode="constant", cval=99)
    assert_array_equal(cenote.min_pool(x, window, padding=padding), expected)


@settings(deadline=None, max_examples=30)
@given(picture=pictures())
def test_extremum_filters_are_scipys_where_borders_repeat_the_nearest_cell(picture):
    # A maximum does not notice that a cell is repeated when the window holds it anyhow.
    x, window = picture
    window = tuple(k | 1 for k in window)
    padding = centred(window)
    assert_array_equal(cenote.max_pool(x, window, padding=padding), ndimage.maximum_filter(x, window, mode="nearest"))
    assert_array_equal(cenote.min_pool(x, window, padding=padding), ndimage.minimum_filter(x, window, mode="nearest"))


@settings(deadline=None, max_examples=50)
@given(picture=pictures(types=("f4", "f8")))
def test_uniform_filters_are_scipys(picture):
    x, window = picture
    expected = ndimage.uniform_filter(x.astype(float), size=window, mode="constant", cval=0.0)
    assert_allclose(cenote.avg_pool(x, window, padding=centred(window)), expected, rtol=1e-5, atol=1e-4)


@settings(deadline=None, max_examples=30)
@given(picture=pictures(types=("f8",)), axis=st.integers(0, 2), size=st.integers(1, 12))
def test_filters_along_one_axis_are_scipys(picture, axis, size):
    x, axis = picture[0], axis % picture[0].ndim
    options = dict(axes=axis, padding=centred((size,)))
    one = dict(size=size, axis=axis, mode="constant")
    assert_array_equal(cenote.max_pool(x, size, **options), ndimage.maximum_filter1d(x, cval=-np.inf, **one))
    assert_array_equal(cenote.min_pool(x, size, **options), ndimage.minimum_filter1d(x, cval=np.inf, **one))
    assert_allclose(cenote.avg_pool(x, size, **options), ndimage.uniform_filter1d(x, **one), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [31, 101, 255])
def test_large_windows_are_scipys(size):
    x = np.random.default_rng(size).random((120, 130))
    window, padding = (size, size), centred((size, size))
    expected = ndimage.maximum_filter(x, size, mode="constant", cval=-np.inf)
    assert_array_equal(cenote.max_pool(x, window, padding=padding), expected)
    expected = ndimage.uniform_filter(x, size, mode="constant")
    assert_allclose(cenote.avg_pool(x, window, padding=padding), expected, rtol=1e-10)


def test_a_nan_spreads_over_its_own_windows_only_here():
    # scipy's running sums carry it to the end of the line; its maximum depends on the order of comparisons.
    x = np.arange(12.0)
    x[3] = np.nan
    here = np.isnan(cenote.avg_pool(x, (3,), padding=1))
    assert_array_equal(np.nonzero(here)[0], [2, 3, 4])
    there = np.isnan(ndimage.uniform_filter1d(x, 3, mode="constant"))
    assert there.sum() > here.sum()
    assert_array_equal(np.nonzero(np.isnan(cenote.max_pool(x, (3,), padding=1)))[0], [2, 3, 4])


@settings(deadline=None, max_examples=50)
@given(picture=pictures(types=("u1", "i4", "f8")))
def test_blocks_are_scikit_images(picture):
    """block_reduce pads on the high side by cval up to whole blocks, which is ceil with a zero border."""
    x, window = picture
    options = dict(stride=window, padding=tuple((0, -n % k) for n, k in zip(x.shape, window)))
    wide = {"u1": np.uint64, "i4": np.int64, "f8": None}[x.dtype.str[1:]]
    assert_array_equal(cenote.sum_pool(x, window, dtype=wide, **options), block_reduce(x, window, np.sum))
    assert_array_equal(cenote.max_pool(x, window, **options), block_reduce(x, window, np.max))
    assert_allclose(cenote.avg_pool(x, window, **options), block_reduce(x, window, np.mean), rtol=1e-6)
    assert_array_equal(cenote.min_pool(x, window, **options), block_reduce(x, window, np.min, cval=99))
