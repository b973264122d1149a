"""Right configs train and are tested by tools/train.py and tools/test.py.

Those of the three libraries, of each task that they come with, on their stock
schedules and data sets; and unusual ones, which only their owners understand. All are
made small: a few images of 48 x 48 pixels, one or two iterations, narrow models.
"""

import gc
import importlib.util
import json
import pickle
import struct
import sys
import zipfile
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.runner import CheckpointLoader
from mmengine.visualization import Visualizer
from PIL import Image

from mmlinattn.utils import bases_read_once, load_config

pytestmark = pytest.mark.modern

pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
CocoPanopticDataset = pytest.importorskip('mmdet.datasets').CocoPanopticDataset
cifar = pytest.importorskip('mmpretrain.datasets.cifar')
mnist = pytest.importorskip('mmpretrain.datasets.mnist')

TOOLS = Path(__file__).resolve().parents[2] / 'tools'
FOLDERS = dict(
    coco='coco',
    imagenet='imagenet',
    ade20k='ade/ADEChallengeData2016',
    cityscapes='cityscapes',
)
START = """
alone = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4]),
)
tiny = dict(alone, _delete_=True)
fpn = dict(in_channels=[8, 16, 24, 32], out_channels=32)
thin = dict(in_channels=32, feat_channels=32)
boxes = dict(
    bbox_roi_extractor=dict(out_channels=32),
    bbox_head=dict(in_channels=32, fc_out_channels=32),
)
masks = dict(
    mask_roi_extractor=dict(out_channels=32),
    mask_head=dict(in_channels=32, conv_out_channels=32),
)
last = dict(in_channels=32, in_index=3, channels=8)
third = dict(in_channels=24, in_index=2, channels=8)
"""
# base, and lines that make it small
LIBRARIES = {
    # ---------------------------------------------------------------------- mmdet
    'one stage': (
        'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
        'model = dict(backbone=tiny, neck=fpn, bbox_head=thin)',
    ),
    'anchor-free': (
        'mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py',
        """
fpn.update(out_channels=64)
model = dict(backbone=tiny, neck=fpn, bbox_head=dict(in_channels=64, feat_channels=64))
""",
    ),
    'mosaics': (
        'mmdet::yolox/yolox_nano_8xb8-300e_coco.py',
        """
model = dict(data_preprocessor=dict(batch_augments=None))
mosaic = dict(type='Mosaic', img_scale=(64, 64))
packing = [dict(type='Resize', scale=(64, 64)), dict(type='PackDetInputs')]
train_dataloader = dict(dataset=dict(pipeline=[mosaic, *packing]))
""",
    ),
    'two stages': (
        'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
        """
model = dict(backbone=tiny, neck=fpn, rpn_head=thin, roi_head=boxes)
""",
    ),
    'cascade': (
        'mmdet::cascade_rcnn/cascade-rcnn_r50_fpn_1x_coco.py',
        """
fpn.update(out_channels=256)
rpn = dict(allowed_border=-1)
model = dict(backbone=tiny, neck=fpn, train_cfg=dict(rpn=rpn))
""",
    ),
    'proposals': (
        'mmdet::rpn/rpn_r50_fpn_1x_coco.py',
        'model = dict(backbone=tiny, neck=fpn, rpn_head=thin)',
    ),
    'instances': (
        'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py',
        """
model = dict(backbone=tiny, neck=fpn, rpn_head=thin, roi_head=dict(boxes, **masks))
""",
    ),
    'instances, one stage': (
        'mmdet::solo/solo_r50_fpn_1x_coco.py',
        """
fpn.update(out_channels=256)
model = dict(backbone=tiny, neck=fpn, mask_head=dict(stacked_convs=1))
""",
    ),
    'panoptic': (
        'mmdet::panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py',
        """
model = dict(
    backbone=tiny,
    neck=fpn,
    rpn_head=thin,
    roi_head=dict(boxes, **masks),
    semantic_head=dict(in_channels=32, inner_channels=32),
)
val_evaluator = dict(_delete_=True, type='DumpDetResults', out_file_path='x.pkl')
test_evaluator = val_evaluator
""",
    ),
    'queries': (
        'mmdet::detr/detr_r50_8xb2-150e_coco.py',
        """
model = dict(
    backbone=dict(tiny, out_indices=[3]),
    neck=dict(in_channels=[32]),
    num_queries=5,
    encoder=dict(num_layers=1),
    decoder=dict(num_layers=1),
    test_cfg=dict(max_per_img=5),
)
""",
    ),
    'deformable queries': (
        'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py',
        """
model = dict(
    backbone=dict(tiny, out_indices=[1, 2, 3]),
    neck=dict(in_channels=[16, 24, 32]),
    num_queries=5,
    encoder=dict(num_layers=1),
    decoder=dict(num_layers=1),
)
""",
    ),
    'XML annotations': (
        'mmdet::pascal_voc/retinanet_r50_fpn_1x_voc0712.py',
        """
model = dict(backbone=tiny, neck=fpn, bbox_head=thin)
""",
    ),
    'teacher and student': (
        'mmdet::soft_teacher/'
        'soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco.py',
        """
model = dict(
    detector=dict(backbone=tiny, neck=fpn, rpn_head=thin, roi_head=boxes)
)
""",
    ),
    # ---------------------------------------------------------------------- mmseg
    'segmentor': (
        'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py',
        """
model = dict(pretrained=None, backbone=tiny, decode_head=last, auxiliary_head=third)
""",
    ),
    'several maps': (
        'mmseg::upernet/upernet_r50_4xb4-80k_ade20k-512x512.py',
        """
pyramid = dict(in_channels=[8, 16, 24, 32], channels=16)
model = dict(pretrained=None, backbone=tiny, decode_head=pyramid, auxiliary_head=third)
""",
    ),
    'split files': (
        'mmseg::pspnet/pspnet_r50-d8_4xb4-20k_voc12aug-512x512.py',
        """
model = dict(pretrained=None, backbone=tiny, decode_head=last, auxiliary_head=third)
""",
    ),
    'cascade of segmentors': (
        'mmseg::point_rend/pointrend_r50_4xb2-80k_cityscapes-512x1024.py',
        """
model = dict(
    pretrained=None,
    backbone=tiny,
    neck=fpn,
    decode_head=[
        dict(
            type='FPNHead',
            in_channels=[32] * 4,
            in_index=[0, 1, 2, 3],
            feature_strides=[4, 8, 16, 32],
            channels=32,
            num_classes=19,
            norm_cfg=dict(type='BN'),
            loss_decode=dict(type='CrossEntropyLoss'),
        ),
        dict(
            type='PointHead',
            in_channels=[32],
            in_index=[0],
            channels=32,
            num_fcs=1,
            num_classes=19,
            loss_decode=dict(type='CrossEntropyLoss'),
        ),
    ],
)
""",
    ),
    'two classes': (
        'mmseg::unet/unet-s5-d16_fcn_4xb4-40k_drive-64x64.py',
        """
model = dict(
    backbone=dict(base_channels=8),
    decode_head=dict(in_channels=8, channels=8),
    auxiliary_head=dict(in_channels=16, channels=8),
)
""",
    ),
    'transformer': (
        'mmseg::segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512.py',
        """
model = dict(backbone=dict(num_layers=[1, 1, 1, 1]))
""",
    ),
    'masks for labels': (
        'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py',
        """
head = dict(in_channels=[8, 16, 24, 32], num_queries=5)
model = dict(backbone=tiny, decode_head=head)
""",
    ),
    # ----------------------------------------------------------------- mmpretrain
    'classifier': (
        'mmpretrain::resnet/resnet18_8xb32_in1k.py',
        """
model = dict(backbone=tiny, head=dict(in_channels=32))
""",
    ),
    'soft labels': (
        'mmpretrain::deit/deit-tiny_4xb256_in1k.py',
        """
model = dict(backbone=dict(img_size=32, patch_size=16))
param_scheduler = None
""",
    ),
    'downloads of CIFAR-10': ('mmpretrain::resnet/resnet18_8xb16_cifar10.py', ''),
    'downloads of MNIST': ('mmpretrain::lenet/lenet5_mnist.py', ''),
    'several labels': (
        'mmpretrain::csra/resnet101-csra_1xb16_voc07-448px.py',
        """
model = dict(backbone=tiny, head=dict(in_channels=32))
""",
    ),
    'contrast': (
        'mmpretrain::simclr/simclr_resnet50_8xb32-coslr-200e_in1k.py',
        """
tiny.update(out_indices=[3])
model = dict(backbone=tiny, neck=dict(in_channels=32, hid_channels=32))
""",
    ),
    'masked images': (
        'mmpretrain::mae/mae_vit-base-p16_8xb512-amp-coslr-300e_in1k.py',
        """
model = dict(
    backbone=dict(arch='deit-t', img_size=32),
    neck=dict(embed_dim=192, num_patches=4, decoder_embed_dim=32, decoder_num_heads=2),
)
""",
    ),
    'momentum': (
        'mmpretrain::byol/byol_resnet50_16xb256-coslr-200e_in1k.py',
        """
tiny.update(out_indices=[3])
model = dict(
    backbone=tiny,
    neck=dict(in_channels=32, hid_channels=32, out_channels=32),
    head=dict(predictor=dict(in_channels=32, hid_channels=32, out_channels=32)),
)
""",
    ),
    'retrieval': (
        'mmpretrain::arcface/resnet50-arcface_8xb32_inshop.py',
        """
model = dict(
    image_encoder=[alone, dict(type='GlobalAveragePooling')],
    head=dict(in_channels=32),
)
val_evaluator = [dict(type='RetrievalRecall', topk=1)]
test_evaluator = val_evaluator
""",
    ),
}


CLASSIFIER = 'mmpretrain::resnet/resnet18_8xb32_in1k.py'
DETECTOR = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
SEGMENTOR = 'mmseg::fcn/fcn_r50-d8_4xb4-80k_ade20k-512x512.py'
OWN = "custom_imports = dict(imports=['own_parts'])\n"
CLASSIFIES = OWN + 'model = dict(backbone=tiny, head=dict(in_channels=32))\n'
DETECTS = OWN + 'model = dict(backbone=tiny, neck=fpn, bbox_head=thin)\n'
SEGMENTS = OWN + (
    'model = dict(pretrained=None, backbone=tiny, decode_head=last, '
    'auxiliary_head=third)\n'
)
OWN_NAMES = (
    'my_train_dataloader',
    'visualizers',
    'my_custom_hooks',
    'train_dataloader2',
    'optim_wrappers',
    'param_schedulers',
    'default_hook',
    'custom_hook',
    'load_form',
    'train_cfgs',
    'val_evaluators',
    'test_evaluator_2',
    'data_preprocessors',
    'log_processors',
    'env_cfgs',
    'auto_scale_lrs',
    'randomness_seed',
    'launchers',
    'experiment_names',
    'model_wrapper_cfgs',
    'find_unused_params',
    'default_scopes',
    'work_dirs',
    'pretrained_path',
    'pretraned',
    'tta_models',
    'strategies',
)
# base, lines, and words of each line that is said
UNUSUAL = {
    'a label that is ignored': (
        SEGMENTOR,
        SEGMENTS
        + """
camvid = dict(
    _delete_=True,
    type='BaseSegDataset',
    data_root='data/camvid',
    seg_map_suffix='.png',
    img_suffix='.png',
    metainfo=dict(classes=[f'class{i}' for i in range(11)]),
    pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'),
              dict(type='PackSegInputs')],
)
folders = [dict(img_path=f'images/{x}', seg_map_path=f'annotations/{x}')
           for x in ('training', 'validation')]
train_dataloader = dict(dataset=dict(camvid, data_prefix=folders[0]))
val_dataloader = dict(dataset=dict(camvid, data_prefix=folders[1]))
test_dataloader = val_dataloader
last.update(num_classes=11, ignore_index=11)
third.update(num_classes=11, ignore_index=11)
model.update(data_preprocessor=dict(seg_pad_val=11))
""",
        [],
    ),
    'labels that a transform maps': (
        SEGMENTOR,
        SEGMENTS
        + """
last.update(num_classes=2)
third.update(num_classes=2)
train_dataloader = dict(dataset=dict(pipeline=[
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', reduce_zero_label=True),
    dict(type='mmengine.TwoKinds'),
    dict(type='Resize', scale=(64, 64)),
    dict(type='PackSegInputs'),
]))
""",
        ['it has 150 classes', 'its label map has'],
    ),
    'one output for two classes': (
        'mmseg::unet/unet-s5-d16_fcn_4xb4-40k_drive-64x64.py',
        """
one = dict(
    channels=8, num_classes=2, out_channels=1, threshold=0.3,
    loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True, loss_weight=1.0),
)
model = dict(
    backbone=dict(base_channels=8),
    decode_head=dict(in_channels=8, **one),
    auxiliary_head=dict(in_channels=16, **one),
)
""",
        [],
    ),
    'images in an archive': (
        DETECTOR,
        DETECTS
        + """
loading = dict(
    type='LoadImageFromFile',
    backend_args=dict(backend='zipped', archive='data/images.zip'),
)
boxes = dict(type='LoadAnnotations', with_bbox=True)
rest = [dict(type='Resize', scale=(64, 64)), dict(type='PackDetInputs')]
pipeline = dict(data_root='data/packed/', pipeline=[loading, boxes, *rest])
train_dataloader = dict(dataset=pipeline)
val_dataloader = dict(dataset=pipeline)
test_dataloader = val_dataloader
""",
        [],
    ),
    'a pattern of annotation files': (
        DETECTOR,
        DETECTS
        + """
train_dataloader = dict(
    dataset=dict(
        type='mmengine.ManyFiles',
        ann_file='data/coco/annotations/instances_tr*.json',
))
""",
        [],
    ),
    'a list of annotation files': (
        DETECTOR,
        DETECTS
        + """
train_dataloader = dict(dataset=dict(
    type='mmengine.ManyFiles',
    ann_file=['data/coco/annotations/instances_train2017.json'],
))
""",
        [],
    ),
    'fewer names than outputs': (
        DETECTOR,
        DETECTS
        + """
names = dict(classes=('sports ball', 'frisbee', 'kite'))
train_dataloader = dict(dataset=dict(metainfo=names))
val_dataloader = dict(dataset=dict(metainfo=names))
test_dataloader = val_dataloader
""",
        ['it has 3 classes'],
    ),
    'objects of any class': (
        DETECTOR,
        DETECTS
        + """
thin.update(num_classes=1)
train_dataloader = dict(dataset=dict(pipeline=[
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='mmengine.OneKind'),
    dict(type='PackDetInputs'),
]))
""",
        [],
    ),
    'own variables': (
        CLASSIFIER,
        CLASSIFIES + '\n'.join(f'{name} = {i}' for i, name in enumerate(OWN_NAMES)),
        ['which MMEngine does not read'],
    ),
    'two optimizers, one schedule': (
        CLASSIFIER,
        CLASSIFIES
        + """
model = dict(type='mmengine.TwoOptimizers', backbone=tiny, head=dict(in_channels=32))
optim_wrapper = dict(
    _delete_=True, constructor='PartByPart', rates=dict(backbone=0.1, head=0.01)
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2),
    dict(type='MultiStepLR', by_epoch=True, milestones=[1]),
]
""",
        [],
    ),
    'two optimizers, two schedules': (
        CLASSIFIER,
        CLASSIFIES
        + """
model = dict(type='mmengine.TwoOptimizers', backbone=tiny, head=dict(in_channels=32))
optim_wrapper = dict(
    _delete_=True, constructor='PartByPart', rates=dict(backbone=0.1, head=0.01)
)
step = dict(type='MultiStepLR', by_epoch=True, milestones=[1])
param_scheduler = dict(_delete_=True, backbone=[step], head=step)
""",
        [],
    ),
    'samples by name': (
        CLASSIFIER,
        CLASSIFIES
        + """
train_dataloader = dict(
    dataset=dict(type='mmengine.Named'), sampler=dict(_delete_=True, type='Names')
)
""",
        [],
    ),
    'an epoch that a hook sets': (
        CLASSIFIER,
        CLASSIFIES
        + """
train_dataloader = dict(dataset=dict(type='mmengine.Staged'))
custom_hooks = [dict(type='mmengine.SetEpoch')]
""",
        ['the epoch is not set'],
    ),
    'batches of its own': (
        CLASSIFIER,
        CLASSIFIES
        + """
train_dataloader = dict(batch_sampler=dict(type='mmengine.Pairs'))
""",
        [],
    ),
    'a stream': (
        CLASSIFIER,
        CLASSIFIES
        + """
train_dataloader = dict(dataset=dict(type='mmengine.Stream'), sampler=None)
train_cfg = dict(_delete_=True, by_epoch=False, max_iters=1)
param_scheduler = None
log_processor = dict(by_epoch=False)
""",
        [],
    ),
    'a visualizer that needs backends': (
        CLASSIFIER,
        CLASSIFIES
        + """
visualizer = dict(
    _delete_=True, type='Backed', vis_backends=[dict(type='LocalVisBackend')]
)
""",
        [],
    ),
    'FlexibleRunner': (
        CLASSIFIER,
        CLASSIFIES
        + """
runner_type = 'FlexibleRunner'
strategy = dict(type='SingleDeviceStrategy')
randomness = dict(_delete_=True, deterministic=True)
""",
        [],
    ),
    'a runner of its own': (
        CLASSIFIER,
        CLASSIFIES
        + """
runner_type = 'OwnRunner'
rounds = 1
train_cfg = None
""",
        [],
    ),
    'a backbone of its own': (
        CLASSIFIER,
        CLASSIFIES
        + """
model = dict(
    backbone=dict(_delete_=True, type='mmengine.Mean'), head=dict(in_channels=32)
)
""",
        [],
    ),
    'a training alone': (
        CLASSIFIER,
        CLASSIFIES
        + """
val_dataloader = None
val_cfg = None
val_evaluator = None
""",
        [],
    ),
}


def load_tool(name, path):
    spec = importlib.util.spec_from_file_location(name, TOOLS / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def picture(path, high=256, mode='RGB'):
    """Writes a picture of random values below a number."""
    rng = np.random.default_rng(0)
    shape = (48, 48, 3) if mode == 'RGB' else (48, 48)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(rng.integers(0, high, shape, np.uint8)).save(path)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


OBJECT = """
<annotation><size><width>48</width><height>48</height></size><object>
<name>dog</name><difficult>0</difficult><bndbox><xmin>4</xmin><ymin>4</ymin>
<xmax>40</xmax><ymax>40</ymax></bndbox></object></annotation>
"""


def write_voc(folder):
    for name in ('1', '2'):
        picture(folder / f'JPEGImages/{name}.jpg')
        write(folder / f'Annotations/{name}.xml', OBJECT)
        for kind in ('Class', 'ClassAug'):
            picture(folder / f'Segmentation{kind}/{name}.png', 21, 'L')
    for task in ('Main', 'Segmentation'):
        for split in ('train', 'val', 'trainval', 'test', 'aug'):
            write(folder / f'ImageSets/{task}/{split}.txt', '1\n2\n')


def write_maps(folder, suffix, high):
    """Writes pictures and their label maps, in the folders of mmseg."""
    for split in ('training', 'validation'):
        for name in ('1', '2'):
            picture(folder / f'images/{split}/{name}.png')
            picture(folder / f'annotations/{split}/{name}{suffix}.png', high, 'L')


def write_inshop(folder):
    for name in ('1', '2'):
        picture(folder / f'Img/{name}.jpg')
    splits = [('train', 1), ('train', 2), ('query', 1), ('query', 2)]
    splits += [('gallery', 1), ('gallery', 2)]
    rows = [f'{item}.jpg id{item} {split}' for split, item in splits]
    write(folder / 'Eval/list_eval_partition.txt', '\n'.join(['6', 'names', *rows]))


def write_panoptic(folder):
    for split in ('train', 'val'):
        path = folder / f'annotations/instances_{split}2017.json'
        content = json.loads(path.read_text())
        segments = []
        for image in content['images']:
            name = f'{image["id"]:012}.png'
            rgb = np.zeros((48, 48, 3), np.uint8)
            rgb[8:40, 8:40, 0] = 1
            to = folder / f'annotations/panoptic_{split}2017' / name
            to.parent.mkdir(exist_ok=True)
            Image.fromarray(rgb).save(to)
            one = dict(id=1, category_id=0, iscrowd=0, bbox=[8, 8, 32, 32], area=1024)
            entry = dict(image_id=image['id'], file_name=name, segments_info=[one])
            segments.append(entry)
        names = CocoPanopticDataset.METAINFO['classes']
        kinds = [dict(id=i, name=x, isthing=i < 80) for i, x in enumerate(names)]
        content.update(annotations=segments, categories=kinds)
        path = folder / f'annotations/panoptic_{split}2017.json'
        path.write_text(json.dumps(content))


def download_cifar(url, root, filename, md5):
    folder = Path(root, 'cifar-10-batches-py')
    folder.mkdir(parents=True)
    batch = dict(data=np.zeros((2, 3072), np.uint8), labels=[0, 9])
    for name in (*(f'data_batch_{i}' for i in range(1, 6)), 'test_batch'):
        (folder / name).write_bytes(pickle.dumps(batch))


def download_mnist(url, download_root, filename, md5):
    path = Path(download_root, filename).with_suffix('')
    path.parent.mkdir(parents=True, exist_ok=True)
    if 'images' in filename:
        path.write_bytes(struct.pack('>4I', 2051, 2, 28, 28) + bytes(2 * 28 * 28))
    else:
        path.write_bytes(struct.pack('>2I', 2049, 2) + bytes([0, 9]))


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """The folder ``data`` of the libraries' configs."""
    folder = tmp_path_factory.mktemp('data')
    make_shapes = load_tool('shapes', 'dataset_converters/make_shapes.py')
    for layout, path in FOLDERS.items():
        counts = '--num-train', '4', '--num-val', '2', '--size', '48', '48'
        make_shapes.main(['--layout', layout, '--out', str(folder / path), *counts])
    for year in ('2007', '2012'):
        write_voc(folder / f'VOCdevkit/VOC{year}')
    (folder / 'VOC2007').symlink_to(folder / 'VOCdevkit/VOC2007')
    write_maps(folder / 'DRIVE', '_manual1', 2)
    write_maps(folder / 'camvid', '', 12)
    write_inshop(folder / 'inshop')
    coco = folder / 'coco'
    write_panoptic(coco)
    whole = (coco / 'annotations/instances_train2017.json').read_text()
    for name in ('10', '10-unlabeled'):
        write(coco / f'semi_anns/instances_train2017.1@{name}.json', whole)
    with zipfile.ZipFile(folder / 'images.zip', 'w') as archive:
        for path in coco.glob('*2017/*.jpg'):
            archive.write(path, path.relative_to(coco))
    (folder / 'packed').mkdir()
    (folder / 'packed/annotations').symlink_to(coco / 'annotations')
    with bases_read_once():
        yield folder


@pytest.fixture
def use(data, tmp_path, monkeypatch, capsys):
    """Uses a tool in a folder with data, and returns what it says on stderr."""
    gc.freeze()  # as quick_collections does: the libraries are imported only now
    (tmp_path / 'data').symlink_to(data)
    monkeypatch.chdir(tmp_path)
    ids = Namespace(rgb2id=lambda color: color[..., 0].astype(int))
    monkeypatch.setitem(sys.modules, 'panopticapi', Namespace(utils=ids))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setattr(CheckpointLoader, '_schemes', dict(CheckpointLoader._schemes))
    # neat configs take most of the time
    for module in ('mmengine.config.config', 'yapf.yapflib.yapf_api'):
        monkeypatch.setattr(
            f'{module}.FormatCode', lambda text, **options: (text, True), raising=False
        )
    monkeypatch.setattr(cifar, 'download_and_extract_archive', download_cifar)
    monkeypatch.setattr(cifar, 'check_md5', lambda *args: True)
    monkeypatch.setattr(mnist, 'download_and_extract_archive', download_mnist)

    def call(tool, *args):
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *map(str, args)])
        capsys.readouterr()
        # a visualizer of another run, with its folder
        for kind in (Visualizer, *Visualizer.__subclasses__()):
            kind._instance_dict.clear()
        load_tool(tool, f'{tool}.py').main()
        lines = capsys.readouterr().err.splitlines()
        return [x for x in lines if x.startswith(f'{tool}.py')]

    yield call
    torch.use_deterministic_algorithms(False)


def smaller(node, key=''):
    """Options that make a config small: (key, value) pairs."""
    children = {}
    if isinstance(node, dict):
        children = node
    elif isinstance(node, (list, tuple)):
        children = dict(enumerate(node))
    for name, value in children.items():
        place = f'{key}.{name}'.strip('.')
        pair = isinstance(value, (tuple, list)) and len(value) == 2
        if name == 'scale' and pair and isinstance(value[0], (tuple, list)):
            yield place, '[(64,64),(64,64)]'
        elif name in ('scale', 'crop_size', 'img_scale', 'size') and pair:
            yield place, '(64,64)'
        elif name in ('scale', 'crop_size') and isinstance(value, int):
            yield place, '32'
        elif name == 'scales':
            yield place, '[(64,64)]'
        elif name in SMALL:
            yield place, SMALL[name]
        elif name == 'init_cfg' and 'checkpoint' in (value or ()):
            yield place, 'None'
        else:
            yield from smaller(value, place)


SMALL = dict(
    batch_size='2',
    num_workers='0',
    persistent_workers='False',
    max_epochs='1',
    max_iters='2',
    val_interval='1',
    times='1',
)
PARTS = (
    'model',
    'data_preprocessor',
    'train_cfg',
    'train_dataloader',
    'val_dataloader',
    'test_dataloader',
)


def small(base, lines):
    """Writes a config that inherits a base, and returns its path and options."""
    path = Path('mine.py')
    path.write_text(f'_base_ = {base!r}\n{START}{lines}\n')
    cfg = load_config(str(path))
    parts = {key: cfg.get(key) for key in PARTS if cfg.get(key) is not None}
    return [path, '--cfg-options', *(f'{k}={x}' for k, x in smaller(parts))]


def run(use, base, lines):
    """Trains and tests a small config, and returns what is said."""
    path, *options = small(base, lines)
    said = use('train', path, *options, '--work-dir', 'work')
    checkpoint = Path('work/last_checkpoint').read_text()
    if load_config(str(path)).get('test_cfg') is None:
        return said  # it has nothing to test
    return said + use('test', path, checkpoint, *options, '--work-dir', 'work')


@pytest.mark.parametrize('name', LIBRARIES)
def test_libraries(use, name):
    said = run(use, *LIBRARIES[name])
    words = ('warm-up', 'resume', 'would have no effect')
    assert not [line for line in said if not any(word in line for word in words)]


@pytest.mark.parametrize('name', UNUSUAL)
def test_unusual(use, name):
    base, lines, words = UNUSUAL[name]
    said = run(use, base, lines)
    found = {word for word in words for line in said if word in line}
    assert found == {*words}
    known = ('warm-up', *words)
    assert not [line for line in said if not any(word in line for word in known)]
