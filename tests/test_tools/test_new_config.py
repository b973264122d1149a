"""Configs for data sets of users; what is read of them, test_own_data.py has."""

import re
import shutil
import sys
from ast import literal_eval
from importlib.util import find_spec
from pathlib import Path

import cv2
import pytest
import torch
from loading import ROOT, load_module
from mmengine.optim import build_optim_wrapper
from mmengine.runner import Runner
from own_folders import (
    NAMES,
    OUTLINE,
    coco,
    color_map,
    grow,
    label_map,
    name_of,
    photo,
    voc,
)
from PIL import Image

from mmlinattn.commands import compare_predictions as predictions
from mmlinattn.commands import new_config as tool
from mmlinattn.engine import build_model, check_data
from mmlinattn.engine.hooks import release_memory_hook
from mmlinattn.own_config import Devices
from mmlinattn.utils import load_config

PAGE = (ROOT / 'docs' / 'use' / 'predict.md').read_text('utf-8')
BLOCKS = re.findall(r'^```python\n(.*?)^```$', PAGE, re.M | re.S)
MLLA_T = 'configs/mlla/mask-rcnn_mlla-t_fpn_ms-crop-3x_coco.py'
LONG = pytest.mark.full
ONE_STACK = pytest.mark.modern_full


def camvid_map(i):
    return label_map(0, 1 + i % 2, 11)


FOLDERS = {
    'coco': {
        '{split}2017/{i}.jpg': photo,
        'annotations/instances_train2017.json': coco(range(8), **OUTLINE),
        'annotations/instances_val2017.json': coco(range(8, 10), **OUTLINE),
    },
    'voc': {
        'JPEGImages/{i}.png': photo,
        'Annotations/{i}.xml': voc,
        'ImageSets/Main/train.txt': '\n'.join(map(str, range(8))),
        'ImageSets/Main/val.txt': '8\n9',
    },
    'camvid': {'{split}/{i}.png': photo, '{split}annot/{i}.png': camvid_map},
    'colors': {
        'images/{i}.png': photo,
        'masks/{i}.png': color_map((9, 0, 200), (128, 64, 0)),
    },
    'classes': {'{name}/{i}.jpg': photo},
    'dota': {
        'images/{i}.png': photo,
        'labelTxt/{i}.txt': lambda i: f'10 12 30 9 33 29 13 32 {name_of(i)} 0\n',
    },
}
TASKS = dict(
    coco='det', voc='det', camvid='seg', colors='seg', classes='cls', dota='rot'
)


@pytest.fixture
def new_config(tmp_path, monkeypatch, capsys):
    """Runs the tool in an empty folder, and reads its config."""
    monkeypatch.chdir(tmp_path)
    script = ROOT / 'tools/misc/new_config.py'
    monkeypatch.setattr(sys, 'argv', [str(script)])

    def run(kind, *options, task=None):
        grow(Path('my'), FOLDERS.get(kind, {}))
        task = task or TASKS[kind]
        argv = ['--data', 'my', '--task', task, '--out', 'mine.py', *options]
        ignored = ['--ignore', '11'] * (kind == 'camvid')
        tool.main([*argv, '--no-estimate', *ignored])
        path = tool.parse_args(argv).out
        return load_config(str(path), warn=pytest.fail), capsys.readouterr().out

    return run


@ONE_STACK
def test_colors_are_those_of_the_option(new_config):
    """A config has colors only if each class has one."""
    options = ['--backbone', 'softpp-micro-linear', '--colors']
    cfg, _ = new_config('colors', *options, 'a=9,0,200', 'b=128,64,0', 'a=9,0,201')
    expected = dict(classes=('a', 'b'), palette=[(9, 0, 200), (128, 64, 0)])
    for split in ('train', 'val', 'test'):
        assert cfg[f'{split}_dataloader'].dataset.metainfo == expected
    options += ['a=9,0,200', 'b=128,64,0', '--classes', 'a', 'b', 'c', '--overwrite']
    cfg, _ = new_config('colors', *options)
    assert cfg.train_dataloader.dataset.metainfo == dict(classes=('a', 'b', 'c'))


KINDS = dict(det=80, seg=150, cls=1000)


@ONE_STACK
@pytest.mark.parametrize('kind', ['coco', 'camvid', 'classes'])
def test_show(new_config, kind):
    new_config(kind, '--show', 'seen.png')
    assert len(Image.open('seen.png').convert('RGB').getcolors(2**24)) > 1000


def methods():
    """Methods and their backbones, one of each."""
    configs = ROOT / 'configs'
    for task, ending in dict(det='_coco', seg='_ade20k-512x512').items():
        backbones = {}
        for path in sorted(configs.glob(f'*/*{ending}.py')):
            method, backbone = path.stem.split('_')[:2]
            backbones.setdefault(method, backbone)
        yield from ((task, *pair) for pair in backbones.items())
    yield 'cls', 'classifier', 'cait-s24'


@ONE_STACK
@pytest.mark.parametrize('task, method, backbone', [*methods()])
def test_every_method(new_config, monkeypatch, task, method, backbone):
    """All heads have the classes, and nothing else of the model changes."""
    monkeypatch.setattr(Devices, 'find', lambda: Devices(1, 8))
    kind = dict(det='coco', seg='camvid', cls='classes')[task]
    cfg, _ = new_config(kind, '--detector', method, '--backbone', backbone)
    num = 3 if task == 'seg' else 2
    base = re.search('_base_ = .*', Path('mine.py').read_text())[0]
    Path('base.py').write_text(base)
    model = load_config('base.py').model
    if task == 'seg':
        model.data_preprocessor.size = (128, 171)
    has_weights = cfg.get('load_from') or cfg.pretrained
    if has_weights and model.backbone.get('norm_cfg'):  # in small batches
        assert cfg.model.backbone.pop('norm_eval') is True
    text = repr(model.to_dict())
    for key in ('num_classes', 'num_things_classes'):
        text = text.replace(f"'{key}': {KINDS[task]}", f"'{key}': {num}")
    ones = ', '.join(['1.0'] * KINDS[task])
    text = text.replace(f'[{ones}, 0.1]', f'[{", ".join(["1.0"] * num)}, 0.1]')
    assert cfg.model.to_dict() == literal_eval(text) != model.to_dict()


@pytest.mark.skipif(not find_spec('mmrotate'), reason='needs mmrotate')
@pytest.mark.parametrize('method', ['rotated-retinanet', 'oriented-rcnn'])
def test_rotated(new_config, method):
    """Heads have the classes, and both splits the rectangles of the labels."""
    from mmrotate.registry import DATASETS

    cfg, out = new_config('dota', '--backbone', 'softpp-t-linear', '--detector', method)
    heads = re.findall(r"'num_classes': (\d+)", str(cfg.model.to_dict()))
    assert heads and set(heads) == {'2'}
    assert '--epochs shortens it' in out
    assert cfg.val_evaluator.type == 'mmrotate.DOTAMetric'
    check_data(cfg, 'train', build_model(cfg), pytest.fail)
    dataset = DATASETS.build(cfg.val_dataloader.dataset)
    assert dataset.metainfo['classes'] == ('blue', 'red') and len(dataset) == 2
    for item in dataset:
        boxes = item['data_samples'].gt_instances.bboxes
        corners = boxes.convert_to('qbox').tensor.view(4, 2)
        labels = torch.tensor([[10.0, 12], [30, 9], [33, 29], [13, 32]])
        assert torch.cdist(labels, corners).amin(1).max() < 0.01
    if method == 'oriented-rcnn':  # without a training, its scores are not near 0
        subject = predictions.Subject('mine.py')
        comparison = predictions.compare(Path('my/images/0.png'), [subject], 0.0)
        (model,) = comparison.record['models']
        assert {len(entry['box']) for entry in model['objects']} == {5}


@ONE_STACK
@pytest.mark.parametrize(
    'kind, name',
    [('voc', 'bbox_head'), ('coco', 'rpn_head'), ('camvid', 'decode_head')],
)
def test_without_a_gpu(new_config, kind, name):
    """Pyramid and heads are narrow and fit each other."""
    cfg, out = new_config(kind, '--backbone', 'softpp-micro-linear')
    assert 'no GPU: the config uses 128 channels in pyramid and heads: faster' in out
    head = build_model(cfg).get_submodule(name)
    assert getattr(head, 'feat_channels', getattr(head, 'channels', None)) == 128


@ONE_STACK
def test_what_it_chooses(new_config, monkeypatch):
    monkeypatch.setattr(Devices, 'find', lambda: Devices(2, 80))
    cfg, out = new_config('coco', '--backbone', 'softpp-t', '--epochs', '24')
    metrics = {x.get('prefix'): x.metric for x in cfg.val_evaluator}
    assert metrics == {None: 'bbox', 'masks': 'segm'} and cfg.pretrained is None
    rows = [x.split() for x in out.splitlines()]
    assert ['red', '4', '1', '1'] in rows
    assert rows[0] == ['files:', '2', '.json,', '10', 'photo']
    assert 'no GPU' not in out and 'scratch' in out and 'dist_train.sh mine.py 2' in out
    warmup, cosine = cfg.param_scheduler
    assert warmup.end == 24 and 'end' not in cosine  # that of the training
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-4 * (2 / 16) ** 0.5, 0.05)
    cfg, out = new_config('voc', '--overwrite', '--backbone', 'swin-t-elfatt')
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')
    assert cfg.model.type == 'RetinaNet' and cfg.get('load_from') is None
    shutil.rmtree('my')
    options = ['--overwrite', '--backbone', 'swin-t-elfatt']
    cfg, _ = new_config('classes', *options)
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')


@ONE_STACK
@pytest.mark.parametrize('kind', ['coco', 'voc'])
def test_whole_model(new_config, monkeypatch, kind):
    """A public Mask R-CNN starts it, without its mask head if there are no outlines."""
    monkeypatch.setattr(Devices, 'find', lambda: Devices(1, 12))
    cfg, out = new_config(kind)
    assert cfg.load_from.endswith('#/mask_rcnn_mlla_t_3x.pth') and not cfg.pretrained
    assert 'whole model mask-rcnn_mlla-t_fpn_ms-crop-3x_coco (box AP 48.8, ' in out
    assert ('without its mask head' in out) == (kind == 'voc')
    whole = build_model(load_config(str(ROOT / MLLA_T))).state_dict()
    model = build_model(cfg)
    masks = {name for name in whole if 'mask' in name}
    assert {*whole} - {*model.state_dict()} == (masks if kind == 'voc' else set())
    assert {*model.state_dict()} <= {*whole}
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    rates = {x['lr'] for x in wrapper.optimizer.param_groups}
    usual = 1e-4 * (cfg.train_dataloader.batch_size / 16) ** 0.5
    assert sorted(rates) == pytest.approx([usual])
    decays = {x['weight_decay'] for x in wrapper.optimizer.param_groups}
    assert decays == {0.0, 0.05}  # the base config's keys are there, too
    assert cfg.default_hooks.class_rows.data_set == 'mmdet.CocoDataset'
    cfg, out = new_config(kind, '--start', 'none', '--overwrite')
    assert cfg.get('load_from') is None and cfg.pretrained is None and 'scratch' in out


@ONE_STACK
def test_a_training_says_little(new_config, monkeypatch, capsys):
    new_config('classes', '--backbone', 'softpp-t', '--epochs', '1')
    options = [f'{x}_dataloader.num_workers=0' for x in ('train', 'val')]
    options += [f'{x}_dataloader.persistent_workers=False' for x in ('train', 'val')]
    monkeypatch.setattr(sys, 'argv', ['train.py', 'mine.py', '--cfg-options', *options])
    releases = []
    monkeypatch.setattr(
        release_memory_hook, 'release_memory', lambda: releases.append(1)
    )
    capsys.readouterr()
    load_module('tools/train.py').main()
    assert releases  # of memory, after the validation
    printed = capsys.readouterr()
    before, after = printed.out.split('Epoch(train)', 1)
    assert before.count('\n') + printed.err.count('\n') <= 40
    assert 'eta: ' in after and 'single-label/recall_classwise' in after
    shown = re.findall(r'^(\w+): ', after[after.index('\n\n') :], re.M)
    assert shown == [
        *('score', 'checkpoint', 'curves', 'pictures'),
        *('log', 'test', 'predict', 'export'),
    ]
    (log,) = Path('work_dirs').rglob('*.log')
    assert len(log.read_text().splitlines()) > 300


@ONE_STACK
def test_one_photo_for_training(new_config, error_of):
    """A detector trains on it, and a batch of two is refused."""
    for split in ('train', 'val'):
        tree = {f'{split}/0.jpg': photo(0), f'{split}/{split}.json': coco([0])}
        grow(Path('my'), tree)
    argv = ['--backbone', 'softpp-t', '--epochs', '1']
    cfg, out = new_config('', *argv, '--out', 'my mine.py', task='det')
    warmup, cosine = cfg.param_scheduler
    assert warmup.end >= 1 and 'end' not in cosine
    assert "train.py 'my mine.py'" in out
    shutil.rmtree('my')
    for split in ('train', 'val'):
        maps = {f'{split}/labels/0.png': label_map(0, 1)}
        grow(Path('my'), {f'{split}/images/0.png': photo(0), **maps})
    assert 'fewer than a batch of 2' in error_of(new_config, '', *argv, task='seg')


@pytest.mark.parametrize(
    'block',
    [0, *(pytest.param(x, marks=y) for x, y in ((1, LONG), (2, LONG), (3, ONE_STACK)))],
)
def test_from_folder_to_predictions(new_config, monkeypatch, block, capsys):
    """It trains, and runs the code of the page on predicting."""
    library = re.search(r'from (mm\w+)', BLOCKS[block])[1]
    kind = dict(mmdet='voc', mmseg='camvid', mmpretrain='classes')[library]
    options = ['--backbone', 'softpp-t', '--epochs', '2']
    cfg, out = new_config(kind, *options)
    program, script, _ = out.splitlines()[-1].split()
    assert program == sys.executable and Path(script).is_file()
    check_data(cfg, 'train', build_model(cfg), pytest.fail)
    cfg.work_dir, cfg.launcher = 'work_dirs/mine', 'none'
    for name in ('train', 'val'):
        cfg[f'{name}_dataloader'].update(num_workers=0, persistent_workers=False)
    cfg.default_hooks.visualization.interval = 1
    if library == 'mmdet':  # after ten iterations, nothing has a score
        cfg.model.test_cfg.update(score_thr=0.0, max_per_img=5)
    Runner.from_cfg(cfg).train()
    cfg.dump('work_dirs/mine/mine.py')
    assert any(Path('work_dirs').rglob('vis_image/*'))

    grow(Path('photos'), {'{name}.png': photo}, range(2))
    frames = [cv2.imread(f'photos/{name}.png') for name in NAMES]
    video = cv2.VideoWriter('film.avi', cv2.VideoWriter_fourcc(*'MJPG'), 5, (64, 48))
    for frame in frames:
        video.write(frame)
    video.release()
    capsys.readouterr()
    monkeypatch.setattr(sys, 'stdin', None)
    scope = {}
    exec(BLOCKS[block].replace('0.5', '0.0'), scope)  # noqa: S102
    lines = [x for x in capsys.readouterr().out.splitlines() if x]
    assert len(lines[-2:]) == 2
    names = scope.get('names') or scope.get('detector', scope.get('classifier'))
    if library == 'mmseg':
        assert scope['segmentor'].visualizer.dataset_meta['classes'] == names
        assert "'class 0':" in lines[-1]
    elif 'VideoCapture' not in BLOCKS[block]:
        assert re.search('blue|red', lines[-1])
    if 'found' in BLOCKS[block]:
        assert any(Path('found').rglob('*.*g'))


@ONE_STACK
@pytest.mark.parametrize(
    'kind, argv, message',
    [
        ('voc', '--data no', '--data no: there is no such folder'),
        ('voc', '--out mine.txt', 'the name of a config must end in .py'),
        ('voc', '--out my/mine.py', '--out my/mine.py is in the folder --data: give'),
        ('voc', '--out ../my.py', 'my_data is not an empty folder and was not written'),
        ('voc', '--task seg', '10 objects have boxes without outlines'),
        ('classes', '--task det', 'it has no data for --task det'),
        ('voc', '--detector mask-rcnn', 'mask-rcnn needs outlines, found only boxes'),
        pytest.param(
            'dota',
            '--task rot',
            '--task rot needs MMRotate, which docs/use/mmrotate.md',
            marks=pytest.mark.skipif(
                bool(find_spec('mmrotate')), reason='has mmrotate'
            ),
        ),
        ('voc', '--detector yolo', 'no config has --detector yolo and'),
        ('voc', '--backbone soft-x', 'no config has --detector retinanet and --back'),
        ('voc', '--classes red green', 'no photo for training has green; their cl'),
        ('camvid', '--classes a b', 'label maps have the ids 0 ('),
        ('camvid', '--classes a b c', '11 (8.3%), and --classes 3 names'),
    ],
)
def test_bad_input(tmp_path, monkeypatch, error_of, kind, argv, message):
    folder = tmp_path / 'here'
    grow(folder / 'my', FOLDERS[kind])
    grow(tmp_path / 'my_data', {'a.png': photo(0)})
    monkeypatch.chdir(folder)
    defaults = ['--data', 'my', '--task', TASKS[kind], '--out', 'mine.py']
    assert message in error_of(tool.main, [*defaults, *argv.split()])
    assert {x.name for x in [*folder.iterdir(), *tmp_path.iterdir()]} == {
        *('my', 'here', 'my_data')
    }
