"""How long every config trains, and by which optimizer."""

import ast
import re
from functools import lru_cache

import pytest
from mmengine.optim import build_optim_wrapper
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]


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
    if 'dynamic_intervals' in cfg.train_cfg:
        assert cfg.train_cfg.dynamic_intervals[-1][1] == total
    else:
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
    ('ms-crop-3x', 'coco'): 36,
    ('lsj-100e', 'coco'): 25,  # four repetitions each
    ('lsj-50e', 'coco'): 368750,
}


def test_length(name, downstream, config):
    train_cfg = config(name).train_cfg
    total = train_cfg.get('max_iters') or train_cfg.max_epochs
    if downstream:
        *_, schedule, data = name.replace('layer-decay-', '').split('_')
        assert total == LENGTHS[schedule, data]
    elif '_finetune_' in name:
        assert total == (30 if name.endswith('-384px') else 60)
    else:
        assert total == (400 if name.startswith('cait') else 300)


# Learning rate and weight decay on ImageNet: the first pattern that a name fits.
IN1K_RATES = {
    r'.*_finetune_in1k': (5e-5, 5e-4),
    r'.*_finetune_in1k-384px': (5e-6, 1e-8),
    r'soft-m_in1k': (3.5e-4, 0.05),
    r'soft-m-norm_in1k': (4e-4, 0.05),
    r'soft-l(-norm)?_in1k': (3.3e-4, 0.05),
    r'soft-h(-norm)?_in1k': (2.7e-4, 0.05),
    r'swin-t-sharedqk_in1k': (1e-3, 0.05),
    r'c?swin-t-.*': (2e-3, 0.05),
    r'c?swin-b-.*': (1e-3, 0.1),
    r'.*': (1e-3, 0.05),
}


def test_learning_rate(name, backbone_id, downstream, config):
    optimizer = config(name).optim_wrapper.optimizer
    assert optimizer.type == 'AdamW'
    got = optimizer.lr, optimizer.weight_decay
    soft = backbone_id.startswith('soft')
    if name.startswith(('mask2former', 'dino')):
        expected = 1e-4, (0.05 if name.startswith('mask') else 1e-4)
    elif name.startswith('upernet_') and soft:
        expected = (6e-4, 0.01) if '_lr6e-4_' in name else (6e-5, 0.0)
    elif name.startswith('upernet_'):
        expected = 6e-5, 0.01
    elif '_sfp_layer-decay-' in name:
        expected = 1e-4, 0.1
    elif downstream:
        expected = (1e-4 if 'coco' in name else 5e-5), (0.01 if soft else 0.05)
    else:
        expected = next(
            rates
            for pattern, rates in IN1K_RATES.items()
            if re.fullmatch(pattern, name)
        )
    assert got == expected


def test_precision_and_moving_average(name, downstream, config):
    """On ImageNet, CSWin's recipe has mixed precision and a moving average of the
    weights; those of SOFT, DeiT and CaiT have an average, that of Swin none."""
    cfg = config(name)
    by_cswin = not downstream and bool(re.match('c?swin-[tb]-(?!sharedqk)', name))
    averages = [
        hook.momentum for hook in cfg.get('custom_hooks', []) if hook.type == 'EMAHook'
    ]
    mixed = by_cswin or 'ms-crop-3x' in name
    assert (cfg.optim_wrapper.type == 'AmpOptimWrapper') == mixed
    if downstream or (name.startswith('swin-') and not by_cswin):
        assert not averages
    elif not by_cswin:
        assert averages == [4e-5]
    elif '_finetune_' in name:
        assert averages == [2e-4]
    else:
        # half the batch, twice as many steps
        (average,) = averages
        assert average * 2048 / cfg.auto_scale_lr.base_batch_size == 1.6e-4


def test_warmup(name, config):
    """Of detectors: 500 iterations, and 1,000 in Swin's recipes for COCO."""
    if not name.endswith(('_coco', '_cityscapes')):
        return
    if name.startswith(('dino', 'mask2former')):
        return
    by_swin = name.endswith('_coco') and not name.split('_')[1].startswith('soft')
    assert config(name).param_scheduler[0].end == (1000 if by_swin else 500)


def test_saved_when_validated(name, config):
    """Segmentors keep their best checkpoint, and save one at every validation."""
    cfg = config(name)
    if cfg.default_scope != 'mmseg':
        return
    hook = cfg.default_hooks.checkpoint
    assert hook.save_best == 'mIoU'
    assert hook.interval == cfg.train_cfg.val_interval


def test_heads_of_soft_segmentors_are_faster(config, meta_model):
    name = 'upernet_softpp-s_1x_cityscapes-768x768'
    wrapper = build_optim_wrapper(meta_model(name), config(name).optim_wrapper)
    rates = {id(g['params'][0]): g['lr'] for g in wrapper.optimizer.param_groups}
    for key, param in meta_model(name).named_parameters():
        expected = 6e-5 if key.startswith('backbone') else 6e-4
        assert rates[id(param)] == pytest.approx(expected), key


@pytest.mark.parametrize('backbone', ['softpp-s', 'swin-t-elfatt'])
@pytest.mark.parametrize(
    'config_name',
    [
        'mask2former_{}_lsj-50e_coco',
        'mask2former_{}_1x_ade20k-512x512',
        'dino-4scale_{}_1x_coco',
    ],
)
def test_backbones_of_queries_are_slower(config_name, backbone, config, meta_model):
    name = config_name.format(backbone)
    wrapper = build_optim_wrapper(meta_model(name), config(name).optim_wrapper)
    rates = {id(g['params'][0]): g['lr'] for g in wrapper.optimizer.param_groups}
    for key, param in meta_model(name).named_parameters():
        expected = 1e-5 if key.startswith('backbone') else 1e-4
        assert rates[id(param)] == pytest.approx(expected), key


def test_drop_path_on_cityscapes(name, config):
    """As SOFT's authors configure it: 0.3 from Medium on."""
    if re.match(r'upernet_soft(pp)?-\w_[13]x_city', name):
        size = name.split('_')[1][-1]
        expected = 0.3 if size in 'mlh' else 0.1
        assert config(name).model.backbone.drop_path_rate == expected


LAYER_DECAYS = {
    r'mask-rcnn_deit-.*': (0.7, 12),
    r'mask-rcnn_swin-s-.*': (0.9, 24),
    r'upernet_deit-.*': (0.95, 12),
    r'upernet_swin-s-.*': (0.94, 24),
}


def test_layer_decay(name, config, meta_model):
    """The first layer is as many blocks, and one step more, below the last one."""
    cfg = config(name)
    rate = cfg.optim_wrapper.paramwise_cfg.get('layer_decay_rate')
    assert (rate is not None) == ('_layer-decay-' in name)
    if rate is None:
        return
    (expected,) = [x for key, x in LAYER_DECAYS.items() if re.fullmatch(key, name)]
    backbone = meta_model(name).backbone
    depth = sum(getattr(backbone, 'depths', [backbone.num_stages]))
    assert (rate, depth) == expected
    wrapper = build_optim_wrapper(meta_model(name), cfg.optim_wrapper)
    groups = {group['param_name']: group for group in wrapper.optimizer.param_groups}
    base = cfg.optim_wrapper.optimizer.lr
    scales = {key: group['lr'] / base for key, group in groups.items()}
    assert all(key.startswith('backbone.') or x == 1 for key, x in scales.items())
    assert min(scales.values()) == pytest.approx(rate ** (depth + 1))


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
    r'\.(cls_token|relative_position_bias_table|omega|dc_scale|hc_scale|focus_scale)$'
)


# Windows have one table in a block, agent attention has two biases of three parts,
# focused linear attention a table and a scale.
TABLES = {
    'swin-t-local': 12,
    'swin-t-flatten': 6 + 2 + 2 * 4,
    'swin-t-sharedqk': 12,
    'cswin-t-flatten': 2 * 6,
    'swin-t-agent': 6 * (2 + 2 + 6) + 2,
    'cswin-t-agent': 6 * (2 + 4),
    'swin-b-local': 24,
    'swin-b-flatten': 18 + 2 + 2 * 4,
    'cswin-b-flatten': 2 * 9,
    'vit-s-sharedqk': 2,
    'softpp-s-plain': 1,
    'soft-s-plain': 1,
    'swin-b-agent': 6 * (2 + 2 + 2) + 16 + 2,
    'cswin-b-agent': 6 * (3 + 6),
}


def number_undecayed(backbone, blocks):
    """How many parameters of a model fit UNDECAYED, by its backbone's id."""
    if backbone in TABLES:
        return TABLES[backbone]
    if backbone.startswith('soft'):
        return 5  # positions of four stages, class token
    kind, _, technique = backbone.rpartition('-')
    if technique not in ('attnscale', 'featscale'):
        if not re.match('deit|cait|swin-s', backbone):
            return 0
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
    if name.startswith('mask2former'):
        named |= {key for key in decays if re.search(r'\.(query|level)_\w+\.', key)}
        named -= {key for key in decays if '.level_encoding.' in key}
    base = cfg.optim_wrapper.optimizer.weight_decay
    undecayed = set() if name.startswith('dino') else norms | named | biases
    for key, decay in decays.items():
        assert decay == (0 if key in undecayed else base), key


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
