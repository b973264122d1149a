"""The small data sets that datumaro's own tests read: each is read right, or named with
what makes it readable.

tests/data/datumaro_assets.yml has what they hold. They come from the public repository.
"""

import json
import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from loading import load_module
from PIL import Image

from mmlinattn.own_data import Options, OwnData

formats = load_module('tests/test_tools/test_other_formats.py')
known = load_module('tests/test_tools/test_own_data.py')
datum = formats.datum  # the fixture

pytestmark = pytest.mark.full
SOURCE = 'https://github.com/open-edge-platform/datumaro', 'v1.13.3'
TABLE = yaml.safe_load(
    (Path(__file__).parents[1] / 'data/datumaro_assets.yml').read_text('utf-8')
)
TASKS = ('det', 'seg', 'cls')
IMPORTER = re.compile(r' -if (\w+)')
READ = re.compile(r'\d+: ')


def outcomes(table):
    """A folder, a task and what is expected, of each entry of a table."""
    for name, row in table.items():
        texts = [row] * len(TASKS) if isinstance(row, str) else row
        for task, text in zip(TASKS, texts):
            yield name, task, text


ALL = list(outcomes(TABLE['read']))


@pytest.fixture(scope='module')
def assets(tmp_path_factory):
    folder = tmp_path_factory.mktemp('datumaro')
    address, tag = SOURCE
    clone = ['git', 'clone', '--quiet', '--no-checkout', '--depth', '1']
    clone += ['--filter', 'blob:none', '--branch', tag, address, folder]
    check_out = ['git', '-C', folder, 'checkout', '--quiet', 'HEAD', '--']
    try:
        subprocess.run(clone, check=True, timeout=600)
        subprocess.run([*check_out, 'tests/assets'], check=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f'{address} is not to be had: {error}')
    return folder / 'tests/assets'


@cache
def outcome(root, task, **options):
    """The data of a folder, or the line that refuses it."""
    try:
        return OwnData.from_folder(Options(root, task, **options))
    except (OSError, ValueError) as error:
        return str(error)


def test_all_folders_are_in_the_table(assets):
    names = {name.partition('/')[0] for name in TABLE['read']}
    assert {path.name for path in assets.iterdir()} == names


@pytest.mark.parametrize('name, task, expected', ALL)
def test_folders_are_read_or_named(assets, name, task, expected):
    answer = outcome(assets / name, task)
    if isinstance(answer, OwnData):
        classes = ', '.join(answer.classes)
        assert f'{len(known.photos_of(answer))}: {classes}' == expected
        return
    importer = IMPORTER.search(expected)
    assert bool(importer) == ('`datum' in answer), answer
    assert not importer or importer[0] in answer
    text = expected[: importer.start()] if importer else expected
    is_named = f' {text}, which new_config does not read: ' in answer
    assert is_named or text in answer, answer


def boxes_of(data):
    return {
        x.path.name: [(item.name, *item.bbox) for item in x.objects]
        for x in known.photos_of(data)
    }


@pytest.mark.parametrize('name', TABLE['boxes'])
def test_boxes(assets, name):
    folder, *options = name.split(' --labels ')
    data = outcome(assets / folder, 'det', **dict(zip(['labels'], options)))
    assert isinstance(data, OwnData), data
    expected = {
        photo: [(cls, *map(float, box)) for entry in row for cls, box in entry.items()]
        for photo, row in TABLE['boxes'][name].items()
    }
    boxes = boxes_of(data)
    assert boxes.keys() == expected.keys()
    for photo, row in expected.items():
        assert [item[0] for item in boxes[photo]] == [item[0] for item in row]
        for item, other in zip(boxes[photo], row):
            assert item[1:] == pytest.approx(other[1:], abs=1e-3)


@pytest.mark.parametrize('name', TABLE['classes'])
def test_classes_of_photos(assets, name):
    folder, *options = name.split(' --labels ')
    data = outcome(assets / folder, 'cls', **dict(zip(['labels'], options)))
    assert isinstance(data, OwnData), data
    photos = known.photos_of(data)
    classes = {str(x.path.relative_to(assets / folder)): x.class_name for x in photos}
    assert classes == TABLE['classes'][name]


@pytest.mark.parametrize(
    'name', [x for x, task, text in ALL if task == 'seg' and READ.match(text)]
)
def test_pixels_of_label_maps(assets, name):
    """Equal numbers or colors of the files have equal labels, and others others, but
    for those of no label."""
    data = outcome(assets / name, 'seg')
    numbers, labels = [], []
    for x in known.photos_of(data):
        label_map = data.label_maps.labels(x)
        assert label_map.shape == x.size[::-1]
        if x.label_map:
            pixels = np.array(Image.open(x.label_map)).reshape(*label_map.shape, -1)
            numbers += pixels.reshape(-1, pixels.shape[-1]).tolist()
            labels += label_map.ravel().tolist()
    pairs = {(tuple(number), label) for number, label in zip(numbers, labels)}
    assert len(pairs) == len({number for number, _ in pairs})
    kept = [label for _, label in pairs if label != 255]
    assert len(kept) == len(set(kept))
    assert set(kept) <= set(range(len(data.classes)))


@pytest.mark.parametrize('name, expected', TABLE['converted'].items())
def test_commands(assets, tmp_path, datum, name, expected):
    """The printed command of a folder and a task writes its photos and objects."""
    folder, task = name.rsplit(' ', 1)
    shutil.copytree(assets / folder, tmp_path / folder)
    refusal = outcome(tmp_path / folder, task)
    assert isinstance(refusal, str)
    words = shlex.split(re.search('`(datum .+?)`', refusal)[1])
    subprocess.run([datum, *words[1:]], check=True, cwd=tmp_path)
    out = Path(words[words.index('-o') + 1])
    photos = [x for x in out.rglob('*') if x.suffix in ('.jpg', '.png')]
    text = f'{len(photos)} photos'
    if task != 'cls':
        files = [json.loads(x.read_text()) for x in out.glob('annotations/*.json')]
        text += f', {sum(len(x["annotations"]) for x in files)} objects'
    assert text == expected


def test_every_command_is_run():
    commands = {
        (name, IMPORTER.search(x)[1]) for name, _, x in ALL if IMPORTER.search(x)
    }
    assert len(commands) == len(TABLE['converted'])
