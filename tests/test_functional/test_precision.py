"""PyTorch's settings are the user's, before and after our products."""

from contextlib import nullcontext
from itertools import product

import pytest
import torch

from mmlinattn.functional import precision, softmax_free_attention

PLACES = ('generic', 'all'), ('mkldnn', 'all'), ('mkldnn', 'matmul')
VALUES = 'none', 'ieee', 'tf32', 'bf16'
inherits = pytest.mark.skipif(
    not hasattr(torch.backends, 'fp32_precision'), reason='nothing is inherited'
)


def read():
    return [torch._C._get_fp32_precision_getter(*place) for place in PLACES]


def write(values):
    for place, value in zip(PLACES, values):
        torch._C._set_fp32_precision_setter(*place, value)


@pytest.fixture
def unset():
    there = hasattr(torch.backends, 'fp32_precision')
    write(['none'] * 3 * there)
    yield
    write(['none'] * 3 * there)


def answers(values, context):
    """All that is read after a context, and after later changes of each setting."""
    settings = []
    for place, value in product(range(3), VALUES):
        write(values)
        with context():
            inside = read()[2]
        settings.append(read())
        torch._C._set_fp32_precision_setter(*PLACES[place], value)
        settings.append(read())
    return settings, inside


@inherits
def test_what_is_inherited_stays_so(unset):
    x = torch.zeros(1)
    for values in product(VALUES, repeat=3):
        expected, before = answers(values, nullcontext)
        settings, inside = answers(values, lambda: precision.full_precision(x))
        assert settings == expected, values
        assert inside == ('ieee' if before in ('tf32', 'bf16') else before), values


@inherits
def test_a_later_setting_reaches_products(unset):
    torch.backends.fp32_precision = 'bf16'
    q = torch.rand(1, 1, 32, 8)
    softmax_free_attention(q, q[:, :, ::4], q)
    assert torch.backends.mkldnn.matmul.fp32_precision == 'bf16'
    torch.backends.fp32_precision = 'ieee'
    assert torch.backends.mkldnn.matmul.fp32_precision == 'ieee'


@pytest.mark.parametrize('setting', ['highest', 'high', 'medium'])
def test_the_older_setting(unset, setting):
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(setting)
        allowed = torch.backends.cuda.matmul.allow_tf32
        with precision.full_precision(torch.zeros(1)):
            pass
        assert torch.get_float32_matmul_precision() == setting
        assert torch.backends.cuda.matmul.allow_tf32 == allowed
    finally:
        torch.set_float32_matmul_precision(before)
