import pytest
import torch
from launches import Launches
from torch import nn

from mmlinattn.models import SOFT, LinearSOFTPlusPlus, SOFTPlusPlus

ARCH = dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4])


def attentions(model):
    return [stage.blocks[0].attn for stage in model.stages]


def images(height=64, width=97):
    return torch.randn(2, 3, height, width)


def learn(model):
    """One backward pass that reaches every parameter."""
    outs = model.train()(images())
    sum((out * torch.randn_like(out)).sum() for out in outs).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    return outs


@pytest.mark.parametrize('ratios', ((4, 2, 2, 1), [16, 8, 4, 2]))
def test_sampling_ratios(ratios):
    model = SOFTPlusPlus(ARCH, sampling_ratios=ratios)
    assert model.with_cls_token == (ratios[-1] == 1)
    sampled = attentions(model)[: 3 if model.with_cls_token else 4]
    assert [a.sampler.ratio for a in sampled] == list(ratios)[: len(sampled)]
    learn(model)


@pytest.mark.parametrize(
    'options, kernels',
    (
        (dict(patch_embed='overlap'), [3, 3, 3, 3]),
        (dict(patch_embed='patch'), [4, 2, 2, 2]),
        (
            dict(
                patch_embed=dict(type='ConvEmbedding', kernel_size=7, stride=4),
                merging=dict(type='ConvEmbedding', kernel_size=5),
            ),
            [7, 5, 5, 5],
        ),
    ),
    ids=('overlap', 'patch', 'configs'),
)
def test_patch_embedding(options, kernels):
    model = SOFTPlusPlus(ARCH, **options)
    convs = [
        next(m for m in stage.embedding.modules() if isinstance(m, nn.Conv2d))
        for stage in model.stages
    ]
    assert [conv.kernel_size[0] for conv in convs] == kernels
    assert model.stages[0].pos_embed.hw_shape == (56, 56)
    assert [out.shape[2:] for out in learn(model)] == [
        (16, 25),
        (8, 13),
        (4, 7),
        (2, 4),
    ]


def test_kept_scale():
    """At the size of the training nothing changes."""
    scaled = SOFT(ARCH, keep_scale=True, img_size=96).eval()
    assert [a.trained_size for a in attentions(scaled)[:3]] == [
        (576, 9),
        (144, 9),
        (36, 9),
    ]
    model = SOFT(ARCH, img_size=96).eval()
    scaled.load_state_dict(model.state_dict())
    for (height, width), same in (((96, 96), True), ((96, 160), False)):
        x = images(height, width)
        for a, b in zip(model(x), scaled(x)):
            assert torch.allclose(a, b, atol=1e-6) == same


@pytest.mark.parametrize('exact_window, most', ((0, 445), (1, 480), (7, 550)))
def test_a_prediction_is_a_few_launches(exact_window, most):
    model = LinearSOFTPlusPlus('tiny', exact_window=exact_window).eval()
    with torch.no_grad(), Launches() as launches:
        model(torch.randn(1, 3, 96, 448))  # seven divides widths only, as at 800 x 1344
    assert launches.names['linalg_cholesky_ex'] == 9
    assert launches.names.total() <= most, launches.names


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(sampling_ratios=(8, 4, 2)), 'sampling_ratios.*4 stages.*3'),
        (dict(sampling_ratios=(8, 1, 2, 1)), r'sampling_ratios.*\(8, 1, 2, 1\)'),
        (dict(kernel_sizes=(9, 5)), 'kernel_sizes.*4 stages.*2'),
        (dict(patch_embed='conv'), "patch_embed.*overlap.*'conv'"),
        (dict(patch_embed=dict(mid_channels=3)), "patch_embed.*'type'"),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        SOFT(**{'arch': ARCH, **options})


def attention_types(model):
    return [type(attn).__name__ for attn in attentions(model)]


def test_attention_replaces_the_softmax_free_one():
    """A config replaces all of them, a list stage by stage."""
    free, own, other = 'SoftmaxFreeAttention', 'SoftmaxAttention', 'EfficientAttention'
    cfg = dict(type=other)
    model = SOFT(ARCH, attention=cfg)
    assert attention_types(model) == [other, other, other, own]
    model = SOFT(ARCH, attention=cfg, sampling_ratios=(8, 4, 2, 2))
    assert attention_types(model) == [other] * 4
    model = SOFT(ARCH, attention=[cfg] * 4)
    assert attention_types(model) == [other] * 4
    model = SOFT(ARCH, attention=[None, cfg, None, None])
    assert attention_types(model) == [free, other, free, own]
