"""Tensors of PyTorch in and out, held against its own poolings; where PyTorch is not installed, nothing is."""

import cenote
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is too large to be among the pinned peers")
F = torch.nn.functional
TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def picture(dtype=torch.float32, shape=(2, 3, 9, 11)):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_maxima_and_indices_are_torchs(dtype):
    x = picture(dtype)
    y, indices = cenote.max_pool(x, (3, 3), stride=2, padding=1, return_indices=True)
    expected, places = F.max_pool2d(x.double(), 3, 2, 1, return_indices=True)
    assert y.dtype == dtype and torch.equal(y.double(), expected)
    assert indices.dtype == torch.int64 and torch.equal(indices, places)
    back = F.max_unpool2d(expected, places, 3, 2, 1, output_size=x.shape)
    assert torch.equal(cenote.max_unpool(y, indices, tuple(x.shape)).double(), back)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("counted", [False, True])
def test_averages_with_ceil_are_torchs(ceil, counted):
    x = picture(torch.float64)
    y = cenote.avg_pool(x, (3, 2), stride=(2, 3), padding=1, ceil=ceil, divisor="clipped" if counted else "valid")
    assert torch.allclose(y, F.avg_pool2d(x, (3, 2), (2, 3), 1, ceil_mode=ceil, count_include_pad=counted))


def test_adaptive_and_norm_poolings_are_torchs():
    x = picture(torch.float64)
    assert torch.allclose(cenote.adaptive_avg_pool(x, (4, 3)), F.adaptive_avg_pool2d(x, (4, 3)))
    assert torch.equal(cenote.adaptive_max_pool(x, (4, 3)), F.adaptive_max_pool2d(x, (4, 3)))
    assert torch.allclose(cenote.lp_pool(x.abs(), (2, 2), 3, stride=2), F.lp_pool2d(x.abs(), 3, 2))


def test_gradients_are_torchs():
    x = picture().requires_grad_()
    y, pullback = cenote.vjp(cenote.max_pool, x.detach(), (2, 2), stride=2)
    F.max_pool2d(x, 2).sum().backward()
    assert torch.equal(pullback(torch.ones_like(y)), x.grad)


def test_memory_is_shared_and_written_in_place():
    x = picture().permute(0, 2, 3, 1)
    out = torch.zeros(2, 4, 5, 3)
    assert cenote.max_pool(x, (2, 2), stride=2, channels_last=True, out=out) is out
    assert torch.equal(out, F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1))
    assert cenote.max_pool(picture().expand(2, 2, 3, 9, 11), (2, 2)).shape == (2, 2, 3, 8, 10)


def test_folds_take_torchs_functions():
    x = picture()
    assert torch.allclose(cenote.pool(x, 0.0, torch.add, (2, 2)), 4 * F.avg_pool2d(x, 2, 1), atol=1e-6)


def test_a_tensor_that_requires_a_gradient_is_refused():
    with pytest.raises(RuntimeError, match="detach"):
        cenote.max_pool(picture().requires_grad_(), (2, 2))
