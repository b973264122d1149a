"""A training step of every config, on a batch of noise."""

import pytest
import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

pytestmark = pytest.mark.modern

SIDE = 64
# the smallest of each family, for each method, dataset and schedule; of AttnScale
# and FeatScale one at 3x, the other at 1x; of ELFATT and of other attentions one
QUICK = (
    r'softpp-t|soft-t_|upernet_soft-s|deit-s12-attnscale.*(3x|in1k)|'
    r'swin-s-featscale.*(1x|in1k)|cait-xxs24-featscale_finetune|'
    r'mask-rcnn_swin-t-elfatt_fpn_1x_coco|soft-t-nystrom|'
    r'(cascade-mask-rcnn|atss|gfl|sparse-rcnn)_soft-s'
)


def shrink(cfg):
    """Makes a step on SIDE x SIDE images quick, and the same every time."""
    model = cfg.model
    # dropping a path for all images would leave its block without gradient
    model.backbone.drop_path_rate = 0.0
    if 'size' in model.get('data_preprocessor', {}):
        model.data_preprocessor.size = (SIDE, SIDE)
    if model.get('train_cfg', {}).get('rpn_proposal'):
        model.train_cfg.rpn_proposal.max_per_img = 50
        stages = model.train_cfg.rcnn
        for stage in stages if isinstance(stages, list) else [stages]:
            stage.sampler.num = 32


def detection_batch(cfg):
    from mmdet.testing import demo_mm_inputs

    head = cfg.model.get('bbox_head') or cfg.model.roi_head.bbox_head
    head = head[0] if isinstance(head, list) else head
    return demo_mm_inputs(
        2,
        [(3, SIDE, SIDE)] * 2,
        num_items=[3, 3],
        num_classes=head.num_classes,
        with_mask='mask_head' in cfg.model.get('roi_head', {}),
    )


def segmentation_batch(cfg):
    from mmseg.structures import SegDataSample

    classes = cfg.model.decode_head.num_classes
    samples = [
        SegDataSample(
            metainfo=dict(img_shape=(SIDE, SIDE)),
            gt_sem_seg=PixelData(data=torch.randint(classes, (1, SIDE, SIDE))),
        )
        for _ in range(2)
    ]
    return dict(inputs=images(), data_samples=samples)


def classification_batch(cfg):
    from mmpretrain.structures import DataSample

    samples = [DataSample().set_gt_label(label) for label in (0, 999)]
    return dict(inputs=images(), data_samples=samples)


def images():
    return [torch.randint(256, (3, SIDE, SIDE), dtype=torch.uint8) for _ in range(2)]


BATCHES = {
    'mmdet': detection_batch,
    'mmseg': segmentation_batch,
    'mmpretrain': classification_batch,
}


def biases_without_effect(model):
    """Biases whose gradient is zero, but for rounding: BatchNorm subtracts
    the mean, softmax divides by the sum, and with it whatever a bias adds."""
    before_norm = {
        f'{prefix}.0.bias'
        for prefix, module in model.named_modules()
        if isinstance(module, nn.Sequential)
        and isinstance(module[0], nn.Conv2d)
        and isinstance(module[1], _BatchNorm)
    }
    before_softmax = {
        name for name, _ in model.named_parameters() if name.endswith('mix_logits.bias')
    }
    return before_norm | before_softmax


def test_step(name, config, build_model):
    cfg = config(name)
    shrink(cfg)
    model = revert_sync_batchnorm(build_model(cfg))
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model.init_weights()
        model.train()
        batch = model.data_preprocessor(BATCHES[cfg.default_scope](cfg), True)
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
    assert loss.isfinite() and loss > 0
    loss.backward()
    exempt = biases_without_effect(model.backbone)
    if 'soft' in name:
        assert len(exempt) == 6
    for key, param in model.backbone.named_parameters():
        assert param.requires_grad, key
        assert param.grad is not None and param.grad.isfinite().all(), key
        assert key in exempt or param.grad.any(), key
