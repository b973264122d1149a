"""Configs whose types are classes, through every tool: a detector, a classifier and a
segmentor, which have no default scope, like those of the libraries."""

import sys
from pathlib import Path

import pytest
import torch
from loading import run_command
from mmengine.config import Config
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmpretrain.models import ImageClassifier
from small_configs import draw_shapes
from torch import nn

from mmlinattn import parts
from mmlinattn.commands import compare_predictions, export, get_flops
from mmlinattn.models import ConvEmbedding
from mmlinattn.runs import test as run_test
from mmlinattn.runs import train
from mmlinattn.runs.training import choose_precision
from mmlinattn.utils import library_of, load_config

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
# the first of the tests that share a training is the quick one
LIBRARIES = [
    pytest.param(name, marks=() if name == 'mmpretrain' else pytest.mark.full)
    for name in CONFIGS
]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    draw_shapes('shapes', folder, num_train=2)
    draw_shapes('ade20k', folder / 'ade', num_train=2)
    for i, name in enumerate('abc'):
        photo = next((folder / 'train2017').iterdir())
        (folder / 'folders' / name).mkdir(parents=True)
        (folder / f'folders/{name}/{i}.jpg').write_bytes(photo.read_bytes())
    return folder


@pytest.fixture
def write(world, tmp_path, monkeypatch):
    """Writes a config of classes, mine.py, which inherits another one."""

    def call(library, more=''):
        monkeypatch.chdir(tmp_path)
        Path('base.py').write_text(BASE)
        text = HEIR + CONFIGS[library].replace('WORLD', str(world)) + more
        Path('mine.py').write_text(text)
        return 'mine.py'

    return call


@pytest.mark.parametrize('library', LIBRARIES)
def test_through_the_tools(library, write, world, capsys):
    """Training, its dump, resuming, testing, pictures and counts; a dump has the
    classes' names in full."""
    config, photos = write(library), str(world / 'val2017')
    assert load_config(config).default_scope is None
    trained = train(config, 'work')
    longer = {'train_cfg.max_epochs': 2}
    resumed = train('work/mine.py', 'work', longer, resume='auto')
    assert resumed.checkpoint.name == 'epoch_2.pth'
    for path in (config, 'work/mine.py'):
        metrics = run_test(path, trained.checkpoint, 'test')
        assert metrics or library == 'mmdet'
    if library != 'mmseg':  # which has no default for it
        run_test(config, trained.checkpoint, 'test', tta=True)
    run_test(config, trained.checkpoint, 'test', out='out.pkl', show_dir='shown')
    assert Path('out.pkl').exists()
    # of mmseg, in the folder of the first visualizer of this process
    assert [*Path('.').rglob('vis_image/*.png'), *Path('shown').rglob('*.*g')]
    words = [config, '--checkpoint', str(trained.checkpoint), '--image', photos]
    compare_predictions.main([*words, '--out', 'predictions', '--score', '0'])
    assert len([*Path('predictions').glob('*.json')]) == 2
    capsys.readouterr()
    for path in (config, 'work/mine.py'):
        get_flops.main([path, *(['--shape', '64'] if library == 'mmseg' else [])])
        assert ', one image of ' in capsys.readouterr().out
    get_flops.main([config, '--shape', '64'])


@pytest.mark.full
@pytest.mark.parametrize('library', CONFIGS)
def test_exports(library, write, capsys):
    config = write(library)
    trained = train(config, 'work')
    words = [config, str(trained.checkpoint), '--whole', '--verify', '--out', 'x.onnx']
    export.main(words)
    printed = capsys.readouterr().out
    assert 'verdict: the file gives' in printed or 'verdict: none' in printed


def test_weights_of_a_class(write, tmp_path):
    """``init_cfg`` of MMEngine's class, and its name in full, as a dump has it."""
    more = "\nmodel['backbone'].update(init_cfg=dict(type=PretrainedInit, checkpoint="
    config = write('mmpretrain', f"{more}'x.pth', prefix='backbone.'))\n")
    Path('dumped.py').write_text(load_config(config).pretty_text)
    for path in (config, 'dumped.py'):
        cfg = load_config(path)
        with pytest.raises(FileNotFoundError, match=r"'x\.pth'"):
            parts.build_model(cfg.model.backbone).init_weights()


@pytest.mark.parametrize('kind', [nn.LayerNorm, 'torch.nn.LayerNorm', 'LN'])
def test_layer_norm_of_maps(kind):
    """It normalizes channels, whatever names it."""
    embedding = ConvEmbedding(3, 8, norm_cfg=dict(type=kind), act_cfg=None).eval()
    out = embedding(torch.rand(1, 3, 64, 96))
    maps = out[0] if isinstance(out, tuple) else out
    channels = 1 if maps.dim() == 4 else -1
    assert maps.mean(channels).abs().max() < 1e-5


@pytest.mark.parametrize(
    'kind', [AmpOptimWrapper, 'AmpOptimWrapper', 'mmengine.optim.AmpOptimWrapper']
)
def test_mixed_precision_on_a_cpu(kind, monkeypatch):
    monkeypatch.setattr('mmlinattn.runs.training.get_device', lambda: 'cpu')
    cfg = Config(dict(optim_wrapper=dict(type=kind, loss_scale='dynamic')))
    choose_precision(cfg, amp=False)
    assert cfg.optim_wrapper == dict(type='OptimWrapper')
    cfg = Config(dict(optim_wrapper=dict(type=OptimWrapper)))
    choose_precision(cfg, amp=False)
    assert cfg.optim_wrapper.type is OptimWrapper


class Own(ImageClassifier):
    """A model of a person's own."""


@pytest.mark.parametrize(
    'entries, library',
    [
        (dict(default_scope='mmseg', model=dict(type=Own)), 'mmseg'),
        (dict(default_scope=None, model=dict(type=Own)), 'mmpretrain'),
        (dict(model=dict(type='mmdet.models.RetinaNet')), 'mmdet'),
        (dict(model=dict(type='RetinaNet')), 'mmengine'),
        (dict(model=dict(type=nn.Linear)), 'mmengine'),
        ({}, 'mmengine'),
    ],
)
def test_library_of(entries, library):
    assert library_of(Config(entries)) == library


SPY = """
import sys

from mmlinattn.ops import Finder


def kind():
    pass


enabled = any(getattr(x, '__name__', '') == 'Finder' for x in sys.meta_path)
"""
CALL = """
import sys

from mmlinattn.cli.run_arguments import run_options

sys.meta_path[:] = [x for x in sys.meta_path if getattr(x, '__name__', '') != 'Finder']
run_options('mine.py', None, None)
import spy

assert spy.enabled
"""


def test_operators_are_there_before_a_config_is_read(tmp_path):
    """Reading it imports the libraries, which import mmcv's operators."""
    (tmp_path / 'spy.py').write_text(SPY)
    (tmp_path / 'mine.py').write_text('from spy import kind\n\nx = dict(type=kind)\n')
    run_command(sys.executable, '-W', 'ignore', '-c', CALL, cwd=tmp_path)
