import pytest
import torch
from torch import nn

from mmlinattn.models import SoftmaxAttention

pytestmark = pytest.mark.modern


def build(**kwargs):
    module = SoftmaxAttention(24, 3, **kwargs)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


@pytest.mark.parametrize('attn_scale', (False, True))
@pytest.mark.parametrize('qkv_bias', (False, True))
@pytest.mark.parametrize('num_extra', (0, 1, 3))
def test_matches_the_equation_head_by_head(num_extra, qkv_bias, attn_scale):
    module = build(qkv_bias=qkv_bias, attn_scale=attn_scale).double()
    x = torch.randn(2, num_extra + 35, 24, dtype=torch.float64)
    q, k, v = module.qkv(x).split(24, dim=-1)
    heads = []
    for head in range(3):
        part = slice(8 * head, 8 * (head + 1))
        attn = (q[..., part] @ k[..., part].mT / 8**0.5).softmax(-1)
        if attn_scale:
            low = torch.full_like(attn, 1 / attn.size(-1))
            attn = low + (1 + module.omega[head]) * (attn - low)
        heads.append(attn @ v[..., part])
    expected = module.proj(torch.cat(heads, -1))
    torch.testing.assert_close(module(x, (5, 7)), expected)


def test_attn_scale_is_the_identity_at_start():
    plain = build()
    scaled = SoftmaxAttention(24, 3, attn_scale=True)
    assert not scaled.load_state_dict(plain.state_dict(), False).unexpected_keys
    x = torch.randn(2, 36, 24)
    assert scaled(x, (5, 7)).equal(plain(x, (5, 7)))
    assert list(scaled.omega.shape) == [3]


def test_dropout_only_in_training():
    module = build(attn_drop=0.5)
    x = torch.randn(2, 35, 24)
    assert module(x, (5, 7)).equal(module(x, (5, 7)))
    module.train()
    assert not module(x, (5, 7)).equal(module(x, (5, 7)))


def test_wrong_heads():
    with pytest.raises(ValueError, match='num_heads=5.*embed_dims=24'):
        SoftmaxAttention(24, 5)
