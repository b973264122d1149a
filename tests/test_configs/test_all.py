"""Every config: name, index, model, optimizer, schedule, data."""
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
import yaml
from mmengine.optim import build_optim_wrapper
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

pytestmark = pytest.mark.modern

ROOT = Path(__file__).parents[2]
PATTERN = re.compile(
    r'(retinanet|mask-rcnn)_([a-z0-9-]+)_fpn_[13]x_(coco|cityscapes)'
    r'|(upernet)_([a-z0-9-]+)_[13]x_(ade20k-512x512|cityscapes-768x768)'
    r'|([a-z0-9-]+)(_finetune)?_(in1k)')

# Million parameters of whole models: what ours have, and what the papers print.
# They count COCO's, ADE20K's and ImageNet's classes, and cut or round.
PARAMS = {
    'retinanet': {
        'soft-t': (22.8, 23),
        'soft-s': (33.8, 34),
        'soft-m': (55.5, 55),
        'soft-l': (74.4, 74),
        'softpp-t': (22.8, 23),
        'softpp-s': (38.5, 38),
        'softpp-m': (59.7, 59),
        'softpp-l': (97.9, 98),
    },
    'mask-rcnn': {
        'soft-t': (32.7, 33),
        'soft-s': (43.8, 44),
        'soft-m': (65.5, 65),
        'soft-l': (84.4, 84),
        'softpp-t': (32.7, 32),
        'softpp-s': (47.9, 48),
        'softpp-m': (69.1, 69),
        'softpp-l': (106.7, 106),
    },
    'upernet': {
        'soft-s': (54.1, 54),
        'soft-m': (75.7, 76),
        'softpp-s': (60.0, 60),
        'softpp-m': (81.2, 81),
        'softpp-l': (120.8, 121),
    },
    'in1k': {
        'soft-t': (13.07, 13),
        'soft-s': (24.11, 24),
        'soft-m': (45.81, 45),
        'soft-l': (64.70, 64),
        'soft-h': (87.11, 87),
        'softpp-t': (13.04, 13),
        # the paper's classifiers are counted without stage 4's key projection
        'softpp-s': (28.38, 27),
        'softpp-m': (49.58, 48),
        'softpp-l': (87.29, 85),
    },
}

# Classifiers of the AttnScale and FeatScale paper: million parameters without
# either, as printed, and what each of them adds.
SCALED = {
    'deit-s12': (22.051, dict(attnscale=72, featscale=9216)),
    'deit-s24': (43.344, dict(attnscale=144, featscale=18432)),
    'cait-s24': (46.916, dict(attnscale=192, featscale=18432)),
    'cait-xxs24': (11.956, dict(attnscale=96, featscale=9216)),
    'swin-s': (49.606, dict(attnscale=282, featscale=18048)),
}


@lru_cache(None)
def metafiles():
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    return [
        yaml.safe_load((ROOT / path).read_text()) for path in index['Import']
    ]


def models_of_metafiles():
    return {
        model['Name']: model
        for meta in metafiles() for model in meta['Models']
    }


def downstream(name):
    return not name.endswith('_in1k')


def backbone_of(name):
    """The backbone's id in the name of a config."""
    return name.split('_')[int(downstream(name))]


def test_names_are_unique():
    names = [path.name for path in ROOT.glob('configs/**/*.py')]
    assert len(names) == len(set(names))
    for library in ('mmdet', 'mmseg', 'mmpretrain'):
        folder = Path(find_spec(library).origin).parent
        theirs = {path.name for path in folder.glob('.mim/configs/**/*.py')}
        assert theirs and not theirs & set(names)


def test_metafiles_list_all_configs(names):
    listed = [model['Name'] for meta in metafiles() for model in meta['Models']]
    assert sorted(listed) == sorted(names)
    for meta in metafiles():
        collections = {collection['Name'] for collection in meta['Collections']}
        for collection in meta['Collections']:
            assert (ROOT / collection['README']).is_file()
        for model in meta['Models']:
            # mim looks for names in lower case only
            assert model['Name'] == model['Name'].lower()
            assert Path(model['Config']).stem == model['Name']
            assert (ROOT / model['Config']).is_file()
            assert model['In Collection'] in collections


def test_name(name):
    assert PATTERN.fullmatch(name)


def test_parameters(name, meta_model):
    count = sum(param.numel() for param in meta_model(name).parameters())
    assert models_of_metafiles()[name]['Metadata']['Parameters'] == count
    method = name.partition('_')[0] if downstream(name) else 'in1k'
    backbone = backbone_of(name)
    if 'cityscapes' in name or backbone not in PARAMS.get(method, {}):
        return
    ours, printed = PARAMS[method][backbone]
    digit = 0.01 if method == 'in1k' else 0.1
    assert count / 1e6 == pytest.approx(ours, abs=digit / 2)
    uncounted = method == 'in1k' and backbone in ('softpp-s', 'softpp-m', 'softpp-l')
    assert count / 1e6 == pytest.approx(printed, abs=2.3 if uncounted else 1)


def test_parameters_of_scaling_vectors(name, meta_model):
    backbone, _, technique = backbone_of(name).rpartition('-')
    if downstream(name) or backbone not in SCALED:
        return
    count = sum(param.numel() for param in meta_model(name).parameters())
    millions, added = SCALED[backbone]
    assert round((count - added[technique]) / 1e6, 3) == millions
    top1 = models_of_metafiles()[name].get('Results')
    # CaiT's figures are of fine-tuning
    assert bool(top1) == (('_finetune_' in name) == backbone.startswith('cait'))


def test_metafile_tells_the_schedule(name, config):
    cfg, meta = config(name), models_of_metafiles()[name]['Metadata']
    length = {'Epochs': 'max_epochs', 'Iterations': 'max_iters'}
    told = [key for key in length if key in meta]
    assert len(told) == 1
    assert cfg.train_cfg[length[told[0]]] == meta[told[0]]
    assert cfg.auto_scale_lr.base_batch_size == meta['Batch Size']


def test_schedule_ends_with_training(name, config):
    cfg = config(name)
    warmup, decay = cfg.param_scheduler
    total = cfg.train_cfg.get('max_iters') or cfg.train_cfg.max_epochs
    assert decay.end == total
    assert all(step < total for step in decay.get('milestones', []))
    if decay.type in ('PolyLR', 'CosineAnnealingLR'):
        assert (warmup.begin, warmup.end) == (0, decay.begin)
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


def test_length(name, config):
    train_cfg = config(name).train_cfg
    total = train_cfg.get('max_iters') or train_cfg.max_epochs
    if downstream(name):
        assert total == LENGTHS[tuple(name.split('_')[-2:])]
    else:
        assert total == (60 if '_finetune_' in name else 300)


def test_learning_rate(name, config):
    optimizer = config(name).optim_wrapper.optimizer
    assert optimizer.type == 'AdamW'
    got = optimizer.lr, optimizer.weight_decay
    soft = backbone_of(name).startswith('soft')
    if name.startswith('upernet_'):
        expected = (6e-4 if soft else 6e-5), 0.01
    elif downstream(name):
        expected = (1e-4 if 'coco' in name else 5e-5), (0.01 if soft else 0.05)
    else:
        expected = (5e-5, 5e-4) if '_finetune_' in name else (1e-3, 0.05)
    assert got == expected


def is_norm(module):
    return isinstance(module, (_BatchNorm, nn.LayerNorm, nn.GroupNorm))


def weight_decays(model, optim_wrapper):
    """Weight decay of every parameter, by name."""
    wrapper = build_optim_wrapper(model, optim_wrapper)
    decays = {
        id(param): group['weight_decay']
        for group in wrapper.optimizer.param_groups
        for param in group['params']
    }
    return {name: decays[id(p)] for name, p in model.named_parameters()}


UNDECAYED = re.compile(
    r'pos_embed\.|\.scale[12]\.|'
    r'\.(cls_token|relative_position_bias_table|omega|dc_scale|hc_scale)$')


def number_undecayed(backbone, blocks):
    """How many parameters of a model fit UNDECAYED, by its backbone's id."""
    if backbone.startswith('soft'):
        return 5  # positions of four stages, class token
    kind, _, technique = backbone.rpartition('-')
    vectors = blocks * {'attnscale': 1, 'featscale': 2}[technique]
    if kind.startswith('cait'):
        return vectors + 2 + 2 * (blocks + 2)  # two class layers
    return vectors + (blocks if kind.startswith('swin') else 2)


def test_weight_decay(name, config, meta_model):
    cfg, model = config(name), meta_model(name)
    decays = weight_decays(model, cfg.optim_wrapper)
    norms = {
        f'{prefix}.{key}'
        for prefix, module in model.named_modules() if is_norm(module)
        for key, _ in module.named_parameters(recurse=False)
    }
    named = {key for key in decays if UNDECAYED.search(key)}
    depths = getattr(model.backbone, 'depths', [model.backbone.num_stages])
    assert len(named) == number_undecayed(backbone_of(name), sum(depths))
    assert len(norms) > 20
    biases = set()
    if not downstream(name):
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
        key for key in decays
        if key.endswith(('.omega', '.dc_scale', '.hc_scale'))
    ]
    blocks = sum(model.backbone.depths)
    assert len(vectors) == 3 * blocks
    assert not any(decays[key] for key in vectors)


def test_coco_images(name, config):
    if not name.endswith('_coco'):
        return
    dataset = config(name).train_dataloader.dataset
    assert dataset.type == 'CocoDataset'
    steps = {step.type: step for step in dataset.pipeline}
    assert not [kind for kind in steps if 'Crop' in kind]
    if '_1x_' in name:
        assert steps['Resize'].scale == (1333, 800)
    else:
        scales = steps['RandomChoiceResize'].scales
        assert [max(scale) for scale in scales] == [1333] * 11
        assert [min(scale) for scale in scales] == list(range(480, 801, 32))
    assert steps['LoadAnnotations'].get('with_mask',
                                        False) == ('mask-rcnn' in name)


def test_cityscapes_instances(name, config):
    if not name.endswith('_cityscapes'):
        return
    cfg = config(name)
    dataset = cfg.train_dataloader.dataset
    assert (dataset.type, dataset.times) == ('RepeatDataset', 8)
    resize = dataset.dataset.pipeline[2]
    assert resize.scale == [(2048, 800), (2048, 1024)]
    heads = [cfg.model.get('bbox_head'), *cfg.model.get('roi_head', {}).values()]
    classes = {
        head.num_classes
        for head in heads if isinstance(head, dict) and 'num_classes' in head
    }
    assert classes == {8}


def test_segmentation_crop(name, config):
    if not name.startswith('upernet_'):
        return
    cfg = config(name)
    side = int(name.rpartition('x')[2])
    assert cfg.model.data_preprocessor.size == (side, side)
    crops = [
        step.crop_size for step in cfg.train_dataloader.dataset.pipeline
        if step.type == 'RandomCrop'
    ]
    assert crops == [(side, side)]
    classes = 150 if 'ade20k' in name else 19
    assert cfg.model.decode_head.num_classes == classes
    assert cfg.model.auxiliary_head.num_classes == classes


def test_downstream_models(name, config):
    cfg = config(name)
    assert cfg.load_from is None
    if not downstream(name):
        return
    assert cfg.pretrained is None
    assert 'mmlinattn.PretrainedBackboneHook' in [
        hook.type for hook in cfg.custom_hooks
    ]
    if backbone_of(name).startswith('soft'):
        assert cfg.model.backbone.norm_cfg.type == 'SyncBN'
    assert cfg.model.get('pretrained') is None


def test_techniques(name, meta_model):
    technique = backbone_of(name).rpartition('-')[2]
    vectors = {
        key.rpartition('.')[2]
        for key, _ in meta_model(name).backbone.named_parameters()
        if key.endswith(('omega', 'c_scale'))
    }
    expected = dict(attnscale={'omega'}, featscale={'dc_scale', 'hc_scale'})
    assert vectors == expected.get(technique, set())


def test_p6_of_retinanet(name, meta_model):
    if not name.startswith('retinanet_') or '_deit-' in name:
        return
    # P6 is a convolution of C5, P7 one of P6
    model = meta_model(name)
    channels = model.backbone.feature_channels[-1]
    assert model.neck.fpn_convs[3].conv.in_channels == channels


@pytest.mark.parametrize('backbone', ['deit-s12-featscale', 'swin-s-featscale'])
@pytest.mark.parametrize('method', ['retinanet', 'mask-rcnn'])
def test_levels_have_the_strides_of_anchors(method, backbone, meta_model):
    model = meta_model(f'{method}_{backbone}_fpn_1x_coco')
    head = model.bbox_head if method == 'retinanet' else model.rpn_head
    levels = model.extract_feat(torch.empty(1, 3, 256, 384, device='meta'))
    assert [tuple(level.shape[2:]) for level in levels] == [
        (256 // stride, 384 // stride)
        for stride, _ in head.prior_generator.strides
    ]


def test_segmenter_levels(meta_model):
    model = meta_model('upernet_deit-s24-featscale_3x_ade20k-512x512')
    levels = model.extract_feat(torch.empty(1, 3, 256, 384, device='meta'))
    assert [tuple(level.shape[1:]) for level in levels
            ] == [(384, 64, 96), (384, 32, 48), (384, 16, 24), (384, 8, 12)]


def test_mim_reads_the_index(names):
    search = pytest.importorskip('mim.commands.search')
    table = search.convert2df(search.load(str(ROOT / 'model-index.yml')))
    assert sorted(table.index) == sorted(names)
    row = table.loc['mask-rcnn_softpp-t_fpn_1x_coco']
    assert row['coco/paper_box_ap'] == 41.2
    assert row['coco/paper_mask_ap'] == 38.2
    row = table.loc['cait-s24-attnscale_finetune_in1k']
    assert row['imagenet-1k/paper_top_1_accuracy'] == 83.2
