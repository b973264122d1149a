"""Configs for data sets of users, on files of the same forms as theirs."""

import json
import re
import sys
from ast import literal_eval
from pathlib import Path

import cv2
import numpy as np
import pytest
from mmengine.runner import Runner
from PIL import Image

from mmlinattn.engine import check_run
from mmlinattn.utils import load_config
from mmlinattn_tools.own_data import OwnData

pytestmark = pytest.mark.modern

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / 'docs' / 'use' / 'predict.md').read_text('utf-8')
BLOCKS = re.findall(r'^```python\n(.*?)^```$', PAGE, re.M | re.S)
VOC = """<annotation><filename>other.jpg</filename><size><width>0</width></size>
<object><name>{name}</name><bndbox><xmin>8</xmin><ymin>9</ymin><xmax>30</xmax>
<ymax>31</ymax></bndbox></object></annotation>"""
SQUARE = [8, 9, 30, 9, 30, 31, 8, 31]
NAMES = ('red', 'blue')
LONG = pytest.mark.full


def photo(path, name='red', size=(64, 48)):
    """Adds a photo with a square to a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.stem)).integers(99, 150, (*size[::-1], 3))
    pixels[9:31, 8:30] = (220, 20, 60) if name == 'red' else (0, 114, 240)
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return path


def label_map(path, ids, size=(64, 48)):
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = np.full(size[::-1], ids[0], np.uint8)
    labels[9:31, 8:30], labels[:4] = ids[1], ids[-1]
    Image.fromarray(labels).save(path)


def coco(path, names, folder='', masks=True, categories=NAMES):
    """A COCO file of photos that are called 0.jpg, 1.jpg, ..."""
    path.parent.mkdir(parents=True, exist_ok=True)
    extra = dict(segmentation=[SQUARE]) if masks else {}
    ids = {name: i + 5 for i, name in enumerate(categories)}
    images = [dict(id=i, file_name=f'{folder}{i}.jpg') for i in range(len(names))]
    objects = [
        dict(id=i, image_id=i, bbox=[8, 9, 22, 22], category_id=ids[name], **extra)
        for i, name in enumerate(names)
    ]
    categories = [dict(id=i, name=name) for name, i in ids.items()]
    content = dict(images=images, annotations=objects, categories=categories)
    path.write_text(json.dumps(content))


def make(data, kind, num=10):
    """A data set of a task, in one of the forms that users have."""
    for i in range(num):
        name, split = NAMES[i % 2], 'val' if i > 7 else 'train'
        if kind == 'coco':
            photo(data / f'{split}2017' / f'{i % 8}.jpg', name)
        elif kind in ('one file', 'boxes'):
            photo(data / 'images' / f'{i}.jpg', name)
        elif kind == 'voc':
            photo(data / 'JPEGImages' / f'a.{i}.png', name)
            for part in ('Annotations', 'ImageSets/Main'):
                (data / part).mkdir(parents=True, exist_ok=True)
            (data / 'Annotations' / f'a.{i}.xml').write_text(VOC.format(name=name))
            with (data / 'ImageSets/Main' / f'{split}.txt').open('a') as file:
                file.write(f'a.{i}.png\n')
        elif kind == 'camvid':
            photo(data / split / f'{i}.png', name)
            label_map(data / f'{split}annot' / f'{i}.png', (0, 1 + i % 2, 11))
        elif kind == 'black and white':
            photo(data / 'images' / f'x_{i}.jpg', name)
            label_map(data / 'masks' / f'x_{i}_mask.png', (0, 255))
            label_map(data / 'SegmentationObject' / f'x_{i}.png', (0, 1, 2))
        elif kind == 'classes':
            photo(data / name / f'{i}.jpg', name)
        elif kind == 'split classes':
            photo(data / split / name / f'{i}.jpg', name)
    names = [NAMES[i % 2] for i in range(num)]
    if kind == 'coco':
        coco(data / 'annotations/instances_train2017.json', names[:8])
        coco(
            data / 'annotations/instances_val2017.json',
            names[8:],
            '',
            True,
            NAMES[::-1],
        )
        coco(data / 'annotations/person_keypoints_val2017.json', names[8:])
    elif kind in ('one file', 'boxes'):
        coco(data / 'labels.json', names, 'images/', kind != 'boxes', (*NAMES, 'green'))
    return data


TASKS = {
    'coco': 'det',
    'one file': 'det',
    'boxes': 'det',
    'voc': 'det',
    'camvid': 'seg',
    'black and white': 'seg',
    'classes': 'cls',
    'split classes': 'cls',
}


@pytest.mark.parametrize('kind', TASKS)
def test_every_form_is_read(kind, tmp_path):
    """Splits and classes, and the libraries' reading of the written files."""
    data = make(tmp_path / 'my', kind)
    found = OwnData(data, TASKS[kind], ignore=[11] * (kind == 'camvid'))
    assert [len(found.photos[split]) for split in ('train', 'val', 'test')] == [8, 2, 2]
    numbers = dict(zip(('camvid', 'black and white'), ((0, 1, 2), (0, 255))))
    ids = numbers.get(kind, ())
    assert found.classes == ([f'class {i}' for i in ids] or ['blue', 'red'])
    assert found.masks == (kind in ('coco', 'one file'))
    drawn = kind in ('one file', 'boxes', 'black and white', 'classes')
    assert any('every 5th' in note for note in found.notes) == drawn
    found.write(tmp_path / 'out')
    paths = [photo['path'] for photo in found.photos['train']]
    if TASKS[kind] == 'det':
        content = json.loads((tmp_path / 'out/train.json').read_text())
        for image, x in zip(content['images'], content['annotations']):
            i = int(re.findall(r'\d+', image['file_name'])[-1])
            assert x['category_id'] == found.classes.index(NAMES[i % 2])
            assert x['bbox'] == [8, 9, 22, 22] and x['image_id'] == image['id']
            assert (image['width'], image['height']) == (64, 48)
            assert (data / image['file_name']).is_file()
    else:
        lines = (tmp_path / 'out/train.txt').read_text().split('\n')
        names = [line.rsplit(' ', 1)[0] for line in lines]
        assert [data / name for name in names] == paths
    if TASKS[kind] == 'seg':
        for name in names:
            labels = np.array(Image.open(tmp_path / 'out/labels' / f'{name}.png'))
            number = int(re.findall(r'\d+', name)[-1])
            square = 1 + number % 2 if kind == 'camvid' else 1
            assert labels[20, 20] == square and labels[40, 40] == 0
            assert labels[0, 0] == (255 if kind == 'camvid' else 1)


def test_boxes_outside_of_photos(tmp_path):
    path = make(tmp_path, 'boxes') / 'labels.json'
    for box in ('[64, 9, 22, 22]', '[8, 9, 0, 22]'):
        path.write_text(path.read_text().replace('[8, 9, 22, 22]', box, 1))
    found = OwnData(tmp_path, 'det')
    assert 'left out 2 boxes outside their photo' in found.notes
    photos = found.photos['train'] + found.photos['val']
    assert sum(len(photo['objects']) for photo in photos) == 8


def test_names_of_ids(tmp_path):
    data = make(tmp_path, 'camvid')
    for names in (['sky', 'road', 'tree'], list('abcdefghijkl')):
        found = OwnData(data, 'seg', names, [11] * (len(names) == 3))
        assert found.classes == names
        assert found.table[:3].tolist() == [0, 1, 2]
        assert found.table[11] == (255 if len(names) == 3 else 11)


@pytest.fixture(scope='module')
def tool(load_tool):
    return load_tool('misc/new_config.py')


@pytest.fixture
def new_config(tool, tmp_path, monkeypatch, capsys):
    """Runs the tool in an empty folder, and reads its config."""
    monkeypatch.chdir(tmp_path)

    def run(kind, *options):
        make(Path('my'), kind)
        argv = ['--data', 'my', '--task', TASKS[kind], '--out', 'mine.py', *options]
        tool.main([*argv, *['--ignore', '11'] * (kind == 'camvid')])
        return load_config('mine.py', warn=pytest.fail), capsys.readouterr().out

    return run


KINDS = dict(det=80, seg=150, cls=1000)


def methods():
    """Methods and their backbones, one of each."""
    configs = ROOT / 'configs'
    for task, ending in dict(det='_coco', seg='_ade20k-512x512').items():
        found = {}
        for path in sorted(configs.glob(f'*/*{ending}.py')):
            method, backbone = path.stem.split('_')[:2]
            found.setdefault(method, backbone)
        yield from ((task, *pair) for pair in found.items())
    yield 'cls', 'classifier', 'cait-s24'


@pytest.mark.modern_full
@pytest.mark.parametrize('task, method, backbone', [*methods()])
def test_every_method(new_config, task, method, backbone):
    """All heads have the classes, and nothing else of the model changes."""
    kind = dict(det='coco', seg='camvid', cls='classes')[task]
    cfg, _ = new_config(kind, '--detector', method, '--backbone', backbone)
    num = 3 if task == 'seg' else 2
    base = re.search('_base_ = .*', Path('mine.py').read_text())[0]
    Path('base.py').write_text(base)
    model = load_config('base.py').model
    if task == 'seg':
        model.data_preprocessor.size = (128, 171)
    text = repr(model.to_dict())
    for key in ('num_classes', 'num_things_classes'):
        text = text.replace(f"'{key}': {KINDS[task]}", f"'{key}': {num}")
    ones = ', '.join(['1.0'] * KINDS[task])
    text = text.replace(f'[{ones}, 0.1]', f'[{", ".join(["1.0"] * num)}, 0.1]')
    assert cfg.model.to_dict() == literal_eval(text) != model.to_dict()


def test_what_it_chooses(new_config, tool, monkeypatch):
    monkeypatch.setattr(tool, 'find_devices', lambda: (2, 80))
    cfg, out = new_config('coco', '--backbone', 'softpp-t', '--epochs', '24')
    assert cfg.val_evaluator.metric == ['bbox', 'segm'] and cfg.pretrained is None
    assert 'no GPU' not in out and 'scratch' in out and 'dist_train.sh mine.py 2' in out
    assert cfg.param_scheduler[1].end == 24 * 4 and cfg.param_scheduler[0].end == 10
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-4 * (2 / 16) ** 0.5, 0.05)
    cfg, out = new_config('voc', '--overwrite')
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')
    assert cfg.model.type == 'RetinaNet' and 'blue, red' in out
    cfg, _ = new_config('classes', '--overwrite')
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')


@pytest.mark.parametrize(
    'block', [0, pytest.param(1, marks=LONG), pytest.param(2, marks=LONG), 3]
)
def test_from_folder_to_predictions(new_config, monkeypatch, block, capsys):
    """It trains, and runs the code of the page on predicting."""
    library = re.search(r'from (mm\w+)', BLOCKS[block])[1]
    pytest.importorskip(library)
    kind = dict(mmdet='voc', mmseg='camvid', mmpretrain='classes')[library]
    options = ['--backbone', 'softpp-t', '--epochs', '2']
    cfg, out = new_config(kind, *options)
    for line in out.splitlines()[-3:]:
        program, script, *_ = line.split()
        assert program == 'python' and Path(script).is_file()
    check_run(cfg, 'mine.py', 'train', pytest.fail)
    cfg.work_dir, cfg.launcher = 'work_dirs/mine', 'none'
    for name in ('train', 'val'):
        cfg[f'{name}_dataloader'].update(num_workers=0, persistent_workers=False)
    cfg.default_hooks.visualization.interval = 1
    if library == 'mmdet':  # after ten iterations, nothing has a score
        cfg.model.test_cfg.update(score_thr=0.0, max_per_img=5)
    Runner.from_cfg(cfg).train()
    cfg.dump('work_dirs/mine/mine.py')
    assert any(Path('work_dirs').rglob('vis_image/*'))

    frames = [cv2.imread(f'{photo("" / Path(f"photos/{x}.png"), x)}') for x in NAMES]
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


@pytest.mark.parametrize(
    'kind, argv, message',
    [
        ('voc', '--data no', '--data no: there is no such folder'),
        ('voc', '--out mine.txt', 'the name of a config must end in .py'),
        ('voc', '--out my/mine.py', '--out my/mine.py is in the folder --data: give'),
        ('voc', '--out ../my.py', 'my_data is not an empty folder and was not written'),
        ('voc', '--task seg', 'it has no data for --task seg'),
        ('classes', '--task det', 'it has no data for --task det'),
        ('voc', '--detector mask-rcnn', 'mask-rcnn needs outlines, found only boxes'),
        ('voc', '--detector yolo', 'no config has --detector yolo and'),
        ('voc', '--backbone soft-x', 'no config has --detector retinanet and --back'),
        ('voc', '--classes red green', 'no photo for training has green; their cl'),
        ('camvid', '--classes a b', 'label maps have the ids 0 ('),
        ('camvid', '--classes a b c', '11 (8.3%), and --classes 3 names'),
    ],
)
def test_bad_input(tool, tmp_path, monkeypatch, capsys, kind, argv, message):
    folder = tmp_path / 'here'
    make(folder / 'my', kind)
    photo(tmp_path / 'my_data' / 'a.png')
    monkeypatch.chdir(folder)
    defaults = ['--data', 'my', '--task', TASKS[kind], '--out', 'mine.py']
    with pytest.raises(SystemExit) as stop:
        tool.main([*defaults, *argv.split()])
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1
    assert {x.name for x in [*folder.iterdir(), *tmp_path.iterdir()]} == {
        *('my', 'here', 'my_data')
    }


def break_coco(data):
    coco(data / 'labels.json', ['red'] * 11, 'images/')


def break_category(data):
    path = data / 'labels.json'
    path.write_text(path.read_text().replace('"category_id": 5', '"category_id": 9'))


def break_size(data):
    label_map(data / 'trainannot/0.png', (0, 1), (60, 40))


def break_ids(data):
    ids = np.arange(64 * 48, dtype=np.uint16).reshape(48, 64)
    Image.fromarray(ids).save(data / 'trainannot/0.png')


def break_colors(data):
    photo(data / 'trainannot/0.png')


@pytest.mark.parametrize(
    'kind, damage, message',
    [
        (
            'boxes',
            break_coco,
            '1 of 11 photos with annotations are missing in .*10.jpg',
        ),
        ('boxes', break_category, r'category \(9\) is not in the file'),
        ('boxes', lambda x: coco(x / 'more.json', ['red']), 'several files annotate'),
        ('boxes', lambda x: (x / 'labels.json').write_text('{'), 'labels.json: Expect'),
        ('voc', lambda x: (x / 'Annotations/a.xml').write_text('<'), 'a.xml: '),
        ('voc', lambda x: (x / 'JPEGImages/a.3.png').unlink(), '1 of 10 photos .* a.3'),
        ('camvid', break_size, r'of shape \(40, 60\): .* of its photo, \(48, 64\)'),
        ('camvid', break_ids, r'have the ids 0 \(.*49 \(0.0%\), and --classes 0 names'),
        ('camvid', break_colors, r'of shape \(48, 64, 3\): a label map has one'),
        ('camvid', lambda x: (x / 'val/9.png').unlink(), '1 of 10 photos with anno'),
    ],
)
def test_damaged_data(tmp_path, kind, damage, message):
    damage(make(tmp_path, kind))
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        OwnData(tmp_path, TASKS[kind])
