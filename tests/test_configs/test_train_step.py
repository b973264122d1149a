"""A training step and a test step of every kind of config, on a batch of noise."""

import copy
import re
from contextlib import contextmanager

import pytest
import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import OptimWrapper, build_optim_wrapper
from mmengine.registry import DefaultScope
from mmengine.structures import PixelData
from mmengine.utils import digit_version
from mmengine.utils.dl_utils.parrots_wrapper import _BatchNorm
from torch import nn

from mmlinattn.engine.optimizers import CPUAmpOptimWrapper
from mmlinattn.functional.precision import Float32Convolutions

pytestmark = pytest.mark.modern

SIDE = 64
# every method once, every attention once, and a technique with each method
QUICK = (
    r'^(softpp-t|soft-t-nystrom|softpp-t-m36|vit-s-sharedqk)_in1k|'
    r'^(retinanet|mask-rcnn|upernet)_softpp-t_|^upernet_soft-s_|'
    r'deit-s12-attnscale.*1x|mask-rcnn_swin-s-featscale|cait-xxs24-featscale_fine|'
    r'^mask-rcnn_swin-t-(elfatt|agent|flatten)_fpn_1x_coco|retinanet_cswin-t-local|'
    r'^(cascade-mask-rcnn|atss|gfl|sparse-rcnn)_soft-s|^(dino|mask2former).*swin-t'
)


def kind_of(name):
    """What a model is made of: method, backbone without its size, data set."""
    method = name.partition('_')[0] if '_in1k' not in name else 'in1k'
    backbone = name.split('_')[int(method != 'in1k')]
    backbone = re.sub(r'-(xxs|[tsmlhb])(\d\d)?(?=-|$)', '', backbone, count=1)
    data = name.split('_')[-1] if method != 'in1k' else '-384px' in name
    # other classes are the same for all backbones
    if 'cityscapes' in str(data):
        backbone = ''
    return method, backbone, data, 'lsj' in name, '_finetune_' in name


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
    if model.get('train_cfg', {}).get('rpn_proposal'):
        model.train_cfg.rpn_proposal.max_per_img = 50
        stages = model.train_cfg.rcnn
        for stage in stages if isinstance(stages, list) else [stages]:
            stage.sampler.num = 32


def detection_batch(cfg):
    from mmdet.testing import demo_mm_inputs

    model = cfg.model
    if 'panoptic_head' in model:
        num_classes, with_mask = model.panoptic_head.num_things_classes, True
    else:
        head = model.get('bbox_head') or model.roi_head.bbox_head
        head = head[0] if isinstance(head, list) else head
        num_classes = head.num_classes
        with_mask = 'mask_head' in model.get('roi_head', {})
    return demo_mm_inputs(
        2,
        [(3, SIDE, SIDE)] * 2,
        num_items=[3, 3],
        num_classes=num_classes,
        with_mask=with_mask,
    )


def segmentation_batch(cfg):
    from mmseg.structures import SegDataSample

    classes = cfg.model.decode_head.num_classes
    samples = [
        SegDataSample(
            metainfo=dict(
                img_shape=(SIDE, SIDE), ori_shape=(SIDE, SIDE), pad_shape=(SIDE, SIDE)
            ),
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


def check_predictions(cfg, samples):
    """Test results are there, in the library's own form, and finite."""
    assert len(samples) == 2
    for sample in samples:
        if cfg.default_scope == 'mmdet':
            found = sample.pred_instances
            assert found.bboxes.isfinite().all() and found.scores.isfinite().all()
            assert found.bboxes.shape == (len(found.scores), 4)
            if 'mask' in cfg.model.type.lower() or 'mask_head' in str(cfg.model):
                assert found.masks.shape[1:] == (SIDE, SIDE)
        elif cfg.default_scope == 'mmseg':
            assert sample.seg_logits.data.isfinite().all()
            assert sample.pred_sem_seg.data.shape == (1, SIDE, SIDE)
        else:
            torch.testing.assert_close(sample.pred_score.sum(), torch.tensor(1.0))


def test_step(name, config, build_model):
    cfg = config(name)
    shrink(cfg)
    model = revert_sync_batchnorm(build_model(cfg))
    # MMEngine's mixed precision needs a GPU
    optim_wrapper = dict(cfg.optim_wrapper.to_dict(), type='OptimWrapper')
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model.init_weights()
        optim_wrapper = build_optim_wrapper(model, optim_wrapper)
        model.train()
        batch = model.data_preprocessor(BATCHES[cfg.default_scope](cfg), True)
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
    assert loss.isfinite() and loss > 0
    loss.backward()
    exempt = biases_without_effect(model.backbone)
    if 'soft' in name and 'plain' not in name and 'patch' not in name:
        assert len(exempt) == 6
    for key, param in model.backbone.named_parameters():
        assert param.requires_grad, key
        assert param.grad is not None and param.grad.isfinite().all(), key
        assert key in exempt or param.grad.any(), key
    optim_wrapper.step()
    model.eval()
    with DefaultScope.overwrite_default_scope(cfg.default_scope), torch.no_grad():
        check_predictions(cfg, model.test_step(BATCHES[cfg.default_scope](cfg)))


# torch 2.1 aborted in a backward pass here, in two of three processes that had run
# thousands of tests before; alone it never did, and newer ones never.
OLD_TORCH = digit_version(torch.__version__) < digit_version('2.2')


@(pytest.mark.full if OLD_TORCH else pytest.mark.modern)
@pytest.mark.parametrize(
    'config_name',
    [
        'retinanet_softpp-t_fpn_1x_coco',
        'retinanet_swin-t-elfatt_fpn_1x_coco',
        'upernet_deit-s12-featscale_1x_ade20k-512x512',
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in (
                'retinanet_swin-t-agent_fpn_1x_coco',
                'retinanet_swin-t-flatten_fpn_1x_coco',
                'upernet_softpp-t_1x_ade20k-512x512',
                'cswin-t-elfatt_in1k',
                'soft-t_in1k',
            )
        ),
    ],
)
def test_mixed_precision(config_name, config, build_model):
    """What --amp does on a GPU, autocast, on a CPU: losses and gradients are close."""
    cfg = config(config_name)
    shrink(cfg)
    # drawn at random, by the precision
    cfg.model.get('train_cfg', {}).pop('augments', None)
    for head in ('decode_head', 'auxiliary_head'):
        cfg.model.get(head, {})['dropout_ratio'] = 0
    torch.manual_seed(0)
    model = revert_sync_batchnorm(build_model(cfg))
    found = []
    for enabled in (False, True):
        with DefaultScope.overwrite_default_scope(cfg.default_scope):
            if not enabled:
                model.init_weights()
                data = BATCHES[cfg.default_scope](cfg)
            model.train()
            model.zero_grad()
            torch.manual_seed(1)
            batch = model.data_preprocessor(copy.deepcopy(data), True)
            with Float32Convolutions():
                with torch.autocast('cpu', torch.bfloat16, enabled=enabled):
                    loss, _ = model.parse_losses(model(**batch, mode='loss'))
                loss.backward()
        grads = [p.grad for p in model.backbone.parameters()]
        assert all(grad.isfinite().all() for grad in grads)
        found.append((loss.item(), torch.cat([grad.flatten() for grad in grads])))
    (loss, grad), (half_loss, half_grad) = found
    assert half_loss == pytest.approx(loss, rel=0.05)
    # bfloat16 has 8 bits; UperNet's BatchNorm over two pooled pixels amplifies rounding
    if cfg.default_scope != 'mmseg':
        assert torch.cosine_similarity(half_grad, grad, dim=0) > 0.8


def extreme_images():
    """Constant, zero, saturated, far too bright, one pixel, checkerboard."""
    pixel = torch.zeros(3, SIDE, SIDE)
    pixel[:, SIDE // 2, SIDE // 2] = 255
    odd = (torch.arange(SIDE)[:, None] + torch.arange(SIDE)) % 2
    constant = torch.full_like(pixel, 255)
    noise = 1e4 * 255 * torch.rand(3, SIDE, SIDE)
    board = 255.0 * odd.expand(3, -1, -1)
    return constant / 2, torch.zeros_like(pixel), constant, noise, pixel, board


class Float16(OptimWrapper):
    """What --amp does on a GPU, without a scale of the loss: rounded to float16."""

    @contextmanager
    def optim_context(self, model):
        with (
            super().optim_context(model),
            torch.autocast('cpu', torch.float16),
            Float32Convolutions(round_to=torch.float16),
        ):
            yield


@pytest.mark.parametrize(
    'wrapper',
    [
        CPUAmpOptimWrapper,
        pytest.param(
            Float16,
            marks=pytest.mark.skipif(
                OLD_TORCH, reason='torch 2.1 has no float16 on a CPU'
            ),
        ),
    ],
)
@pytest.mark.parametrize(
    'config_name',
    [
        'retinanet_softpp-t_fpn_1x_coco',
        'soft-t_in1k',
        pytest.param('mask-rcnn_softpp-t_fpn_1x_coco', marks=pytest.mark.full),
        pytest.param('upernet_soft-s_1x_ade20k-512x512', marks=pytest.mark.full),
    ],
)
def test_half_precision_trains_on_extreme_images(
    config_name, wrapper, config, build_model
):
    """One model of every task."""
    if config_name.startswith('mask-rcnn') and wrapper is Float16:
        pytest.skip('mmcv has no NMS in float16 on a CPU')
    cfg = config(config_name)
    shrink(cfg)
    cfg.model.get('train_cfg', {}).pop('augments', None)
    torch.manual_seed(0)
    model = revert_sync_batchnorm(build_model(cfg))
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model.init_weights()
        optim_wrapper = wrapper(optimizer=torch.optim.SGD(model.parameters(), lr=1e-5))
        model.train()
        for image in extreme_images():
            data = BATCHES[cfg.default_scope](cfg)
            data['inputs'] = [image.clone(), image.clone()]
            optim_wrapper.zero_grad()
            with optim_wrapper.optim_context(model):
                batch = model.data_preprocessor(data, True)
                loss, _ = model.parse_losses(model(**batch, mode='loss'))
            assert loss.isfinite()
            optim_wrapper.backward(loss)
            for key, param in model.named_parameters():
                assert param.grad is None or param.grad.isfinite().all(), key
            optim_wrapper.step()
