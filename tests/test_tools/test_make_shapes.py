import hashlib
import importlib.util
import itertools
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine import Config, DefaultScope
from mmengine.evaluator import Evaluator
from mmengine.registry import DATASETS
from PIL import Image

TOOL = Path(__file__).parents[2] / 'tools/dataset_converters/make_shapes.py'
NUM_TRAIN, NUM_VAL = 6, 3
# The longer sides of the default sizes: resizing to them changes nothing.
SCALES = dict(coco=192, ade20k=192, cityscapes=256, imagenet=192)


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_shapes = load_module(TOOL)


def run(layout, out, *options):
    make_shapes.main(
        [
            '--layout',
            layout,
            '--out',
            str(out),
            '--num-train',
            str(NUM_TRAIN),
            '--num-val',
            str(NUM_VAL),
            *options,
        ]
    )
    return out


def contents(root):
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob('*'))
        if path.is_file()
    }


def read(path):
    return np.array(Image.open(path))


@pytest.fixture(scope='module')
def roots(tmp_path_factory):
    folder = tmp_path_factory.mktemp('shapes')
    return {layout: run(layout, folder / layout) for layout in SCALES}


def scenes(layout, split, num_images):
    return list(
        make_shapes.draw_split(make_shapes.LAYOUTS[layout], split, num_images, seed=0)
    )


@contextmanager
def base_config(package, name, root, scale):
    """A library's own base config with nothing but its data root and scale replaced."""
    module = pytest.importorskip(package)
    utils = importlib.import_module(f'{package}.utils')
    utils.register_all_modules(init_default_scope=False)
    path = Path(module.__file__).parent / f'.mim/configs/_base_/datasets/{name}.py'
    config = Config.fromfile(path)
    dataset = config.val_dataloader.dataset
    data_root = dataset.data_root

    def replace(value):
        if isinstance(value, dict):
            return {
                k: (scale, scale)
                if k == 'scale' and package != 'mmpretrain'
                else replace(v)
                for k, v in value.items()
            }
        if isinstance(value, (list, tuple)):
            return type(value)(map(replace, value))
        if isinstance(value, str) and value.startswith(data_root):
            return value.replace(data_root, f'{root}/', 1)
        return value

    with DefaultScope.overwrite_default_scope(package):
        yield Config(replace(config.to_dict()))


def evaluate(config, predict):
    """Results of the config's metrics for predictions made from the ground truth."""
    dataset = DATASETS.build(config.val_dataloader.dataset)
    evaluator = Evaluator(config.val_evaluator)
    evaluator.dataset_meta = dataset.metainfo
    for item in dataset:
        predict(item['data_samples'])
        evaluator.process([item['data_samples']], item)
    return evaluator.evaluate(len(dataset)), dataset


def predict_instances(sample):
    truth = sample.gt_instances
    sample.pred_instances = type(truth)(
        bboxes=truth.bboxes.tensor,
        labels=truth.labels,
        scores=torch.ones(len(truth)),
        **(
            {'masks': truth.masks.to_tensor(torch.bool, 'cpu')}
            if 'masks' in truth
            else {}
        ),
    )


def predict_instances_of_the_next_class(sample):
    predict_instances(sample)
    sample.pred_instances.labels = (sample.pred_instances.labels + 1) % 8


def predict_segmentation(sample):
    labels = sample.gt_sem_seg.data.clone()
    labels[labels == 255] = 0
    sample.pred_sem_seg = type(sample.gt_sem_seg)(data=labels)


def decode(segmentation, width, height):
    mask_utils = pytest.importorskip('pycocotools.mask')
    if isinstance(segmentation, list):
        segmentation = mask_utils.merge(
            mask_utils.frPyObjects(segmentation, height, width)
        )
    return mask_utils.decode(segmentation)


# ---------------------------------------------------------------------- layouts
@pytest.mark.parametrize(
    'name,metrics',
    [
        ('coco_instance', ['coco/bbox_mAP', 'coco/segm_mAP']),
        ('coco_detection', ['coco/bbox_mAP']),
    ],
)
def test_coco_with_mmdet(roots, name, metrics):
    with base_config('mmdet', name, roots['coco'], SCALES['coco']) as config:
        train = DATASETS.build(config.train_dataloader.dataset)
        results, val = evaluate(config, predict_instances)
        wrong, _ = evaluate(config, predict_instances_of_the_next_class)
    assert len(train) == NUM_TRAIN and len(val) == NUM_VAL
    assert len(train.metainfo['classes']) == len(train.cat_ids) == 80
    assert all(results[metric] == pytest.approx(1, abs=1e-3) for metric in metrics)
    assert all(wrong[metric] == 0 for metric in metrics)
    labels = {
        train.metainfo['classes'][i]
        for item in train
        for i in item['data_samples'].gt_instances.labels
    }
    assert labels == {'sports ball', 'book', 'kite'}


def test_coco_categories(roots):
    datasets = pytest.importorskip('mmdet.datasets')
    for split in ('train', 'val'):
        file = roots['coco'] / f'annotations/instances_{split}2017.json'
        categories = json.loads(file.read_text())['categories']
        unused = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}
        ids = [category['id'] for category in categories]
        names = tuple(category['name'] for category in categories)
        assert ids == sorted(set(range(1, 91)) - unused)
        assert names == datasets.CocoDataset.METAINFO['classes']
        assert len({category['supercategory'] for category in categories}) == 12


def test_shapes_are_coco_with_classes_of_their_own(roots, tmp_path):
    coco = contents(roots['coco'])
    shapes = contents(run('shapes', tmp_path))
    assert coco.keys() == shapes.keys()
    names = {'sports ball': 'circle', 'book': 'square', 'kite': 'triangle'}
    for name in coco:
        if name.endswith('.jpg'):
            assert shapes[name] == coco[name]
        elif 'instances' in name:
            theirs, ours = json.loads(coco[name]), json.loads(shapes[name])
            kinds = {x['id']: x['name'] for x in ours['categories']}
            assert kinds == {1: 'circle', 2: 'square', 3: 'triangle'}
            by_id = {x['id']: x['name'] for x in theirs['categories']}
            for their, our in zip(theirs['annotations'], ours['annotations']):
                kind = kinds[our.pop('category_id')]
                assert kind == names[by_id[their.pop('category_id')]]
                assert our == their


@pytest.mark.parametrize('split,num_images', [('train', NUM_TRAIN), ('val', NUM_VAL)])
def test_coco_annotations_describe_the_scenes(roots, split, num_images):
    content = json.loads(
        (roots['coco'] / f'annotations/instances_{split}2017.json').read_text()
    )
    annotations = content['annotations']
    assert [a['id'] for a in annotations] == list(range(1, len(annotations) + 1))
    assert len(content['images']) == num_images
    for info, scene in zip(content['images'], scenes('coco', split, num_images)):
        image = read(roots['coco'] / f'{split}2017' / info['file_name'])
        assert image.shape == (info['height'], info['width'], 3) == scene.image.shape
        assert np.abs(image.astype(int) - scene.image).mean() < 10
        own = [a for a in annotations if a['image_id'] == info['id']]
        assert 1 <= len(own) == len(list(scene.shapes())) <= 4
        for ann, (kind, mask) in zip(own, scene.shapes()):
            found = decode(ann['segmentation'], *scene.size)
            assert (found & mask).sum() / (found | mask).sum() > 0.97
            assert ann['category_id'] == make_shapes.COCO_IDS[kind]
            assert ann['iscrowd'] == 0
            assert ann['area'] == mask.sum()
            (rows,), (columns,) = np.nonzero(mask.any(1)), np.nonzero(mask.any(0))
            x, y, width, height = ann['bbox']
            assert [x, y] == [columns[0], rows[0]]
            assert [x + width, y + height] == [columns[-1] + 1, rows[-1] + 1]


@pytest.mark.parametrize('name', ['ade20k', 'ade20k_640x640'])
def test_ade20k_with_mmseg(roots, name):
    with base_config('mmseg', name, roots['ade20k'], SCALES['ade20k']) as config:
        train = DATASETS.build(config.train_dataloader.dataset)
        results, val = evaluate(config, predict_segmentation)
    assert len(train) == NUM_TRAIN and len(val) == NUM_VAL
    assert results['mIoU'] == results['aAcc'] == 100
    seen = set()
    for item in train:
        seen.update(item['data_samples'].gt_sem_seg.data.unique().tolist())
    names = [val.metainfo['classes'][i] for i in sorted(seen - {255})]
    assert 255 in seen
    assert names == ['sky', 'grass', 'box', 'tent', 'ball']


def test_ade20k_files(roots):
    datasets = pytest.importorskip('mmseg.datasets')
    files = sorted((roots['ade20k'] / 'annotations/validation').iterdir())
    assert [file.stem for file in files] == [
        f'ADE_val_{i:08d}' for i in range(1, NUM_VAL + 1)
    ]
    for file, scene in zip(files, scenes('ade20k', 'val', NUM_VAL)):
        labels = read(file)
        assert labels.dtype == np.uint8 and labels.shape == scene.index.shape
        for i, region in enumerate(scene.regions):
            expected = make_shapes.ADE20K_LABELS[region.kind]
            assert (labels[scene.index == i] == expected).all()

    header, *rows = (roots['ade20k'] / 'objectInfo150.txt').read_text().splitlines()
    assert header.split('\t') == ['Idx', 'Ratio', 'Train', 'Val', 'Name']
    table = [row.split('\t') for row in rows]
    assert [int(row[0]) for row in table] == list(range(1, 151))
    names = [name.strip() for name in datasets.ADE20KDataset.METAINFO['classes']]
    assert [row[4] for row in table] == names
    sky = table[2]
    assert 0.2 < float(sky[1]) < 0.7 and sky[2:4] == [str(NUM_TRAIN), str(NUM_VAL)]
    categories = (roots['ade20k'] / 'sceneCategories.txt').read_text().splitlines()
    assert len(categories) == NUM_TRAIN + NUM_VAL
    assert categories[0] == 'ADE_train_00000001 misc'


@pytest.mark.parametrize('name', ['cityscapes', 'cityscapes_768x768'])
def test_cityscapes_with_mmseg(roots, name):
    root = roots['cityscapes']
    with base_config('mmseg', name, root, SCALES['cityscapes']) as config:
        train = DATASETS.build(config.train_dataloader.dataset)
        results, val = evaluate(config, predict_segmentation)
    assert len(train) == NUM_TRAIN and len(val) == NUM_VAL
    assert results['mIoU'] == results['aAcc'] == 100
    seen = set()
    for item in val:
        seen.update(item['data_samples'].gt_sem_seg.data.unique().tolist())
    names = [val.metainfo['classes'][i] for i in sorted(seen - {255})]
    assert 255 in seen
    assert names == ['road', 'sky', 'person', 'car', 'bicycle']


@pytest.mark.parametrize(
    'name,metrics',
    [
        ('cityscapes_detection', ['coco/bbox_mAP']),
        ('cityscapes_instance', ['coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP']),
    ],
)
def test_cityscapes_with_mmdet(roots, name, metrics, tmp_path, monkeypatch):
    pytest.importorskip('cityscapesscripts')
    monkeypatch.chdir(tmp_path)  # CityScapesMetric writes to ./work_dirs
    root = roots['cityscapes']
    with base_config('mmdet', name, root, SCALES['cityscapes']) as config:
        train = DATASETS.build(config.train_dataloader.dataset)
        results, val = evaluate(config, predict_instances)
        wrong, _ = evaluate(config, predict_instances_of_the_next_class)
    assert len(train) == 8 * NUM_TRAIN and len(val) == NUM_VAL
    assert len(val.cat_ids) == 8
    assert all(results[metric] == pytest.approx(1, abs=1e-3) for metric in metrics)
    assert all(wrong[metric] == 0 for metric in metrics)


def test_cityscapes_labels_are_the_official_ones():
    labels = pytest.importorskip('cityscapesscripts.helpers.labels')
    for name, id_, train_id, color in make_shapes.CITYSCAPES_LABELS.values():
        label = labels.name2label[name]
        assert (label.id, label.trainId, label.color) == (id_, train_id, color)
    things = {
        label.name: label.id
        for label in labels.labels
        if label.hasInstances and not label.ignoreInEval
    }
    assert things == make_shapes.CITYSCAPES_THINGS


def test_cityscapes_label_images_follow_from_the_polygons(roots):
    pytest.importorskip('cityscapesscripts')
    from cityscapesscripts.helpers.annotation import Annotation
    from cityscapesscripts.preparation.json2instanceImg import createInstanceImage
    from cityscapesscripts.preparation.json2labelImg import createLabelImage

    files = sorted((roots['cityscapes'] / 'gtFine').rglob('*_polygons.json'))
    assert len(files) == NUM_TRAIN + NUM_VAL
    for file in files:
        polygons = Annotation()
        polygons.fromJsonFile(str(file))
        expected = dict(
            labelIds=createLabelImage(polygons, 'ids'),
            labelTrainIds=createLabelImage(polygons, 'trainIds'),
            color=createLabelImage(polygons, 'color'),
            instanceIds=createInstanceImage(polygons, 'ids'),
        )
        for kind, image in expected.items():
            ours = read(str(file).replace('polygons.json', f'{kind}.png'))
            assert ours.dtype == (np.uint16 if kind == 'instanceIds' else np.uint8)
            np.testing.assert_array_equal(ours, np.array(image))


@pytest.mark.parametrize('split', ['train', 'val'])
def test_cityscapes_json_is_what_the_mmdet_converter_writes(roots, tmp_path, split):
    pytest.importorskip('cityscapesscripts')
    mmdet = pytest.importorskip('mmdet')
    converter = load_module(
        Path(mmdet.__file__).parent / '.mim/tools/dataset_converters/cityscapes.py'
    )
    root = roots['cityscapes']
    files = converter.collect_files(
        f'{root}/leftImg8bit/{split}', f'{root}/gtFine/{split}'
    )
    expected = converter.cvt_annotations(
        converter.collect_annotations(files), str(tmp_path / 'expected.json')
    )
    ours = json.loads(
        (root / f'annotations/instancesonly_filtered_gtFine_{split}.json').read_text()
    )
    assert ours['categories'] == expected['categories']

    def by_image(content):
        names = {image['id']: image['file_name'] for image in content['images']}
        return sorted(
            (
                names[a['image_id']],
                a['category_id'],
                a['bbox'],
                a['area'],
                a['iscrowd'],
                a['segmentation']['counts'],
            )
            for a in content['annotations']
        )

    assert by_image(ours) == by_image(expected)
    without_id = [
        sorted(
            sorted((k, v) for k, v in image.items() if k != 'id')
            for image in content['images']
        )
        for content in (ours, expected)
    ]
    assert without_id[0] == without_id[1]


def test_imagenet_with_mmpretrain(roots):
    name = 'imagenet_bs64_swin_224'
    with base_config('mmpretrain', name, roots['imagenet'], None) as config:
        train = DATASETS.build(config.train_dataloader.dataset)

        def predict(sample):
            sample.set_pred_score(torch.eye(1000)[sample.gt_label.item()])

        results, val = evaluate(config, predict)
        assert train[0]['inputs'].shape == (3, 224, 224)
    assert len(train) == NUM_TRAIN and len(val) == NUM_VAL
    assert results['accuracy/top1'] == 100
    classes = train.metainfo['classes']
    assert len(classes) == 1000
    seen = {
        (
            Path(train.get_data_info(i)['img_path']).parent.name,
            train.get_data_info(i)['gt_label'],
        )
        for i in range(len(train))
    }
    assert seen == set(make_shapes.IMAGENET_CLASSES.values())
    assert [
        classes[make_shapes.IMAGENET_CLASSES[kind][1]].split(',')[0]
        for kind in make_shapes.SHAPES
    ] == ['soccer ball', 'crate', 'volcano']
    truth = [
        make_shapes.IMAGENET_CLASSES[next(scene.shapes())[0]][1]
        for scene in scenes('imagenet', 'val', NUM_VAL)
    ]
    assert [val.get_data_info(i)['gt_label'] for i in range(NUM_VAL)] == truth


# ----------------------------------------------------------------------- scenes
def test_scenes_are_varied():
    drawn = scenes('coco', 'train', 40)
    counts = [len(list(scene.shapes())) for scene in drawn]
    assert set(counts) == {1, 2, 3, 4}
    assert {kind for scene in drawn for kind, _ in scene.shapes()} == {
        'circle',
        'square',
        'triangle',
    }
    hidden = 0
    for scene in drawn:
        blank = np.zeros_like(scene.index)
        for i, region in enumerate(scene.regions):
            if region.kind in make_shapes.SHAPES:
                full = make_shapes.fill(blank, region.polygon, 1).sum()
                visible = (scene.index == i).sum()
                assert (1 - make_shapes.EASY.occlusion) * full <= visible <= full
                hidden += visible < full
    assert hidden > 20


@pytest.mark.parametrize('size', [(32, 32), (257, 33), (33, 130)])
def test_any_size(tmp_path, size):
    size_options = ['--size', *map(str, size)]
    for layout in SCALES:
        run(layout, tmp_path / layout, *size_options)
        images = [
            path
            for path in (tmp_path / layout).rglob('*')
            if path.suffix in ('.jpg', '.png', '.JPEG')
        ]
        assert {Image.open(path).size for path in images} == {size}


# ---------------------------------------------------------------- harder settings
HARDER = {
    'texture': 1.0,
    'clutter': 3.0,
    'occlusion': 0.6,
    'occluders': 12,
    'scale': (0.1, 0.2),
}


def harder(layout='coco', num_images=20, **options):
    return list(
        make_shapes.draw_split(
            make_shapes.LAYOUTS[layout],
            'train',
            num_images,
            0,
            make_shapes.Difficulty(**options),
        )
    )


@pytest.mark.parametrize(
    'layout,regions,means',
    [
        ('coco', '6501ae8b3ba7b1ba', [145.01, 134.01, 139.50]),
        ('cityscapes', 'a624772f940e6865', [146.72, 143.22, 146.54]),
        ('imagenet', '89713cb166f0bd57', [138.38, 144.46, 150.65]),
    ],
)
def test_defaults_are_the_easy_set(layout, regions, means):
    """Recorded with the version that had no settings."""
    found = list(make_shapes.draw_split(make_shapes.LAYOUTS[layout], 'val', 3, seed=5))
    text = json.dumps([scene.regions for scene in found])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == regions
    assert [scene.image.mean() for scene in found] == pytest.approx(means, abs=0.2)


def test_record_of_the_easy_set_has_no_new_entries(roots):
    record = json.loads((roots['coco'] / 'make_shapes.json').read_text())
    assert set(record) == {
        'layout',
        'num_train',
        'num_val',
        'seed',
        'size',
        'generator',
        'complete',
        'files',
    }


def test_texture_stripes_every_region():
    easy, striped = harder(), harder(texture=1.0)
    for before, after in zip(easy, striped):
        assert before.regions == after.regions
        change = np.abs(after.image.astype(int) - before.image).mean(-1)
        for i in set(after.index.ravel()):
            if (after.index == i).sum() > 100:
                assert change[after.index == i].mean() > 8


def test_clutter_multiplies_blobs():
    def counts(**options):
        return {
            sum(region.kind == 'clutter' for region in scene.regions)
            for scene in harder(**options)
        }

    few = set(range(5, 13))  # as the tool draws them
    assert counts() <= few and counts(clutter=3.0) <= {3 * num for num in few}
    assert counts(clutter=0.0) == {0}


def test_scale_sets_the_shapes_sizes():
    sides = [
        mask.sum() ** 0.5 / 192
        for scene in harder(scale=(0.1, 0.2))
        for _, mask in scene.shapes()
    ]
    assert 0.08 < min(sides) < 0.13 and 0.16 < max(sides) < 0.21


@pytest.mark.parametrize('occlusion', [0.2, 0.6])
def test_occluders_hide_as_much_as_they_may(occlusion):
    shares = []
    for scene in harder('imagenet', occlusion=occlusion, occluders=12):
        ((kind, mask),) = scene.shapes()
        (whole,) = (x for x in scene.regions if x.kind == kind)
        canvas = make_shapes.fill(np.zeros_like(scene.index), whole.polygon, 1)
        shares.append(1 - mask.sum() / canvas.sum())
        assert make_shapes.is_solid(mask)
    assert occlusion / 2 < max(shares) <= occlusion


def test_harder_set_of_every_layout(tmp_path):
    options = [
        text
        for name, value in HARDER.items()
        for text in (f'--{name}', *map(str, np.atleast_1d(value)))
    ]
    for layout in SCALES:
        root = run(layout, tmp_path / layout, *options)
        record = json.loads((root / 'make_shapes.json').read_text())
        assert {key: record[key] for key in HARDER} == dict(HARDER, scale=[0.1, 0.2])
        before = contents(root)
        run(layout, root, *options)  # it is recognized
        assert contents(root) == before
    content = json.loads(
        (tmp_path / 'coco/annotations/instances_train2017.json').read_text()
    )
    assert all(x['area'] > 0 and x['segmentation'] for x in content['annotations'])


# ------------------------------------------------------------------ determinism
@pytest.mark.parametrize('layout', SCALES)
def test_same_arguments_same_bytes(roots, tmp_path, layout):
    assert contents(run(layout, tmp_path / 'again')) == contents(roots[layout])


def test_another_seed_or_split_gives_other_images(roots, tmp_path):
    other = run('coco', tmp_path / 'other', '--seed', '1')
    images = [
        path.read_bytes()
        for root in (roots['coco'], other)
        for path in root.rglob('*.jpg')
    ]
    assert len(images) == len(set(images)) == 2 * (NUM_TRAIN + NUM_VAL)


def test_counts_do_not_change_the_images(roots, tmp_path):
    more = contents(run('coco', tmp_path / 'more', '--num-train', str(NUM_TRAIN + 2)))
    fewer = contents(roots['coco'])
    assert {'train2017/000000000008.jpg'} <= set(more) - set(fewer)
    for name in fewer:
        if name.endswith('.jpg') or 'val2017' in name:
            assert fewer[name] == more[name]


# ------------------------------------------------------- existing output folders
def test_finished_set_is_left_alone(tmp_path, capsys):
    root = run('imagenet', tmp_path)
    marked = next(root.rglob('*.JPEG'))
    marked.write_bytes(b'mine')
    capsys.readouterr()
    run('imagenet', root)
    assert marked.read_bytes() == b'mine'
    assert capsys.readouterr().out.startswith('already there')


def test_missing_files_are_written_again(roots, tmp_path, capsys):
    root = run('coco', tmp_path)
    mine = root / 'val2017' / '000000000001.jpg'
    mine.write_bytes(b'mine')
    for name in ('train2017/000000000002.jpg', 'annotations/instances_val2017.json'):
        (root / name).unlink()
    (root / '.make_shapes-left').mkdir()  # by a run that was killed
    capsys.readouterr()
    run('coco', root)
    assert 'wrote 2 missing files again of 6 training' in capsys.readouterr().out
    assert mine.read_bytes() == b'mine'
    mine.write_bytes((roots['coco'] / 'val2017' / mine.name).read_bytes())
    assert contents(root) == contents(roots['coco'])


@pytest.mark.parametrize('gone', ['train', '*'])
def test_missing_folders_are_written_again(roots, tmp_path, gone):
    root = run('imagenet', tmp_path)
    for path in root.glob(gone):
        if path.is_dir():
            shutil.rmtree(path)
    assert contents(run('imagenet', root)) == contents(roots['imagenet'])


@pytest.mark.parametrize('when', ['drawing', 'moving'])
def test_killed_run_is_done_anew(roots, tmp_path, monkeypatch, when):
    def draw_one(*args):
        yield from itertools.islice(draw(*args), 1)
        raise KeyboardInterrupt

    def move_one(path, target):
        if target.suffix == '.JPEG' and list(tmp_path.glob('train/*/*.JPEG')):
            raise KeyboardInterrupt
        return move(path, target)

    draw, move = make_shapes.draw_split, Path.replace
    with monkeypatch.context() as patch:
        if when == 'drawing':
            patch.setattr(make_shapes, 'draw_split', draw_one)
        else:
            patch.setattr(Path, 'replace', move_one)
        with pytest.raises(KeyboardInterrupt):
            run('imagenet', tmp_path)
    assert len(list(tmp_path.glob('train/*/*.JPEG'))) == (when == 'moving')
    assert contents(run('coco', tmp_path)) == contents(roots['coco'])


def test_set_of_an_earlier_version(roots, tmp_path):
    """Its record has another generator and no list of files."""
    root = run('coco', tmp_path)
    record = json.loads((root / 'make_shapes.json').read_text())
    del record['files']
    (root / 'make_shapes.json').write_text(json.dumps(dict(record, generator='old')))
    run('imagenet', root, '--overwrite')
    assert contents(root) == contents(roots['imagenet'])


def test_overwrite_replaces_only_what_the_tool_wrote(roots, tmp_path):
    root = run('ade20k', tmp_path)
    for name in ('notes.txt', 'images/training/mine.jpg'):
        (root / name).write_text('mine')
    run('coco', root, '--overwrite')
    found = contents(root)
    assert found.pop('notes.txt') == found.pop('images/training/mine.jpg') == b'mine'
    assert found == contents(roots['coco'])


# -------------------------------------------------------------------- bad input
def check_error(capsys, words, *arguments):
    with pytest.raises(SystemExit) as exit_info:
        make_shapes.main(list(map(str, arguments)))
    error = capsys.readouterr().err
    assert exit_info.value.code == 2
    assert error.count('\n') == 1 and error.endswith('\n')
    assert all(word in error for word in words), error


@pytest.mark.parametrize(
    'options,words',
    [
        (['--num-train', '-1'], ['num-train', '-1', 'at least 1']),
        (['--num-val', '0'], ['num-val', '0', 'at least 1']),
        (['--seed', '-5'], ['seed', '-5', 'negative']),
        (['--size', '31', '64'], ['size', '31 64', 'at least 32 32']),
        (['--size', '64'], ['--size', 'expected 2 arguments']),
        (['--num-train', 'many'], ['--num-train', 'many']),
        (['--layout', 'voc'], ['--layout', 'voc', 'cityscapes']),
        (['--size', '99999', '64'], ['size', '99999 64', 'at most 8192 8192']),
        (['--size', '64', '1e3'], ['--size', '1e3']),
        (['--seed'], ['--seed', 'expected one argument']),
        (['--num-tran', '3'], ['unrecognized', '--num-tran']),
        (['--overwrit'], ['unrecognized', '--overwrit']),
        (['more'], ['unrecognized', 'more']),
        (['--texture', '2'], ['texture', '[0, 1]', '2']),
        (['--texture', 'nan'], ['texture', '[0, 1]', 'nan']),
        (['--clutter', '-1'], ['clutter', '[0, 20]', '-1']),
        (['--occlusion', '0.9'], ['occlusion', '[0, 0.8]', '0.9']),
        (['--occluders', '21'], ['occluders', '0 to 20', '21']),
        (['--scale', '0.4', '0.2'], ['scale', 'increasing', '0.4 0.2']),
        (['--scale', '0.4'], ['--scale', 'expected 2 arguments']),
    ],
)
def test_bad_arguments(capsys, tmp_path, options, words):
    out = tmp_path / 'out'
    check_error(capsys, words, '--layout', 'coco', '--out', out, *options)
    assert not out.exists()


def test_missing_arguments(capsys):
    check_error(capsys, ['--layout', '--out'])
    check_error(capsys, ['--out', 'is not a path'], '--layout', 'coco', '--out', '')


@pytest.mark.parametrize('record', ['', '{"layout":', '[]', '{}', '{"layout": "voc"}'])
def test_damaged_record(capsys, tmp_path, record):
    (tmp_path / 'make_shapes.json').write_text(record)
    (tmp_path / 'train2017').mkdir()
    words = [str(tmp_path / 'make_shapes.json'), 'record of this tool']
    check_error(capsys, words, '--layout', 'coco', '--out', tmp_path, '--overwrite')
    assert (tmp_path / 'train2017').is_dir()


def test_folder_of_others_is_refused(capsys, tmp_path):
    (tmp_path / 'train2017').mkdir()
    words = [str(tmp_path), 'not an empty folder']
    for options in ([], ['--overwrite']):
        check_error(capsys, words, '--layout', 'coco', '--out', tmp_path, *options)
    assert [path.name for path in tmp_path.rglob('*')] == ['train2017']


def test_other_arguments_need_overwrite(capsys, tmp_path):
    before = contents(run('coco', tmp_path))
    words = [str(tmp_path), '--overwrite']
    check_error(capsys, words, '--layout', 'coco', '--out', tmp_path, '--seed', 7)
    assert contents(tmp_path) == before


def test_out_is_a_file(capsys, tmp_path):
    file = tmp_path / 'file'
    file.write_text('')
    check_error(capsys, [str(file)], '--layout', 'coco', '--out', file)
    check_error(capsys, [str(file)], '--layout', 'coco', '--out', file / 'below')


def test_as_a_command(tmp_path):
    tiny = ['--num-train', '1', '--num-val', '1']
    command = [sys.executable, TOOL, '--layout', 'coco', '--out', tmp_path, *tiny]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ''
    assert done.stdout.splitlines()[-1].startswith('wrote 1 training and 1 validation')


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        make_shapes.main(['--help'])
    text = capsys.readouterr().out
    assert stop.value.code == 0 and 'data_root' in text
    assert all(layout in text for layout in SCALES)
