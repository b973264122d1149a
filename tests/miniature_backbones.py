"""Miniatures of every registered backbone, which several tests take."""

import operator

import pytest
import torch

from mmlinattn.models import BaseBackbone, IsotropicTransformer, TransformerBlock
from mmlinattn.models.backbones.presets import PresetTransformer
from mmlinattn.parts import CLASSES, build_model

PYRAMID = dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4])
PRESET = dict(embed_dims=8, depths=[2, 1, 1, 1], num_heads=[2, 2, 4, 4])
PLAIN = dict(embed_dims=24, num_layers=4, num_heads=3)
# the stem comes first
STEMMED = dict(embed_dims=[8, 8, 16, 24, 32], depths=[1, 2, 1, 1, 1], head_dims=8)
# options of a miniature of four stages besides the arch of its skeleton
OPTIONS = {
    'SOFT': dict(img_size=64),
    'CaiT': dict(arch=dict(PLAIN, num_class_layers=1)),
    'EfficientViT': dict(arch=dict(STEMMED, series='b')),
}
KINDS = {
    name: kind
    for name, kind in CLASSES.items()
    if issubclass(kind, BaseBackbone) and kind.__module__.startswith('mmlinattn.')
}


def miniature(name):
    """Config of a small backbone of four stages."""
    if issubclass(KINDS[name], IsotropicTransformer):
        cfg = dict(arch=PLAIN, img_size=64, patch_size=8)
    else:
        is_preset = issubclass(KINDS[name], PresetTransformer)
        cfg = dict(arch=PRESET if is_preset else PYRAMID)
    return {**cfg, **OPTIONS.get(name, {}), 'type': name}


UNSCALED = dict(attn_scale=False, feat_scale=False)
SCALED = dict(attn_scale=True, feat_scale=True)
CASES = {name: miniature(name) for name in KINDS}
CASES['SOFTPlusPlus-no-cls'] = dict(CASES['SOFTPlusPlus'], sampling_ratios=(8, 4, 2, 2))
CASES['EfficientViT-l'] = dict(CASES['EfficientViT'], arch=dict(STEMMED, series='l'))
CASES.update(
    {
        f'{name}-scaled': dict(CASES[name], **SCALED)
        for name in ('SOFTPlusPlus', 'SwinTransformer', 'VisionTransformer', 'CaiT')
    }
)
ALL = (0, 1, 2, 3)
BACKBONES = pytest.mark.parametrize('name', CASES)
# of properties that another torch hardly affects
ONE_STACK = pytest.mark.modern_full
UNSCALED_BACKBONES = [name for name in CASES if 'scaled' not in name]
# torch 2.1's compiler can't follow backward passes of our own; and it has no float16
# on a CPU
OLD_TORCH = torch.__version__.startswith('2.1.')


def strides(name):
    return (8, 8, 8, 8) if 'patch_size' in CASES[name] else (4, 8, 16, 32)


def blocks_of(model):
    """Blocks that are layers of the decay of learning rates."""
    blocks = [m for m in model.modules() if isinstance(m, TransformerBlock)]
    return blocks or [block for stage in model.stages for block in stage]


def has_cls_token(model):
    return getattr(model, 'with_cls_token', isinstance(model, IsotropicTransformer))


def build(name, **options):
    """A backbone whose every parameter matters, in eval mode."""
    model = build_model({**CASES[name], **options})
    before = list(model.parameters())
    model.init_weights()
    # MMEngine refuses models that replace them
    assert all(map(operator.is_, model.parameters(), before))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def build_like(model, name, **options):
    """A backbone with another one's weights, and the names it lacks."""
    other = build_model({**CASES[name], **options}).eval()
    missing, unexpected = other.load_state_dict(model.state_dict(), False)
    return other, missing, unexpected


def images(batch=2, height=64, width=96):
    return torch.randn(batch, 3, height, width)


def random_loss(outs):
    return sum((out.float() * torch.randn(out.shape)).sum() for out in outs)


def assert_all_close(results, expected, tolerance=1e-6):
    assert len(results) == len(expected)
    for result, want in zip(results, expected):
        error = (result - want).abs().max() / want.abs().max()
        assert error <= tolerance


def shallow(name):
    """Options of a model with fewer operations of the same kinds, to be compiled: one
    block in a stage (Swin's second ones shift windows), few steps of Newton's."""
    arch = CASES[name]['arch']
    options = dict(num_iters=4) if 'SOFT' in name else {}
    if 'depths' in arch and name[:4] != 'Swin':
        options.update(arch=dict(arch, depths=[1] * len(arch['depths'])))
    return options


def compile_whole(model):
    """Compiles in one graph, or fails."""
    torch._dynamo.reset()
    backend = 'eager' if OLD_TORCH else 'aot_eager'
    return torch.compile(model, backend=backend, fullgraph=True, dynamic=False)
