"""Small configs of a detector, a classifier and a segmentor whose types are classes."""

from pathlib import Path

from small_configs import draw_shapes

# what a config inherits by read_base
BASE = """
from mmengine.dataset import DefaultSampler
from mmengine.hooks import CheckpointHook, LoggerHook, ParamSchedulerHook
from mmengine.optim import LinearLR, OptimWrapper
from mmengine.runner import EpochBasedTrainLoop, TestLoop, ValLoop
from mmengine.visualization import LocalVisBackend
from torch.optim import SGD

from mmlinattn.engine import PretrainedBackboneHook

default_scope = None
pretrained = None
loading = dict(batch_size=2, num_workers=0, sampler=dict(type=DefaultSampler))
train_cfg = dict(type=EpochBasedTrainLoop, max_epochs=1)
val_cfg = dict(type=ValLoop)
test_cfg = dict(type=TestLoop)
optim_wrapper = dict(type=OptimWrapper, optimizer=dict(type=SGD, lr=0.01))
param_scheduler = [dict(type=LinearLR, start_factor=0.1, by_epoch=False, end=1)]
default_hooks = dict(
    logger=dict(type=LoggerHook),
    param_scheduler=dict(type=ParamSchedulerHook),
    checkpoint=dict(type=CheckpointHook),
    pretrained=dict(type=PretrainedBackboneHook),
)
vis_backends = [dict(type=LocalVisBackend)]
"""
HEIR = """
from mmengine.config import read_base

with read_base():
    from .base import *
"""
DETECTOR = """
from mmcv.transforms import LoadImageFromFile
from mmdet.datasets import CocoDataset
from mmdet.datasets.transforms import LoadAnnotations, PackDetInputs, Resize
from mmdet.engine.hooks import DetVisualizationHook
from mmdet.evaluation import CocoMetric
from mmdet.models import FPN, DetDataPreprocessor, RetinaHead, RetinaNet
from mmdet.models.losses import FocalLoss, L1Loss
from mmdet.models.task_modules import (
    AnchorGenerator, DeltaXYWHBBoxCoder, MaxIoUAssigner, PseudoSampler
)
from mmdet.visualization import DetLocalVisualizer

from mmlinattn.models import LinearSOFTPlusPlus

model = dict(
    type=RetinaNet,
    data_preprocessor=dict(type=DetDataPreprocessor, std=[60.0] * 3, mean=[120.0] * 3),
    backbone=dict(
        type=LinearSOFTPlusPlus,
        arch=dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2]),
        sampling_ratios=(4, 2),
        kernel_sizes=(3, 3),
    ),
    neck=dict(type=FPN, in_channels=[8, 16], out_channels=8, num_outs=2),
    bbox_head=dict(
        type=RetinaHead,
        num_classes=3,
        in_channels=8,
        feat_channels=8,
        stacked_convs=1,
        anchor_generator=dict(
            type=AnchorGenerator, scales=[4], ratios=[1.0], strides=[4, 8]
        ),
        bbox_coder=dict(type=DeltaXYWHBBoxCoder),
        loss_cls=dict(type=FocalLoss, use_sigmoid=True),
        loss_bbox=dict(type=L1Loss),
    ),
    train_cfg=dict(
        assigner=dict(
            type=MaxIoUAssigner, pos_iou_thr=0.5, neg_iou_thr=0.4, min_pos_iou=0
        ),
        sampler=dict(type=PseudoSampler),
        allowed_border=-1,
        pos_weight=-1,
    ),
    test_cfg=dict(
        nms_pre=20, score_thr=0.0, nms=dict(type='nms', iou_threshold=0.5),
        max_per_img=4,
    ),
)
data = dict(type=CocoDataset, metainfo=dict(classes=('circle', 'square', 'triangle')))
steps = [
    dict(type=LoadImageFromFile),
    dict(type=Resize, scale=(64, 64), keep_ratio=True),
    dict(type=LoadAnnotations, with_bbox=True),
    dict(type=PackDetInputs),
]
data.update(pipeline=steps, data_root='WORLD/')
train_dataloader = dict(
    dataset=dict(
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'),
        **data,
    ),
    **loading,
)
val_dataloader = dict(
    dataset=dict(
        ann_file='annotations/instances_val2017.json',
        data_prefix=dict(img='val2017/'),
        test_mode=True,
        **data,
    ),
    **loading,
)
test_dataloader = val_dataloader
val_evaluator = dict(
    type=CocoMetric, ann_file='WORLD/annotations/instances_val2017.json'
)
test_evaluator = val_evaluator
default_hooks.update(visualization=dict(type=DetVisualizationHook))
visualizer = dict(
    type=DetLocalVisualizer, vis_backends=vis_backends, name='visualizer'
)
"""
CLASSIFIER = """
from mmengine.model import PretrainedInit
from mmpretrain.datasets import CenterCrop, CustomDataset, LoadImageFromFile, PackInputs
from mmpretrain.engine import VisualizationHook
from mmpretrain.evaluation import Accuracy
from mmpretrain.models import GlobalAveragePooling, ImageClassifier, LinearClsHead
from mmpretrain.visualization import UniversalVisualizer
from torch.nn import GELU, LayerNorm

from mmlinattn.engine import LayerDecayOptimWrapperConstructor
from mmlinattn.models import ELFATT, ConvEmbedding, SwinTransformer, WindowAttention

model = dict(
    type=ImageClassifier,
    backbone=dict(
        type=SwinTransformer,
        arch=dict(embed_dims=8, depths=[1, 1], num_heads=[2, 2]),
        attention=[dict(type=ELFATT), dict(type=WindowAttention)],
        patch_embed=dict(
            type=ConvEmbedding,
            kernel_size=4,
            stride=4,
            norm_cfg=dict(type=LayerNorm),
            act_cfg=dict(type=GELU),
        ),
        out_indices=(1,),
    ),
    neck=dict(type=GlobalAveragePooling),
    head=dict(type=LinearClsHead, num_classes=3, in_channels=16),
)
data_preprocessor = dict(num_classes=3, mean=[120.0] * 3, std=[60.0] * 3, to_rgb=True)
steps = [
    dict(type=LoadImageFromFile),
    dict(type=CenterCrop, crop_size=48),
    dict(type=PackInputs),
]
data = dict(type=CustomDataset, pipeline=steps, with_label=True)
train_dataloader = dict(dataset=dict(data_prefix='WORLD/folders', **data), **loading)
val_dataloader = train_dataloader
test_dataloader = val_dataloader
val_evaluator = dict(type=Accuracy)
test_evaluator = val_evaluator
optim_wrapper.update(
    constructor=LayerDecayOptimWrapperConstructor,
    paramwise_cfg=dict(layer_decay_rate=0.7),
)
default_hooks.update(visualization=dict(type=VisualizationHook))
visualizer = dict(type=UniversalVisualizer, vis_backends=vis_backends)
"""
SEGMENTOR = """
from mmcv.transforms import LoadImageFromFile
from mmseg.datasets import ADE20KDataset, LoadAnnotations, PackSegInputs
from mmseg.engine import SegVisualizationHook
from mmseg.evaluation import IoUMetric
from mmseg.models import EncoderDecoder, FCNHead, SegDataPreProcessor
from mmseg.visualization import SegLocalVisualizer

from mmlinattn.models import LinearSOFTPlusPlus

model = dict(
    type=EncoderDecoder,
    data_preprocessor=dict(
        type=SegDataPreProcessor, std=[60.0] * 3, mean=[120.0] * 3, size=(64, 64)
    ),
    backbone=dict(
        type=LinearSOFTPlusPlus,
        arch=dict(embed_dims=[8, 16], depths=[1, 1], num_heads=[1, 2]),
        sampling_ratios=(4, 2),
        kernel_sizes=(3, 3),
    ),
    decode_head=dict(
        type=FCNHead, in_channels=16, in_index=1, channels=8, num_convs=1,
        num_classes=150, concat_input=False, norm_cfg=dict(type='BN'),
    ),
    test_cfg=dict(mode='whole'),
)
steps = [
    dict(type=LoadImageFromFile),
    dict(type=LoadAnnotations, reduce_zero_label=True),
    dict(type=PackSegInputs),
]
data = dict(type=ADE20KDataset, pipeline=steps, data_root='WORLD/ade')
train_dataloader = dict(
    dataset=dict(
        data_prefix=dict(
            img_path='images/training', seg_map_path='annotations/training'
        ),
        **data,
    ),
    **loading,
)
val_dataloader = train_dataloader
test_dataloader = val_dataloader
val_evaluator = dict(type=IoUMetric)
test_evaluator = val_evaluator
default_hooks.update(visualization=dict(type=SegVisualizationHook))
visualizer = dict(
    type=SegLocalVisualizer, vis_backends=vis_backends, name='visualizer'
)
"""
CONFIGS = dict(mmdet=DETECTOR, mmpretrain=CLASSIFIER, mmseg=SEGMENTOR)


def write_data(folder):
    """Writes the data of the configs, which have WORLD in place of the folder."""
    draw_shapes('shapes', folder, num_train=2)
    draw_shapes('ade20k', folder / 'ade', num_train=2)
    photo = next((folder / 'train2017').iterdir())
    for name in 'abc':
        (folder / 'folders' / name).mkdir(parents=True)
        (folder / f'folders/{name}/{name}.jpg').write_bytes(photo.read_bytes())


def write_config(library, data, more=''):
    """Writes mine.py, and the file that it inherits, in the working folder."""
    Path('base.py').write_text(BASE)
    text = HEIR + CONFIGS[library].replace('WORLD', str(data)) + more
    Path('mine.py').write_text(text)
    return 'mine.py'
