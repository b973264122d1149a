"""The configs of docs/use/hosts.md, from the text of the page: methods that hold a
detector or a backbone of ours inside of a model of their own."""

import ast
import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from loading import ROOT
from mmengine.config import Config
from PIL import Image
from small_configs import draw_shapes, options_of

from mmlinattn.commands import compare_predictions, export, get_flops
from mmlinattn.engine.preflight import build_model, predicting_part
from mmlinattn.engine.preflight.trackers import check_tracker
from mmlinattn.models import LinearSOFTPlusPlus
from mmlinattn.runs import preparation, train
from mmlinattn.runs import test as run_test
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab

TEXT = (ROOT / 'docs/use/hosts.md').read_text('utf-8')
BLOCKS = re.findall(r'^```python\n(.*?)^```$', TEXT, re.M | re.S)
NAMES = ('moco', 'soft-teacher', 'panoptic-fpn', 'multi-label', 'qdtrack', 'mmpose')
CONFIGS = dict(zip(NAMES, BLOCKS))
MOCO, TRACKER = 'mocov2/mocov2_resnet50_8xb32-coslr-200e', 'qdtrack/qdtrack_faster-rcnn'
# models that a sentence of the page derives from its configs
CONFIGS['simsiam'] = CONFIGS['moco'].replace(
    MOCO, 'simsiam/simsiam_resnet50_8xb32-coslr-100e'
)
CONFIGS['byol'] = CONFIGS['moco'].replace(MOCO, 'byol/byol_resnet50_16xb256-coslr-200e')
MASKFORMER = """
model = dict(
    backbone=dict(_delete_=True, type='mmlinattn.LinearSOFTPlusPlus', arch='micro'),
    panoptic_head=dict(
        **counts,
        in_channels=[32, 64, 96, 160],
        loss_cls=dict(class_weight=[1.0] * len(things + stuff) + [0.1]),
    ),
    panoptic_fusion_head=counts,
)
"""
CONFIGS['maskformer'] = re.sub(
    r'^model = dict\(.*?^\)\n',
    MASKFORMER,
    CONFIGS['panoptic-fpn'].replace(
        'panoptic_fpn/panoptic-fpn_r50_fpn_1x', 'maskformer/maskformer_r50_ms-16xb1-75e'
    ),
    flags=re.M | re.S,
)
# what a model or its metrics import, besides the libraries
NEEDS = {
    'panoptic-fpn': 'panopticapi',
    'maskformer': 'panopticapi',
    'qdtrack': 'trackeval',
    'mmpose': 'mmpose',
}
# commands that can't take a model, and their line
REFUSED = {
    'moco': ('--whole', 'its test_dataloader has no pipeline'),
    'simsiam': ('--whole', 'its test_dataloader has no pipeline'),
    'byol': ('--whole', 'its test_dataloader has no pipeline'),
    'panoptic-fpn': ('--whole', 'PanopticFPN can not be exported whole'),
    'maskformer': ('--whole', 'MaskFormer can not be exported whole'),
    'qdtrack': ('--whole', 'QDTrack can not be exported, because its tracker'),
    'mmpose': ('--whole', 'TopdownPoseEstimator can not be exported whole'),
}
SMALL = {'default_hooks.checkpoint.interval': 1}
MORE = {
    'moco': {'model.queue_len': 8},
    'qdtrack': {'val_dataloader.batch_size': 1, 'test_dataloader.batch_size': 1},
}


def write_panoptic(folder, split, content):
    """COCO's panoptic file of the objects of a COCO file, and of the ground."""
    maps = folder / f'annotations/panoptic_{split}'
    maps.mkdir()
    entries = []
    for image in content['images']:
        ids = np.ones((image['height'], image['width']), np.int32)
        segments = [dict(id=1, category_id=9, iscrowd=0, bbox=[0, 0, 48, 48])]
        own = [x for x in content['annotations'] if x['image_id'] == image['id']]
        for i, entry in enumerate(own, 2):
            x, y, width, height = map(int, entry['bbox'])
            ids[y : y + height, x : x + width] = i
            segments.append(
                dict(
                    id=i,
                    category_id=entry['category_id'],
                    iscrowd=0,
                    bbox=entry['bbox'],
                )
            )
        for part in segments:
            part['area'] = int((ids == part['id']).sum())
        name = Path(image['file_name']).with_suffix('.png').name
        pixels = np.stack([ids, 0 * ids, 0 * ids], -1).astype(np.uint8)
        Image.fromarray(pixels).save(maps / name)
        entries.append(
            dict(image_id=image['id'], file_name=name, segments_info=segments)
        )
    things = [dict(x, isthing=1) for x in content['categories']]
    whole = dict(
        images=content['images'],
        annotations=entries,
        categories=[*things, dict(id=9, name='ground', isthing=0)],
    )
    (folder / f'annotations/panoptic_{split}.json').write_text(json.dumps(whole))


def write_labels(folder, split, content):
    """The classes of the objects in each photo."""
    numbers = [x['id'] for x in content['categories']]
    entries = [
        dict(
            img_path=image['file_name'],
            gt_label=sorted(
                {
                    numbers.index(x['category_id'])
                    for x in content['annotations']
                    if x['image_id'] == image['id']
                }
            ),
        )
        for image in content['images']
    ]
    names = [x['name'] for x in content['categories']]
    whole = dict(metainfo=dict(classes=names), data_list=entries)
    (folder / f'annotations/labels_{split}.json').write_text(json.dumps(whole))


def write_points(folder, split, content):
    """Three points of each object, as COCO has keypoints."""
    entries = []
    for entry in content['annotations']:
        x, y, width, height = entry['bbox']
        points = [x, y, 2, x + width, y, 2, x, y + height, 2]
        entries.append(dict(entry, keypoints=points, num_keypoints=3, category_id=1))
    categories = [dict(id=1, name='mine', keypoints=['a', 'b', 'c'], skeleton=[])]
    whole = dict(content, annotations=entries, categories=categories)
    (folder / f'annotations/points_{split}.json').write_text(json.dumps(whole))


def write_videos(folder, split):
    """A video of three images with two objects that move."""
    video = folder / 'videos' / split
    (video / 'img1').mkdir(parents=True)
    (video / 'gt').mkdir()
    images, entries, lines = [], [], []
    for i in range(3):
        pixels = np.full((64, 64, 3), 90, np.uint8)
        name = f'{split}/img1/{i + 1:06}.jpg'
        same = dict(video_id=1, height=64, width=64, frame_id=i, mot_frame_id=i + 1)
        images.append(dict(same, id=i + 1, file_name=name))
        for k in range(2):
            x, y = 5 + 25 * k + 3 * i, 10
            pixels[y : y + 30, x : x + 15] = 200 * (1 - k)
            entry = dict(id=len(entries) + 1, video_id=1, image_id=i + 1, iscrowd=False)
            entry.update(category_id=1, bbox=[x, y, 15, 30], area=450, mot_conf=1.0)
            entries.append(
                dict(entry, instance_id=k, mot_instance_id=k + 1, visibility=1.0)
            )
            lines.append(f'{i + 1},{k + 1},{x},{y},15,30,1,1,1.0')
        cv2.imwrite(str(folder / 'videos' / name), pixels)
    (video / 'gt/gt.txt').write_text('\n'.join(lines))
    sizes = 'imDir=img1\nframeRate=30\nseqLength=3\nimWidth=64\nimHeight=64\nimExt=.jpg'
    (video / 'seqinfo.ini').write_text(f'[Sequence]\nname={split}\n{sizes}\n')
    videos = [dict(id=1, name=split, width=64, height=64)]
    whole = dict(videos=videos, images=images, annotations=entries)
    whole.update(categories=[dict(id=1, name='pedestrian')], num_instances=2)
    (folder / f'annotations/video_{split}.json').write_text(json.dumps(whole))


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """The folder of the page's configs."""
    folder = tmp_path_factory.mktemp('world') / 'data'
    draw_shapes('shapes', folder, num_train=2)
    for split in ('train', 'val'):
        (folder / f'{split}2017').rename(folder / split)
        path = folder / f'annotations/instances_{split}2017.json'
        content = json.loads(path.read_text())
        path.rename(folder / f'annotations/{split}.json')
        for write in (write_panoptic, write_labels, write_points):
            write(folder, split, content)
        write_videos(folder, split)
    (folder / 'unlabeled').symlink_to(folder / 'val')
    content = json.loads((folder / 'annotations/val.json').read_text())
    content['annotations'] = []
    (folder / 'annotations/unlabeled.json').write_text(json.dumps(content))
    return folder


@pytest.fixture
def write(data, tmp_path, monkeypatch):
    """Writes a config of the page, made small, beside its data."""

    def call(name, small=True):
        if name == 'mmpose' or small:
            pytest.importorskip(NEEDS.get(name, 'torch'))
        monkeypatch.chdir(tmp_path)
        Path('data').symlink_to(data)
        Path('page.py').write_text(CONFIGS[name])
        cfg = load_config('page.py')
        if small:
            options = options_of(cfg)
            options = {key: literal(x) for key, x in options.items()}
            cfg.merge_from_dict({**options, **SMALL, **MORE.get(name, {})})
        Path('mine.py').write_text(cfg.pretty_text)
        return 'mine.py'

    return call


def literal(text):
    return ast.literal_eval(text) if re.match(r'[\[(\dNTF-]', text) else text


def test_the_page_has_a_config_of_each():
    assert len(BLOCKS) == len(NAMES)
    assert MOCO in BLOCKS[0] and TRACKER in BLOCKS[4]


@pytest.mark.parametrize('name', CONFIGS)
def test_builds(name, write):
    """The backbone is ours, inside of whatever holds it, and its maps fit the rest."""
    model = build_model(load_config(write(name, small=False)))
    assert isinstance(predicting_part(model).backbone, LinearSOFTPlusPlus)


@pytest.mark.parametrize(
    'name', [pytest.param(x, marks=pytest.mark.full) for x in CONFIGS]
)
def test_through_the_tools(name, write, data, error_of):
    """Trained, resumed, tested, counted; predicted and exported, or refused."""
    config = write(name)
    trained = train(config, 'work')
    length = 'iters' if name == 'soft-teacher' else 'epochs'
    number = 3 if name == 'soft-teacher' else 2
    resumed = train(config, 'work', {f'train_cfg.max_{length}': number}, resume='auto')
    assert resumed.checkpoint != trained.checkpoint and resumed.checkpoint.exists()
    checkpoint = str(trained.checkpoint)
    words = [config, '--checkpoint', checkpoint, '--image', str(data / 'val')]
    if load_config(config).get('test_dataloader') is None:
        with pytest.raises(KeyError, match='no test_dataloader and no test_cfg: there'):
            run_test(config, checkpoint)
        assert any(x.startswith('start:') for x in trained.summary)
    else:
        assert run_test(config, checkpoint, 'test')
        if name in ('qdtrack', 'mmpose'):
            assert ' predicts ' in error_of(compare_predictions.main, words)
        else:
            compare_predictions.main([*words, '--out', 'out'])
            assert len([*Path('out').glob('*.json')]) == 2
    get_flops.main([config, '--shape', '64'])
    if name in REFUSED:
        option, line = REFUSED[name]
        assert line in error_of(export.main, [config, checkpoint, option])


@pytest.mark.full
@pytest.mark.parametrize('name', ['multi-label', 'soft-teacher'])
def test_exported_whole(name, write, capsys):
    """Several labels have a probability each; of a student and a teacher, the file is
    of the one that predicts."""
    config = write(name)
    trained = train(config, 'work')
    words = [config, str(trained.checkpoint), '--whole', '--verify', '--out', 'x.onnx']
    export.main(words)
    printed = capsys.readouterr().out
    assert 'verdict: the file gives' in printed or 'verdict: none' in printed


@pytest.mark.full
@pytest.mark.parametrize('name', ['moco', 'byol', 'simsiam'])
def test_starts_a_detector(name, write, capsys):
    """All weights of the backbone are those of the self-supervised checkpoint."""
    trained = train(write(name), 'work')
    path = str(trained.checkpoint)
    backbone = LinearSOFTPlusPlus(
        'micro', init_cfg=dict(type='Pretrained', checkpoint=path)
    )
    backbone.init_weights()
    state = torch.load(path, weights_only=False)['state_dict']
    for key, value in backbone.state_dict().items():
        if key.startswith('norm') and f'backbone.{key}' not in state:
            continue  # of maps that a classifier does not return
        assert torch.equal(value, state[f'backbone.{key}']), key


class Teacher(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.student, self.teacher = torch.nn.Identity(), torch.nn.Identity()
        self.semi_test_cfg = options


def test_which_part_predicts():
    for options, name in (
        ({}, 'teacher'),
        (dict(predict_on='teacher'), 'teacher'),
        (dict(predict_on='student'), 'student'),
    ):
        model = Teacher(**options)
        assert predicting_part(model) is getattr(model, name)
    tracker = torch.nn.Module()
    tracker.detector = torch.nn.Module()
    tracker.detector.backbone = torch.nn.Identity()
    assert predicting_part(tracker) is tracker.detector


def test_batches_of_a_tracker(write):
    cfg = load_config(write('qdtrack', small=False))
    cfg.val_dataloader.batch_size = 2
    model = build_model(cfg)
    check_tracker(cfg, 'train', model)
    check_tracker(cfg, 'test', model)
    with pytest.raises(ValueError, match='batch_size=2: QDTrack tracks one video'):
        check_tracker(cfg, 'val', model)


def test_preprocessor_of_branches():
    inner = dict(type='DetDataPreprocessor', mean=[1.0])
    branches = dict(type='MultiBranchDataPreprocessor', data_preprocessor=inner)
    cfg = Config(dict(model=dict(data_preprocessor=branches)))
    assert preparation.preprocessor_options(cfg) == inner


def test_classes_of_a_panoptic_map():
    segments = torch.tensor([[[3, 2001], [1001, 4]]])
    part = type('Part', (), dict(sem_seg=segments))
    sample = type('Sample', (), dict(pred_panoptic_seg=part))()
    type(sample).__contains__ = lambda self, name: hasattr(self, name)
    predicted = preparation.predictions_of(sample)
    assert predicted['label_map'].tolist() == [[3, 1], [1, 4]]
