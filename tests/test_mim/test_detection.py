"""mmdet's RetinaNet and Mask R-CNN on COCO and on Cityscapes."""

from pathlib import Path

import pytest
import torch
from mmengine.runner import save_checkpoint

import mmlinattn.configs
from mmlinattn.models import SwinTransformer
from mmlinattn.weights import convert_back, read_checkpoint

# Twelve iterations, and boxes of any score: what has hardly begun to learn is sure of
# nothing, and without boxes there is no AP.
SHORT = {
    'train_cfg.max_epochs': 3,
    'train_cfg.val_interval': 3,
    'default_hooks.checkpoint.interval': 3,
    'param_scheduler.0.end': 2,
}
RETINANET = {**SHORT, 'model.test_cfg.score_thr': 0}
MASK_RCNN = {
    **SHORT,
    'model.train_cfg.rpn_proposal.nms_pre': 100,
    'model.train_cfg.rpn_proposal.max_per_img': 20,
    'model.train_cfg.rcnn.sampler.num': 16,
    'model.test_cfg.rpn.nms_pre': 100,
    'model.test_cfg.rpn.max_per_img': 20,
    'model.test_cfg.rcnn.max_per_img': 20,
    'model.test_cfg.rcnn.score_thr': 0,
}


def train_and_test(user, config, options, augmented=False):
    training = user.train('mmdet', config, options)
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    metrics = user.test('mmdet', config, training.checkpoint, options)
    assert metrics == training.metrics
    if augmented:
        flips = user.test('tools', config, training.checkpoint, options, '--tta')
        assert flips.keys() == metrics.keys()
    return metrics


@pytest.mark.modern
def test_mask_rcnn_on_coco(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/mask-rcnn_softpp-t_fpn_1x_coco.py',
        quick('coco', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


@pytest.mark.full
@pytest.mark.modern
def test_new_style_config(user, quick):
    (config,) = Path(mmlinattn.configs.__path__[0]).glob('soft/mask_rcnn_*.py')
    metrics = train_and_test(user, config, quick('coco', **MASK_RCNN))
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


def test_retinanet_on_coco(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py',
        quick('coco', **RETINANET),
        augmented=True,
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
def test_mask_rcnn_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/mask-rcnn_softpp-t_fpn_1x_cityscapes.py',
        quick('cityscapes_instances', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP'} <= set(metrics)


@pytest.mark.full
def test_retinanet_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_softpp-t_fpn_1x_cityscapes.py',
        quick('cityscapes_boxes', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
def test_3x_of_older_family(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_soft-t_fpn_3x_coco.py',
        quick('coco_3x', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['swin-s-featscale_fpn', 'deit-s12-attnscale_sfp'])
def test_mask_rcnn_against_oversmoothing(user, configs, quick, backbone):
    config = configs / f'antioversmoothing/mask-rcnn_{backbone}_1x_coco.py'
    metrics = train_and_test(user, config, quick('coco', **MASK_RCNN))
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['swin-t-elfatt', 'cswin-b-elfatt'])
def test_mask_rcnn_with_elfatt(user, configs, quick, backbone):
    metrics = train_and_test(
        user,
        configs / f'elfatt/mask-rcnn_{backbone}_fpn_1x_coco.py',
        quick('coco', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


@pytest.mark.full
def test_mask_rcnn_with_elfatt_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_cityscapes.py',
        quick('cityscapes_instances', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP'} <= set(metrics)


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['swin-b-elfatt', 'cswin-t-elfatt'])
def test_retinanet_with_elfatt(user, configs, quick, backbone):
    metrics = train_and_test(
        user,
        configs / f'elfatt/retinanet_{backbone}_fpn_1x_coco.py',
        quick('coco', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['deit-s12-attnscale_sfp', 'swin-s-featscale_fpn'])
def test_retinanet_against_oversmoothing(user, configs, quick, backbone):
    config = configs / f'antioversmoothing/retinanet_{backbone}_1x_coco.py'
    metrics = train_and_test(user, config, quick('coco', **RETINANET))
    assert metrics['coco/bbox_mAP_50'] > 0


def official_file(path):
    """As the official repository of Swin publishes it."""
    with torch.random.fork_rng():
        model = SwinTransformer(arch='small')
    state_dict = {f'backbone.{key}': x for key, x in model.state_dict().items()}
    weights = convert_back(state_dict, 'swin')[0]
    weights['head.weight'], weights['head.bias'] = torch.ones(9, 768), torch.ones(9)
    torch.save(dict(model=weights, optimizer={}, epoch=299), path)
    return weights['layers.0.blocks.0.attn.qkv.weight']


def file_of_mmpretrain(path):
    mmpretrain = pytest.importorskip('mmpretrain')
    model = mmpretrain.get_model('swin-small_16xb64_in1k')
    save_checkpoint(dict(meta=dict(epoch=300), state_dict=model.state_dict()), path)
    return model.backbone.stages[0].blocks[0].attn.w_msa.qkv.weight


def file_of_timm(path):
    timm = pytest.importorskip('timm')
    model = timm.create_model('swin_small_patch4_window7_224')
    pytest.importorskip('safetensors.torch').save_model(model, path)
    return model.layers[0].blocks[0].attn.qkv.weight


@pytest.mark.full
@pytest.mark.modern
@pytest.mark.parametrize(
    'make, name',
    [
        (official_file, 'swin_small_patch4_window7_224.pth'),
        (file_of_mmpretrain, 'swin_small_224_b16x64_300e_imagenet.pth'),
        (file_of_timm, 'swin_small.safetensors'),
    ],
)
def test_starts_from_a_file_as_it_is(user, configs, quick, make, name):
    """Swin-S + FeatScale, in one command; the learning rate is 0."""
    path = str(user.folder / name)
    expected = make(path)
    options = {
        **MASK_RCNN,
        'pretrained': path,
        'train_cfg.max_epochs': 1,
        'default_hooks.checkpoint.interval': 1,
        'optim_wrapper.optimizer.lr': 0,
    }
    config = configs / 'antioversmoothing/mask-rcnn_swin-s-featscale_fpn_1x_coco.py'
    training = user.train('mmdet', config, quick('coco', **options))
    assert 'trains FROM SCRATCH' not in training.output
    assert f'entries from Swin in {path}' in training.output
    assert 'start at zero: 48 (' in training.output
    state_dict = read_checkpoint(str(training.checkpoint))['state_dict']
    begin = 'backbone.stages.0.blocks.0.'
    assert torch.equal(state_dict[f'{begin}attn.qkv.weight'], expected)
    assert not state_dict[f'{begin}feat_scale.hc_scale'].any()


QUERIES = {
    'model.test_cfg.max_per_image': 20,
    'train_cfg.max_iters': 4,
    'train_cfg.val_interval': 4,
    'train_cfg.dynamic_intervals': None,
    'default_hooks.checkpoint.interval': 4,
    'default_hooks.logger.interval': 1,
}


@pytest.mark.modern
@pytest.mark.full
@pytest.mark.parametrize(
    'config, kind, options',
    [
        (
            'elfatt/mask-rcnn_swin-t-elfatt_fpn_ms-crop-3x_coco.py',
            'coco_crops',
            # mixed precision needs a GPU
            {**MASK_RCNN, 'optim_wrapper.type': 'OptimWrapper'},
        ),
        ('soft/mask-rcnn_softpp-s_fpn_lsj-100e_coco.py', 'coco_jittered', MASK_RCNN),
        (
            'soft/dino-4scale_softpp-s_1x_coco.py',
            'coco_crops',
            # no more queries than tokens
            {**SHORT, 'model.num_queries': 20, 'model.test_cfg.max_per_img': 20},
        ),
        ('elfatt/mask2former_swin-t-elfatt_lsj-50e_coco.py', 'coco_queries', QUERIES),
    ],
    ids=['ms-crop', 'lsj', 'dino', 'mask2former'],
)
def test_other_recipes(user, configs, quick, config, kind, options):
    metrics = train_and_test(user, configs / config, quick(kind, **options))
    assert ('coco/segm_mAP' in metrics) == ('dino' not in config)
