"""A training step and a test step of every kind of config, on a batch of noise."""

import re
from contextlib import nullcontext

import apple
import pytest
import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from our_configs import build, load

SIDE = 64


def kind_of(name):
    """Method, data set, True if there is a pyramid to make, and the recent linear
    attention, if any."""
    linear = ''.join(
        re.findall('mlla|vssd|efficientvit|ravlt|mavit|h?vittt|inline|polaformer', name)
    )
    if data := re.search(r'_(in1k|imagenette)(-\d+px)?', name):
        return data[0], 'deit' in name, linear
    data = name.rpartition('_')[2]
    return name.partition('_')[0], data, 'deit' in name and 'city' not in data, linear


def marks_of(kind):
    """Left to `make test-full` are Cityscapes, which has other classes only, methods
    that take the maps of an FPN as RetinaNet and Mask R-CNN do, and recent linear
    attention, whose training step test_battery.py takes; on the modern stack, pyramids
    that are made, and fine-tuning, too."""
    others = re.match('cascade|sparse|atss|gfl', kind[0])
    if kind[-1] or others or 'cityscapes' in str(kind):
        return pytest.mark.full
    return pytest.mark.modern_full if kind[-2] is True or '384' in kind[0] else ()


def shrink(cfg):
    """Makes a step on SIDE x SIDE images quick, and the same every time."""
    model = cfg.model
    # dropping a path for all images would leave its block without gradient
    model.backbone.drop_path_rate = 0.0
    preprocessor = model.get('data_preprocessor', {})
    if 'size' in preprocessor:
        preprocessor.size = (SIDE, SIDE)
    for padding in preprocessor.get('batch_augments', []):
        padding.size = (SIDE, SIDE)
    if 'num_queries' in model:  # no more than there are tokens
        model.num_queries = 20
    if 'num_proposals' in model.get('rpn_head', {}):
        model.rpn_head.num_proposals = 20
    if model.get('train_cfg', {}).get('rpn_proposal'):
        model.train_cfg.rpn_proposal.max_per_img = 50
        stages = model.train_cfg.rcnn
        for stage in stages if isinstance(stages, list) else [stages]:
            stage.sampler.num = 32


# Labels are those of the data set with the fewest classes.
def detection_batch():
    from mmdet.testing import demo_mm_inputs

    shapes = [(3, SIDE, SIDE)] * 2
    return demo_mm_inputs(2, shapes, num_items=[3, 3], num_classes=8, with_mask=True)


def segmentation_batch():
    from mmseg.structures import SegDataSample

    shapes = dict.fromkeys(('img_shape', 'ori_shape', 'pad_shape'), (SIDE, SIDE))
    samples = [
        SegDataSample(
            metainfo=shapes,
            gt_sem_seg=PixelData(data=torch.randint(19, (1, SIDE, SIDE))),
        )
        for _ in range(2)
    ]
    return dict(inputs=images(), data_samples=samples)


def classification_batch():
    from mmpretrain.structures import DataSample

    samples = [DataSample().set_gt_label(label) for label in (0, 9)]
    return dict(inputs=images(), data_samples=samples)


def images():
    return [torch.randint(256, (3, SIDE, SIDE), dtype=torch.uint8) for _ in range(2)]


BATCHES = {
    'mmdet': detection_batch,
    'mmseg': segmentation_batch,
    'mmpretrain': classification_batch,
}


def test_step(smallest):
    cfg = load(smallest)
    # mmdet's masks are made on a CPU, and mmseg's pools need other kernels than MPS has
    on_device = apple.like_mps if 'RetinaNet' in cfg.model.type else nullcontext
    shrink(cfg)
    model = revert_sync_batchnorm(build(cfg))
    # MMEngine's mixed precision needs a GPU
    optim_wrapper = dict(cfg.optim_wrapper.to_dict(), type='OptimWrapper')
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model.init_weights()
        optim_wrapper = build_optim_wrapper(model, optim_wrapper)
        model.train()
        batch = model.data_preprocessor(BATCHES[cfg.default_scope](), True)
        with on_device():
            loss, _ = model.parse_losses(model(**batch, mode='loss'))
            loss.backward()
    assert loss.isfinite() and loss > 0
    for key, param in model.backbone.named_parameters():
        assert param.grad is not None and param.grad.isfinite().all(), key
    optim_wrapper.step()
    model.eval()
    scope = DefaultScope.overwrite_default_scope(cfg.default_scope)
    with scope, torch.no_grad(), on_device():
        for sample in model.test_step(BATCHES[cfg.default_scope]()):
            scores = {
                'mmdet': lambda x: x.pred_instances.scores,
                'mmseg': lambda x: x.seg_logits.data,
                'mmpretrain': lambda x: x.pred_score,
            }[cfg.default_scope](sample)
            assert scores.isfinite().all()
