"""How long every config trains, and by which optimizer."""

import ast
import re
from functools import lru_cache

import pytest
from mmengine.optim import build_optim_wrapper
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

pytestmark = pytest.mark.modern


def test_schedule_ends_with_training(name, config):
    cfg = config(name)
    *warmup, decay = cfg.param_scheduler
    total = cfg.train_cfg.get('max_iters') or cfg.train_cfg.max_epochs
    # CSWin's fine-tuning goes on at the smallest learning rate
    assert decay.end == total - (10 if name.endswith('-384px') else 0)
    assert all(step < total for step in decay.get('milestones', []))
    if decay.type in ('PolyLR', 'CosineAnnealingLR'):
        expected = [(0, decay.begin)] if decay.begin else []
        assert [(step.begin, step.end) for step in warmup] == expected
    assert total % cfg.train_cfg.val_interval == 0


LENGTHS = {
    ('1x', 'coco'): 12,
    ('3x', 'coco'): 36,
    ('1x', 'cityscapes'): 8,
    ('3x', 'cityscapes'): 24,
    ('1x', 'ade20k-512x512'): 160000,
    ('3x', 'ade20k-512x512'): 480000,
    ('1x', 'cityscapes-768x768'): 40000,
    ('3x', 'cityscapes-768x768'): 120000,
}


def test_length(name, downstream, config):
    train_cfg = config(name).train_cfg
    total = train_cfg.get('max_iters') or train_cfg.max_epochs
    if downstream:
        assert total == LENGTHS[tuple(name.split('_')[-2:])]
    elif '_finetune_' in name:
        assert total == (30 if name.endswith('-384px') else 60)
    else:
        assert total == 300


# Learning rate and weight decay on ImageNet: the first pattern that a name fits.
IN1K_RATES = {
    r'.*_finetune_in1k': (5e-5, 5e-4),
    r'.*_finetune_in1k-384px': (5e-6, 1e-8),
    r'c?swin-t-.*': (2e-3, 0.05),
    r'c?swin-b-.*': (1e-3, 0.1),
    r'.*': (1e-3, 0.05),
}


def test_learning_rate(name, backbone_id, downstream, config):
    optimizer = config(name).optim_wrapper.optimizer
    assert optimizer.type == 'AdamW'
    got = optimizer.lr, optimizer.weight_decay
    soft = backbone_id.startswith('soft')
    if name.startswith('upernet_'):
        expected = (6e-4 if soft else 6e-5), 0.01
    elif downstream:
        expected = (1e-4 if 'coco' in name else 5e-5), (0.01 if soft else 0.05)
    else:
        expected = next(
            rates
            for pattern, rates in IN1K_RATES.items()
            if re.fullmatch(pattern, name)
        )
    assert got == expected


def test_recipe_of_cswin(name, downstream, config):
    """Mixed precision and a moving average of the weights, on ImageNet."""
    cfg = config(name)
    expected = not downstream and bool(re.match('c?swin-[tb]-', name))
    averages = [
        hook.momentum for hook in cfg.get('custom_hooks', []) if hook.type == 'EMAHook'
    ]
    assert len(averages) == expected
    assert (cfg.optim_wrapper.type == 'AmpOptimWrapper') == expected
    if expected and '_finetune_' not in name:
        # half the batch, twice as many steps
        assert averages[0] * 2048 / cfg.auto_scale_lr.base_batch_size == 1.6e-4


def is_norm(module):
    return isinstance(module, (_BatchNorm, nn.LayerNorm, nn.GroupNorm))


def weight_decays(model, optim_wrapper):
    """Weight decay of every parameter, by name."""
    # mixed precision needs a GPU
    return decays_of(model, repr(dict(optim_wrapper.to_dict(), type='OptimWrapper')))


@lru_cache(None)
def decays_of(model, optim_wrapper):
    wrapper = build_optim_wrapper(model, ast.literal_eval(optim_wrapper))
    decays = {
        id(param): group['weight_decay']
        for group in wrapper.optimizer.param_groups
        for param in group['params']
    }
    return {name: decays[id(p)] for name, p in model.named_parameters()}


UNDECAYED = re.compile(
    r'pos_embed\.|\.scale[12]\.|\.(agent|query)_bias\.|'
    r'\.(cls_token|relative_position_bias_table|omega|dc_scale|hc_scale)$'
)


# Windows have one table in a block, agent attention has two biases of three parts.
TABLES = {
    'swin-t-local': 12,
    'swin-t-flatten': 6 + 2,
    'swin-t-agent': 6 * (2 + 2 + 6) + 2,
    'cswin-t-agent': 6 * (2 + 4),
    'swin-b-local': 24,
    'swin-b-flatten': 18 + 2,
    'swin-b-agent': 6 * (2 + 2 + 2) + 16 + 2,
    'cswin-b-agent': 6 * (3 + 6),
}


def number_undecayed(backbone, blocks):
    """How many parameters of a model fit UNDECAYED, by its backbone's id."""
    if backbone.startswith('soft'):
        return 5  # positions of four stages, class token
    kind, _, technique = backbone.rpartition('-')
    if technique not in ('attnscale', 'featscale'):
        if not re.match('deit|cait|swin-s', backbone):
            return TABLES.get(backbone, 0)
        kind = backbone
    vectors = blocks * {'attnscale': 1, 'featscale': 2}.get(technique, 0)
    if kind.startswith('cait'):
        return vectors + 2 + 2 * (blocks + 2)  # two class layers
    return vectors + (blocks if kind.startswith('swin') else 2)


def test_weight_decay(name, backbone_id, downstream, config, meta_model):
    cfg, model = config(name), meta_model(name)
    decays = weight_decays(model, cfg.optim_wrapper)
    norms = {
        f'{prefix}.{key}'
        for prefix, module in model.named_modules()
        if is_norm(module)
        for key, _ in module.named_parameters(recurse=False)
    }
    named = {key for key in decays if UNDECAYED.search(key)}
    depths = getattr(model.backbone, 'depths', [model.backbone.num_stages])
    assert len(named) == number_undecayed(backbone_id, sum(depths))
    assert len(norms) > 20
    biases = set()
    if not downstream:
        biases = {key for key in decays if key.endswith('.bias')}
    base = cfg.optim_wrapper.optimizer.weight_decay
    for key, decay in decays.items():
        assert decay == (0 if key in norms | named | biases else base), key


def test_no_decay_of_scaling_vectors(config, build_model):
    cfg = config('retinanet_softpp-t_fpn_1x_coco')
    cfg.model.backbone.update(attn_scale=True, feat_scale=True)
    model = build_model(cfg, 'meta')
    decays = weight_decays(model, cfg.optim_wrapper)
    vectors = [
        key for key in decays if key.endswith(('.omega', '.dc_scale', '.hc_scale'))
    ]
    blocks = sum(model.backbone.depths)
    assert len(vectors) == 3 * blocks
    assert not any(decays[key] for key in vectors)
