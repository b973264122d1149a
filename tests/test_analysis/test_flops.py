import pytest
import torch
import torch.nn.functional as F
from mmpretrain.models.utils import WindowMSA
from torch import nn

from mmlinattn import models
from mmlinattn.analysis import count_flops

DEVICES = ('cpu', 'meta')


def kinds(model, *shapes, device='cpu'):
    """Multiply-accumulates by kind, without kinds of count zero."""
    inputs = [torch.zeros(shape, device=device) for shape in shapes]
    counted = count_flops(model.to(device), *inputs).by_kind()
    return {kind: macs for kind, macs in counted.items() if macs}


class Call(nn.Module):
    """A function as a model."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


LINEAR = dict(num_landmarks=49, attn_norm='rows', solver='cholesky', ridge=0.001)
LINEAR.update(relative_ridge=True)


def attending(attention, *hw_shape):
    """An attention as a model of tokens."""
    model = Call(lambda x: attention(x, hw_shape))
    model.attention = attention
    return model


def multihead(need_weights):
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    model = Call(lambda x: attention(x, x, x, need_weights=need_weights))
    model.attention = attention
    return model


MULTIHEAD = dict(linear=2 * 5 * 4 * 8 * 8, softmax_attention=2 * 2 * 5 * 5 * 8)
# layers, counts, and shapes of inputs
LAYERS = {
    'conv': (
        nn.Conv2d(4, 6, 3, padding=1),
        dict(conv=2 * 5 * 7 * 6 * 4 * 9),
        (2, 4, 5, 7),
    ),
    'conv-transposed': (
        nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2),
        dict(conv=5 * 7 * 4 * 3 * 4),
        (1, 4, 5, 7),
    ),
    'linear': (nn.Linear(8, 3), dict(linear=2 * 5 * 8 * 3), (2, 5, 8)),
    'matmul': (Call(lambda x: x @ x.mT), dict(matmul=2 * 3 * 5 * 5 * 4), (2, 3, 5, 4)),
    'einsum': (
        Call(lambda x: torch.einsum('bnhd,bmhd->bhnm', x, x)),
        dict(matmul=2 * 3 * 5 * 5 * 4),
        (2, 5, 3, 4),
    ),
    'layer-norm': (nn.LayerNorm(8), dict(norm=5 * 2 * 5 * 8), (2, 5, 8)),
    'group-norm': (nn.GroupNorm(2, 8), dict(norm=5 * 2 * 8 * 9), (2, 8, 3, 3)),
    'batch-norm': (nn.BatchNorm2d(8), dict(norm=2 * 2 * 8 * 9), (2, 8, 3, 3)),
    'instance-norm': (nn.InstanceNorm2d(8), dict(norm=4 * 2 * 8 * 9), (2, 8, 3, 3)),
    'bilinear': (
        nn.Upsample(scale_factor=2, mode='bilinear'),
        dict(resampling=4 * 8 * 6 * 10),
        (1, 8, 3, 5),
    ),
    'nearest': (nn.Upsample(scale_factor=2), dict(resampling=8 * 6 * 10), (1, 8, 3, 5)),
    'pool': (nn.AdaptiveAvgPool2d(1), dict(resampling=8 * 3 * 5), (1, 8, 3, 5)),
    'free': (nn.Sequential(nn.GELU(), nn.Softmax(-1)), {}, (2, 5, 8)),
    'multihead': (multihead(False), MULTIHEAD, (2, 5, 8)),
    'multihead-weights': (multihead(True), MULTIHEAD, (2, 5, 8)),
}
# by its sizes, for any kernel, with the masked part
LAYERS |= {
    f'attention-{name}': (
        Call(attend),
        dict(softmax_attention=2 * 3 * 5 * 7 * (4 + 6)),
        *((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), (5, 7)),
    )
    for name, attend in dict(
        bias=F.scaled_dot_product_attention,
        causal=lambda *qkv: F.scaled_dot_product_attention(*qkv[:3], is_causal=True),
        keywords=lambda q, k, v, _: F.scaled_dot_product_attention(
            query=q, key=k, value=v
        ),
    ).items()
}


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('name', LAYERS)
def test_layers(name, device):
    layer, expected, *shapes = LAYERS[name]
    assert kinds(layer, *shapes, device=device) == expected


def test_attention_written_out():
    """Other libraries' modules have known names, ours an attribute."""
    attention = WindowMSA(8, (3, 3), 2)
    products = 4 * 2 * 9 * 9 * 8
    expected = dict(linear=4 * 9 * 4 * 8 * 8, softmax_attention=products)
    assert kinds(attention, (4, 9, 8)) == expected
    model = attending(models.TalkingHeadsAttention(8, 2), 3, 3)
    expected['linear'] += 2 * 4 * 9 * 9 * 2 * 2  # heads are mixed twice
    assert kinds(model, (4, 9, 8)) == expected


@pytest.mark.parametrize('device', DEVICES)
def test_softmax_free_attention_is_counted_by_its_sizes(device):
    """Neither the device nor the solver changes the count. Of 100 landmarks, the
    automatic choice depends on the device."""
    counts = set()
    for solver in ('auto', 'newton', 'spectral'):
        attention = models.SoftmaxFreeAttention(16, 2, sampling_ratio=2, solver=solver)
        model = attending(attention, 20, 20)
        counts.add(tuple(kinds(model, (1, 400, 16), device=device).items()))
    (counted,) = counts
    # 20 steps, of two products of the kernel of 100 landmarks, of two heads
    steps = 2 * 20 * 2 * 100**3
    assert steps < dict(counted)['pseudo_inverse'] < 1.01 * steps


@pytest.mark.parametrize(
    'options',
    [
        dict(solver='newton'),
        dict(solver='newton', attn_norm='rows'),
        dict(solver='newton', attn_norm=False),
        dict(solver='cholesky', attn_norm=False),
        dict(LINEAR, exact_window=1),
        dict(LINEAR, exact_window=3),
    ],
)
def test_softmax_free_attention_is_what_it_computes(options, monkeypatch):
    """On small maps on a CPU, where kernels are matrices."""
    attention = models.SoftmaxFreeAttention(16, 2, sampling_ratio=2, **options)
    model = attending(attention, 20, 20)
    counted = kinds(model, (2, 400, 16))
    products = counted.pop('gaussian_kernel'), counted.pop('pseudo_inverse')
    monkeypatch.delattr(models.SoftmaxFreeAttention, 'count_products')
    computed = kinds(model, (2, 400, 16))
    factored = options['solver'] == 'cholesky'  # by operations that are not products
    expected = products[0] if factored else sum(products)
    assert computed == dict(counted, matmul=expected)


def test_forward_called_by_name():
    """As mmdet and mmseg do."""
    model = Call(lambda x: model.head.forward(x))
    model.head = Call(lambda x: x @ x)
    counted = count_flops(model, torch.zeros(1, 1, 4, 4))
    assert counted.macs == {('head', 'matmul'): 4**3}


def test_leaves_no_trace():
    """Even if the model fails."""
    failing = Call(lambda x: 1 / 0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), failing)
    model[1].eval()
    with pytest.raises(ZeroDivisionError):
        count_flops(model, torch.zeros(2, 4))
    assert [m.training for m in model.modules()] == [True, True, False, True]
    assert not any('forward' in vars(module) for module in model.modules())
    assert torch.is_grad_enabled()
