import pytest
import torch
from torch import nn
from torch.testing import assert_close

from mmlinattn.functional import softmax_free_attention
from mmlinattn.models import SoftmaxFreeAttention
from mmlinattn.models.attentions.landmarks import ConvSampler, fixed_grid

SAMPLERS = ('conv', 'pool', 'random', 'biased')


def build(embed_dims=24, num_heads=3, **kwargs):
    """A module whose every parameter matters."""
    module = SoftmaxFreeAttention(embed_dims, num_heads, **kwargs)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def paper_landmarks(module, name, q, hw_shape):
    """Landmarks (m, d) of one head, q (N, d); the last cell of a map that is narrower
    than one is cut off."""
    r = module.sampler.ratio
    rows, columns = (max(side // r, 1) for side in hw_shape)
    if name == 'biased':
        return q[: rows * columns]
    maps = q.T.unflatten(-1, hw_shape)[None]
    height, width = (min(side, r) for side in hw_shape)
    if name == 'pool':
        return nn.functional.avg_pool2d(maps, (height, width)).flatten(2)[0].T
    weight = module.sampler.conv.weight[..., :height, :width]
    landmarks = nn.functional.conv2d(maps, weight, stride=(height, width))
    norm = module.sampler.norm
    landmarks = nn.functional.layer_norm(
        landmarks.flatten(2)[0].T, (q.size(1),), norm.weight, norm.bias
    )
    return nn.functional.gelu(landmarks)


def paper_local_branch(module, v, head, hw_shape):
    """The head's filter on each of its channels, v (N, d)."""
    maps = v.T.unflatten(-1, hw_shape).unsqueeze(1)
    kernel = module.local_conv.weight[head : head + 1]
    maps = nn.functional.conv2d(maps, kernel, padding=kernel.size(-1) // 2)
    return maps.flatten(1).T


@pytest.mark.parametrize('attn_norm, attn_scale', ((False, True), (True, False)))
@pytest.mark.parametrize(
    'sampler, ratio, kernel_size, hw_shape',
    (('conv', 4, 3, (3, 13)), ('pool', 3, 0, (9, 7)), ('biased', 2, 3, (5, 4))),
)
def test_matches_the_paper_head_by_head(
    sampler, ratio, kernel_size, hw_shape, attn_norm, attn_scale
):
    module = build(
        sampler=sampler,
        sampling_ratio=ratio,
        kernel_size=kernel_size,
        attn_norm=attn_norm,
        attn_scale=attn_scale,
    ).double()
    x = torch.randn(1, hw_shape[0] * hw_shape[1], 24, dtype=torch.float64)
    heads = []
    for head in range(3):
        channels = slice(8 * head, 8 * (head + 1))
        q = module.q(x)[0, :, channels] / 8**0.25
        v = module.v(x)[0, :, channels]
        landmarks = paper_landmarks(module, sampler, q, hw_shape)
        out = softmax_free_attention(
            q[None, None],
            landmarks[None, None],
            v[None, None],
            normalize=attn_norm,
            ridge=0.0 if attn_norm else 0.01,
        )[0, 0]
        if attn_scale:
            omega = module.omega[head]
            out = (1 + omega) * out - omega * v.mean(0)
        if kernel_size:
            out = out + paper_local_branch(module, v, head, hw_shape)
        heads.append(out)
    expected = module.proj(torch.cat(heads, -1))[None]
    torch.testing.assert_close(module(x, hw_shape), expected)


@pytest.mark.parametrize(
    'hw_shape, grid',
    (
        ((56, 56), (7, 7)),
        ((200, 336), (5, 9)),
        ((3, 3), (3, 3)),
        ((1, 1000), (1, 49)),
        ((2, 9), (2, 9)),
    ),
)
def test_a_grid_of_nearly_square_cells(hw_shape, grid):
    """The grid of a transposed map is the transposed grid."""
    assert fixed_grid(7, hw_shape) == grid
    assert fixed_grid(7, hw_shape[::-1]) == grid[::-1]


@pytest.mark.parametrize('sampler', SAMPLERS)
@pytest.mark.parametrize('hw_shape', ((9, 11), (6, 6), (2, 7)))
def test_a_fixed_number_of_landmarks(sampler, hw_shape):
    """It does not grow with the map; a map with fewer tokens has fewer."""
    module = build(sampler=sampler, num_landmarks=9, sampling_ratio=2)
    q = torch.randn(2, 3, hw_shape[0] * hw_shape[1], 8)
    landmarks = module.sampler(q, hw_shape)
    num = {(9, 11): 9, (6, 6): 9, (2, 7): 3 if sampler == 'conv' else 8}[hw_shape]
    assert landmarks.shape == (2, 3, num, 8)
    assert module.sampler.num_landmarks(hw_shape) == num
    if sampler == 'conv':
        printed = build(sampling_ratio=2)
        printed.load_state_dict(module.state_dict())
        if hw_shape == (6, 6):  # as many as the convolution gives
            assert landmarks.equal(printed.sampler(q, hw_shape))
    if sampler == 'biased':
        assert landmarks.equal(q[:, :, : landmarks.size(2)])
    if sampler == 'pool' and hw_shape == (6, 6):
        same = build(sampler='pool', sampling_ratio=2).sampler(q, hw_shape)
        torch.testing.assert_close(landmarks, same)
    assert module(torch.randn(1, q.size(2), 24), hw_shape).isfinite().all()


def test_random_landmarks_are_drawn_anew_only_in_training():
    module = build(sampler='random', sampling_ratio=4, kernel_size=0)
    x = torch.randn(2, 20 * 12, 24)
    state = torch.get_rng_state()
    first = module(x, (20, 12))
    assert torch.get_rng_state().equal(state)
    torch.manual_seed(1)
    assert module(x, (20, 12)).equal(first)
    module.train()
    assert not module(x, (20, 12)).equal(module(x, (20, 12)))


def test_random_landmarks_are_tokens_of_the_map():
    module = build(sampler='random', sampling_ratio=2)
    q = torch.randn(2, 3, 35, 8)
    landmarks = module.sampler(q, (5, 7))
    assert landmarks.shape == (2, 3, 6, 8)
    is_token = (landmarks[:, :, :, None] == q[:, :, None]).all(-1)
    assert (is_token.sum(-1) == 1).all()  # each one a token
    assert (is_token.sum(-2) <= 1).all()  # no token twice
    assert (is_token == is_token[:1, :1]).all()  # the same for all


@pytest.mark.parametrize(
    'kwargs, message',
    (
        (dict(sampler='max'), "sampler.*conv.*'max'"),
        (dict(attn_norm='columns'), "'rows'.*'columns'"),
        (dict(num_landmarks=8), 'num_landmarks.*square.*8'),
        (dict(kernel_size=4), 'kernel_size.*4'),
        (dict(sampling_ratio=0), 'sampling_ratio.*0'),
        (dict(solver='lu'), "solver.*cholesky.*'lu'"),
        (dict(solver='cholesky'), 'positive ridge'),
        (dict(num_iters=0), 'num_iters.*0'),
        (dict(ridge=-0.1), 'ridge.*-0.1'),
        (dict(ridge=float('inf')), 'ridge.*inf'),
        (dict(exact_window=-1), 'exact_window.*-1'),
        (dict(exact_window=7), "exact_window=7.*'rows'"),
    ),
)
def test_wrong_options(kwargs, message):
    with pytest.raises(ValueError, match=message):
        build(**kwargs)


def test_landmarks_take_a_transposed_gradient():
    sampler = ConvSampler(64, ratio=4)
    q, grad = torch.randn(1, 1, 60 * 80, 64), torch.randn(1, 1, 64, 300).mT
    gradients = []
    for dtype in (torch.float32, torch.float64):
        landmarks = sampler.to(dtype)(q.to(dtype), (60, 80))
        weight = sampler.conv.weight
        gradients += torch.autograd.grad(landmarks, weight, grad.to(dtype))
    assert_close(gradients[0].double(), gradients[1], rtol=1e-3, atol=1e-3)
