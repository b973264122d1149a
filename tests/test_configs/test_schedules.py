"""Settings of each parameter in the optimizer of every config."""

import ast
import re
from functools import lru_cache

import pytest
from mmengine.optim import build_optim_wrapper
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from our_configs import load, meta_model
from torch import nn

pytestmark = pytest.mark.modern_full


@lru_cache(None)
def groups_of(model, optim_wrapper):
    """An optimizer's settings of every parameter, by name."""
    wrapper = build_optim_wrapper(model, ast.literal_eval(optim_wrapper))
    groups = {id(x): group for group in wrapper.param_groups for x in group['params']}
    return {key: groups[id(param)] for key, param in model.named_parameters()}


def groups(name):
    # mixed precision needs a GPU
    wrapper = dict(load(name).optim_wrapper.to_dict(), type='OptimWrapper')
    return groups_of(meta_model(name), repr(wrapper))


# learning rates of the backbone and of the heads
SLOWER = {
    'upernet_softpp-s_1x_cityscapes-768x768': (6e-5, 6e-4),
    'mask2former_softpp-s_lsj-50e_coco': (1e-5, 1e-4),
    'mask2former_softpp-s_1x_ade20k-512x512': (1e-5, 1e-4),
    'mask2former_swin-t-elfatt_lsj-50e_coco': (1e-5, 1e-4),
    'dino-4scale_softpp-s_1x_coco': (1e-5, 1e-4),
}


@pytest.mark.parametrize('config_name', SLOWER)
def test_backbones_are_slower(config_name):
    for key, group in groups(config_name).items():
        expected = SLOWER[config_name][not key.startswith('backbone')]
        assert group['lr'] == pytest.approx(expected), key


UNDECAYED = re.compile(
    r'pos_embed\.|\.scale[12]\.|\.(agent|query)_bias\.|'
    r'\.(cls_token|relative_position_bias_table|omega|dc_scale|hc_scale|focus_scale)$'
)


def test_groups(name):
    """Norms, positions, scales and a classifier's vectors have no weight decay. With a
    decay by layers, the first one is as many blocks, and a step more, below the last
    one."""
    cfg, model, groups_by_name = load(name), meta_model(name), groups(name)
    undecayed = {
        f'{prefix}.{key}'
        for prefix, module in model.named_modules()
        if isinstance(module, (_BatchNorm, nn.LayerNorm, nn.GroupNorm))
        for key, _ in module.named_parameters(recurse=False)
    }
    undecayed |= {key for key in groups_by_name if UNDECAYED.search(key)}
    if re.search('_in1k|_imagenette', name):
        # VSSD's are of heads
        vectors = ('.bias', '.A_log', '.D', '.dt_bias')
        undecayed |= {key for key in groups_by_name if key.endswith(vectors)}
    if name.startswith('mask2former'):
        undecayed |= {
            key for key in groups_by_name if re.search(r'\.(query|level)_\w+\.', key)
        }
        undecayed -= {key for key in groups_by_name if '.level_encoding.' in key}
    if name.startswith('dino'):
        undecayed = set()
    base = cfg.optim_wrapper.optimizer
    for key, group in groups_by_name.items():
        expected = 0 if key in undecayed else base.weight_decay
        assert group['weight_decay'] == expected, key

    rate = cfg.optim_wrapper.paramwise_cfg.get('layer_decay_rate')
    assert (rate is not None) == ('_layer-decay-' in name)
    if rate is not None:
        scales = {key: group['lr'] / base.lr for key, group in groups_by_name.items()}
        assert all(key.startswith('backbone.') or x == 1 for key, x in scales.items())
        backbone = model.backbone
        depth = sum(getattr(backbone, 'depths', [backbone.num_stages]))
        assert min(scales.values()) == pytest.approx(rate ** (depth + 1))
