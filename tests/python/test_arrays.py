"""Arrays in, the same kind out: strides, read-only memory, lists, DLPack, and what is refused."""

import threading

import cenote
import ml_dtypes
import numpy as np
import pytest


def pooled(x):
    return cenote.max_pool(x, (2, 2))


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ml_dtypes.bfloat16],
)
def test_every_type_comes_back_as_itself(dtype):
    x = np.array([[0, 1, 0], [0, 0, 1]]).astype(dtype)
    y = pooled(x)
    assert isinstance(y, np.ndarray) and y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(int), [[1, 1]])


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1, ::-1],
        lambda a: a.T,
        lambda a: a[::2, 1::3],
        lambda a: np.broadcast_to(a[:1], (5, a.shape[1])),
        lambda a: np.asfortranarray(a),
        lambda a: a[1:2],
        lambda a: np.broadcast_arrays(a[:1], a)[0],
    ],
)
def test_any_strides_are_read_without_a_copy(view):
    a = np.random.default_rng(0).integers(0, 99, (8, 9)).astype(np.float32)
    x = view(a)
    expected = cenote.max_pool(np.ascontiguousarray(x), (1, 2))
    np.testing.assert_array_equal(cenote.max_pool(x, (1, 2)), expected)


def test_read_only_arrays_are_read():
    x = np.arange(6.0).reshape(2, 3)
    x.flags.writeable = False
    np.testing.assert_array_equal(pooled(x), [[4.0, 5.0]])


def test_misaligned_arrays_are_read():
    raw = np.zeros(4 * 6 + 1, np.uint8)
    x = raw[1:].view(np.float32).reshape(2, 3)
    x[...] = [[1, 2, 3], [6, 5, 4]]
    assert not x.flags.aligned
    np.testing.assert_array_equal(pooled(x), [[6, 5]])


def test_fields_with_odd_strides_are_read():
    x = np.zeros((2, 3), np.dtype([("a", "f4"), ("b", "u1")]))
    x["a"] = [[1, 2, 3], [6, 5, 4]]
    np.testing.assert_array_equal(pooled(x["a"]), [[6, 5]])


def test_lists_and_numbers_are_arrays():
    assert pooled([[1, 2], [3, 4]]).dtype == np.int64
    assert pooled([[1.0, 2], [3, 4]]).dtype == np.float64
    with pytest.raises(ValueError, match="rank 0"):
        cenote.max_pool(3.0, (2,))


@pytest.mark.parametrize(
    "x, said",
    [
        (np.zeros((2, 2), np.complex64), "complex64"),
        (np.zeros((2, 2), object), "object"),
        (np.zeros((2, 2), "U1"), "U1"),
        (np.zeros((2, 2), "M8[s]"), "datetime64"),
        (np.zeros((2, 2), ">f4"), "byte order"),
        (np.zeros((2, 2), np.longdouble), "longdouble|float128"),
        (np.ma.masked_array(np.zeros((2, 2)), True), "masked"),
    ],
)
def test_what_cannot_be_pooled_is_a_type_error(x, said):
    with pytest.raises(TypeError, match=said) as error:
        pooled(x)
    assert str(error.value).startswith("[max_pool] x ")


def test_bool_has_no_average():
    with pytest.raises(ValueError, match="bool"):
        cenote.avg_pool(np.zeros(3, bool), (2,))


class Exported:
    """A stand-in for an array of another library."""

    device = (1, 0)

    def __init__(self, array):
        self.array = np.asarray(array)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __array_namespace__(self):
        return Exported

    @classmethod
    def from_dlpack(cls, tensor):
        return cls(np.from_dlpack(tensor))


def test_dlpack_objects_come_back_as_their_kind():
    y = pooled(Exported(np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]))
    assert isinstance(y, Exported)
    np.testing.assert_array_equal(y.array, [[6], [10]])
    y, indices = cenote.max_pool(Exported([1.0, 2.0]), (2,), return_indices=True)
    assert isinstance(indices, Exported) and indices.array[0] == 1
    y, pullback = cenote.vjp(cenote.max_pool, Exported([1.0, 2.0]), (2,))
    assert isinstance(pullback(Exported([3.0])), Exported)


def test_read_only_dlpack_objects_are_read():
    x = np.arange(4.0)
    x.flags.writeable = False
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        # Older exporters have no way to say that memory is read-only, and theirs is the error.
        with pytest.raises(BufferError):
            cenote.max_pool(Exported(x), (2,))
        return
    np.testing.assert_array_equal(cenote.max_pool(Exported(x), (2,)).array, [1, 2, 3])


def test_arrays_on_a_gpu_are_not_implemented():
    x = Exported([1.0, 2.0])
    x.device = (2, 0)
    with pytest.raises(NotImplementedError, match="CPU"):
        cenote.max_pool(x, (2,))


def test_out_is_written_and_returned():
    x = np.arange(12.0).reshape(3, 4)
    out = np.zeros((4, 6))[::2, ::-2]
    assert cenote.max_pool(x, (2, 2), out=out) is out
    np.testing.assert_array_equal(out, pooled(x))
    values, indices = np.zeros((2, 3)), np.zeros((2, 3), np.int64)
    cenote.max_pool(x, (2, 2), return_indices=True, out=(values, indices))
    np.testing.assert_array_equal(values.ravel(), x.ravel()[indices.ravel()])
    shared = Exported(np.zeros((2, 3)))
    assert cenote.max_pool(x, (2, 2), out=shared) is shared
    np.testing.assert_array_equal(shared.array, values)


@pytest.mark.parametrize(
    "out, error",
    [
        (np.zeros((2, 2)), ValueError),
        (np.zeros((2, 3), np.float32), ValueError),
        (np.broadcast_to(np.zeros(3), (2, 3)), ValueError),
        ([[0.0] * 3] * 2, TypeError),
        (np.zeros((2, 3), ">f8"), TypeError),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out, error):
    with pytest.raises(error):
        cenote.max_pool(np.arange(12.0).reshape(3, 4), (2, 2), out=out)


def test_an_out_that_overlaps_is_refused():
    x = np.arange(8.0)
    with pytest.raises(ValueError, match="overlap"):
        cenote.max_pool(x, (2,), out=x[:7])


def test_results_outlive_their_inputs():
    y = cenote.max_pool(np.arange(1000.0), (2,))
    np.testing.assert_array_equal(y[:3], [1, 2, 3])
    y[0] = 7
    assert y.flags.writeable and y[0] == 7


def test_many_threads_get_the_same_answer():
    x = np.random.default_rng(1).random((64, 64, 64), dtype=np.float32)
    expected = cenote.avg_pool(x, (3, 3), padding="same")
    results = [None] * 8

    def work(i):
        for _ in range(5):
            results[i] = cenote.avg_pool(x, (3, 3), padding="same")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_the_gil_is_free_while_a_kernel_runs():
    import time

    x = np.random.default_rng(2).random((64, 512, 512), dtype=np.float32)
    done = threading.Event()
    thread = threading.Thread(target=lambda: (cenote.lp_pool(x, (9, 9), 3.5), done.set()))
    thread.start()
    ticks = 0
    while not done.is_set():
        time.sleep(0.0005)
        ticks += 1
    thread.join()
    assert ticks > 5


def test_a_call_costs_less_than_ten_microseconds():
    import timeit

    x = np.arange(64.0).reshape(8, 8)
    assert min(timeit.repeat(lambda: cenote.max_pool(x, (2, 2), stride=2), number=50, repeat=40)) / 50 < 10e-6
