"""Legend: h heads, N queries, M keys, C channels."""

import pytest
import torch

from mmlinattn.analysis import (
    attention_bound,
    ffn_bound,
    high_frequencies,
    mean_leakage,
    smoothing_rate,
    softmax_bound,
)

pytestmark = pytest.mark.modern


def random(*shape):
    return torch.randn(shape, dtype=torch.float64)


def size(x):
    return high_frequencies(x).norm(dim=(-2, -1))


def test_high_frequencies_in_the_fourier_domain():
    x = random(2, 7, 3)
    spectrum = torch.fft.fft(x, dim=-2)
    spectrum[:, 0] = 0
    torch.testing.assert_close(
        high_frequencies(x), torch.fft.ifft(spectrum, dim=-2).real
    )


def test_rate_of_a_circulant_by_hand():
    """c = (1/2, 1/4, 0, 1/4) has the transform (1, 1/2, 0, 1/2)."""
    column = torch.tensor([0.5, 0.25, 0, 0.25], dtype=torch.float64)
    index = torch.arange(4)
    attn = column[(index[:, None] - index) % 4]
    assert smoothing_rate(attn).item() == pytest.approx(0.5)
    assert smoothing_rate(torch.full((4, 4), 0.25)).item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize('num, keys', ((6, 6), (5, 9), (1, 1)))
def test_rate_and_leakage_bound_any_matrix(num, keys):
    """The rate is reached, the sum of both holds, and neither alone would."""
    attn = random(3, num, keys)
    rate, leakage = smoothing_rate(attn), mean_leakage(attn)
    x = random(3, keys, 4) + 5
    dc_norm = x.mean(-2).norm(dim=-1) * keys**0.5
    assert (size(attn @ x) <= rate * size(x) + leakage * dc_norm + 1e-9).all()
    if num > 1:
        assert (size(attn @ x) > rate * size(x)).all()
        assert (size(attn @ x.mean(-2, keepdim=True).expand_as(x)) > 0).all()
        _, _, rows = torch.linalg.svd(high_frequencies(high_frequencies(attn).mT).mT)
        worst = rows[:, 0, :, None]
        torch.testing.assert_close(size(attn @ worst), rate)
    ones = torch.ones(keys, 1, dtype=attn.dtype)
    torch.testing.assert_close(size(attn @ ones), leakage * keys**0.5)


def test_no_leakage_of_softmax():
    assert mean_leakage(random(4, 6, 6).softmax(-1)).max() < 1e-15


@pytest.mark.parametrize('num', (5, 40))
@pytest.mark.parametrize('scale', (0.01, 30))
def test_bound_by_the_logits(scale, num):
    """As Theorem 3 has it, of logits from -a to a; above every rate, that of more
    queries than keys, too."""
    logits = scale * random(50, num, 5)
    attn = logits.softmax(-1)
    half = (logits.amax(-1) - logits.amin(-1)).amax(-1) / 2
    e = (2 * half).exp()
    expected = (num / (1 + 4 / e)).sqrt()
    torch.testing.assert_close(softmax_bound(attn), expected)
    assert (torch.linalg.matrix_norm(attn, 2) <= softmax_bound(attn) + 1e-9).all()
    assert (smoothing_rate(attn) <= softmax_bound(attn)).all()


def test_bound_by_the_logits_at_its_ends():
    """Of equal weights 1; of one weight the root of N, which the norm of A reaches."""
    assert softmax_bound(torch.full((7, 7), 1 / 7)).item() == pytest.approx(1)
    one = torch.eye(7)[:1].expand(7, 7)
    assert softmax_bound(one).item() == pytest.approx(7**0.5)
    assert torch.linalg.matrix_norm(one, 2).item() == pytest.approx(7**0.5)
    with pytest.raises(ValueError, match='negative, got -0.5'):
        softmax_bound(torch.tensor([[1.5, -0.5], [0, 1]]))


def orthogonal(num):
    return torch.linalg.qr(random(num, num))[0]


def test_bound_of_heads():
    """Heads of their own sizes: no less than what is left, and reached by one head of
    an orthogonal projection, where 1 % less would be too little."""
    x, maps = random(9, 8), random(2, 9, 9).softmax(-1)
    values, weight = random(8, 8), random(8, 8)
    parts, heads = (x @ values.mT).split([2, 6], -1), []
    for attn, head, part in zip(maps, values.split([2, 6]), parts):
        bound = smoothing_rate(attn) * torch.linalg.matrix_norm(head, 2) * size(x)
        assert size(attn @ part) <= bound
        heads.append(bound)
    out = torch.cat([attn @ part for attn, part in zip(maps, parts)], -1) @ weight.mT
    bound = attention_bound(torch.stack(heads), weight, [2, 6])
    assert size(out) <= bound and size(x + out) <= size(x) + bound
    weight = 3 * orthogonal(8)
    bound = attention_bound(size(x)[None], weight, [8])
    torch.testing.assert_close(size(x @ weight.mT), bound)
    assert size(x @ weight.mT) > 0.99 * bound


def test_bound_of_ffns():
    """Of a random one, and reached by a linear one."""
    x, first, second = random(9, 4), random(11, 4), random(4, 11)
    out = torch.nn.functional.gelu(x @ first.mT + random(11)) @ second.mT
    assert size(out) <= ffn_bound(first, second, 1.1290) * size(x)
    first, second = 2 * orthogonal(4), 3 * orthogonal(4)
    bound = ffn_bound(first, second, 1.0) * size(x)
    torch.testing.assert_close(size(x @ first.mT @ second.mT), bound)
