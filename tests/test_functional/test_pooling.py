"""Pooling by matrices, for exports, equals PyTorch's functions."""

import pytest
import torch

from mmlinattn import functional as F
from mmlinattn.functional import pooling

pytestmark = pytest.mark.modern
SIZES = ((1, 1), (2, 7), (7, 7), (9, 13), (50, 31))


@pytest.fixture
def exported(monkeypatch):
    """Runs a function like an exporter."""

    def run(function, *args):
        with monkeypatch.context() as patch:
            patch.setattr(pooling, 'is_exported', lambda: True)
            return function(*args)

    return run


@pytest.mark.parametrize('cells', (1, 3, (2, 5), 7))
@pytest.mark.parametrize('hw_shape', SIZES, ids=str)
def test_adaptive(hw_shape, cells, exported):
    x = torch.randn(2, 3, *hw_shape, dtype=torch.float64)
    expected = F.adaptive_avg_pool2d(x, cells)
    torch.testing.assert_close(exported(F.adaptive_avg_pool2d, x, cells), expected)
