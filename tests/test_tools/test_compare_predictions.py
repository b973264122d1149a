"""Predictions side by side, of miniatures, and with bad input."""

import json
from pathlib import Path

import analysis_models as models
import cv2
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from mmlinattn.cli import figures, pictures
from mmlinattn.commands import compare_predictions
from mmlinattn.commands.photo_files import find_photos

pytestmark = pytest.mark.openmmlab


@pytest.fixture
def image(tmp_path):
    return models.write_image(tmp_path / 'images/square.png')


def test_predictions(tmp_path, image):
    kinds = ('retinanet', 'segmentor', 'classifier')
    configs = [models.write_config(tmp_path, kind, kind) for kind in kinds]
    out = tmp_path / 'out'
    argv = *configs, '--score', '0', '--image', image, '--out', f'{out}'
    compare_predictions.main(argv)
    pixels = np.asarray(Image.open(out / 'square_predictions.png'))
    assert min(pixels.shape[:2]) > 100 and pixels.std() > 5
    content = json.loads((out / 'square_predictions.json').read_text())
    boxes, shares, classes = content['models']
    assert len(boxes['objects']) == 5
    assert {x['name'] for x in boxes['objects']} <= set('xyz')
    corners = np.array([x['box'] for x in boxes['objects']])
    assert corners.min() >= 0
    assert corners.max(0)[2] <= 90 and corners.max(0)[3] <= 60
    assert sum(shares['shares'].values()) == pytest.approx(1)
    assert shares['shares'].keys() <= set('abcd')
    # the classifier, computed from its modules, of what the pipeline makes
    pixels = cv2.resize(np.asarray(Image.open(image)), (96, 64)).astype(np.float32)
    x = (torch.from_numpy(pixels).permute(2, 0, 1)[None] - 120) / 60
    model = compare_predictions.Subject(configs[2], 'none').model
    with torch.no_grad():
        logits = model.head.fc(model.backbone(x)[-1])[0]
    expected = logits.softmax(-1).sort(descending=True).values.tolist()
    scores = [x['score'] for x in classes['classes']]
    assert scores == pytest.approx(expected, rel=1e-3)


def test_names_of_classes(tmp_path):
    """The checkpoint's, the config's, or those of the data's type, in this order."""

    def classes(*args):
        return compare_predictions.Subject(str(path), *args).meta['classes']

    path = Path(models.write_config(tmp_path, 'retinanet', 'retinanet'))
    assert classes() == ('x', 'y', 'z')
    meta = dict(dataset_meta=dict(classes=['cat']))
    weights = models.save_weights(str(path), tmp_path / 'cat.pth', meta=meta)
    assert classes(weights) == ['cat']
    path.write_text(path.read_text().replace("classes=('x', 'y', 'z')", ''))
    assert classes()[1] == 'bicycle'


def test_bad_input(tmp_path, image, error_of):
    """Nothing is written."""
    config = models.write_config(tmp_path, 'retinanet', 'retinanet')
    weights = models.save_weights(config, tmp_path / 'bare.pth', whole=False)
    (tmp_path / 'empty').mkdir()
    for arguments, message in (
        ([config, '--image', 'nowhere.png'], '--image nowhere.png: there is no image'),
        ([config, '--image', tmp_path / 'empty'], 'empty: there is no image'),
        ([config, '--checkpoint', 'nowhere.pth'], "'nowhere.pth': there is no such"),
        ([config, '--checkpoint', weights], "bare.pth' is not from this RetinaNet: "),
        ([config, config, '--checkpoint', 'none'], 'for each config, 2, got 1'),
    ):
        argv = '--image', image, '--out', tmp_path / 'out', *arguments
        assert message in error_of(compare_predictions.main, [*map(str, argv)])
        assert not (tmp_path / 'out').exists()


def test_damaged_photos(tmp_path, capsys):
    """They cost these photos only; a.png and a.jpg have outputs of their own."""
    config, out = models.write_config(tmp_path, 'soft'), tmp_path / 'out'
    for name in ('b.png', 'b.jpg', 'c.jpg', 'd.png'):
        models.write_image(tmp_path / f'photos/{name}')
    cut = tmp_path / 'photos/c.jpg'
    cut.write_bytes(cut.read_bytes()[:-300])
    (tmp_path / 'photos/d.png').write_bytes(b'')
    argv = config, '--image', f'{tmp_path / "photos"}', '--out', f'{out}'
    compare_predictions.main(argv)
    assert 'ignored 2 damaged photos: c.jpg, d.png\n' in capsys.readouterr().err
    names = {x.name for x in out.glob('*.json')}
    assert names == {'b.png_predictions.json', 'b.jpg_predictions.json'}
    first = out / 'b.png_predictions.json'
    first.unlink()
    compare_predictions.main(argv)  # it goes on
    text = '1 images are predicted already, 1 remain'
    assert text in capsys.readouterr().out and first.exists()
    compare_predictions.main([*argv, '--score', '0.1'])
    assert 'remain' not in capsys.readouterr().out


def test_what_is_left_of_16_bits_is_said(tmp_path, capsys):
    photo = tmp_path / 'dark.tif'
    cv2.imwrite(str(photo), np.full((9, 9), 200, np.uint16))
    for place in (tmp_path, photo):
        assert find_photos(place) == [photo]
        line = capsys.readouterr().err
        assert '1 photos have 16 bits' in line and '1 gray levels are left' in line


def test_pictures_replace_their_own_alone(tmp_path, error_of, image):
    config = models.write_config(tmp_path, 'soft')
    arguments = [config, '--image', image, '--out', str(tmp_path / 'out')]
    compare_predictions.main(arguments)
    path = tmp_path / 'out/square_predictions.png'
    arguments += ['--score', '0.1']
    compare_predictions.main(arguments)
    path.write_bytes(b'mine')
    arguments[-1] = '0.2'
    line = error_of(compare_predictions.main, arguments)
    assert f'{path} exists: give --overwrite' in line
    assert path.read_bytes() == b'mine'
    compare_predictions.main([*arguments, '--overwrite'])
    assert path.read_bytes() != b'mine'


def test_predictions_of_other_models_are_kept(tmp_path, image, capsys, error_of):
    config, other = (models.write_config(tmp_path, name) for name in ('one', 'two'))
    out = tmp_path / 'out'
    argv = [config, '--image', image, '--out', str(out)]
    compare_predictions.main(argv)
    first = (out / 'square_predictions.json').read_text()
    line = error_of(compare_predictions.main, [other, *argv[1:]])
    assert 'one.py with none: give another --out, or --overwrite' in line
    assert (out / 'square_predictions.json').read_text() == first
    # another size of the same model
    with open(config, 'a', encoding='utf-8') as file:
        file.write("test_dataloader['dataset']['pipeline'][1]['scale'] = (64, 64)\n")
    compare_predictions.main(argv)
    assert 'predicted again' in capsys.readouterr().out
    compare_predictions.main(argv)
    assert '1 images are predicted already, 0 remain' in capsys.readouterr().out
    models.write_image(image, 50, 70)
    compare_predictions.main(argv)
    assert 'predicted again' in capsys.readouterr().out


def test_a_photo_that_fails_costs_only_itself(tmp_path, image, capsys, error_of):
    """Also of segmentors; the pictures in the folder are no photos."""
    config = models.write_config(tmp_path, 'segmentor', 'segmentor')
    step = "dict(type='Resize', scale=(96, 64), keep_ratio=True)"
    with open(config, 'a', encoding='utf-8') as file:
        file.write(f"test_dataloader['dataset']['pipeline'][1] = {step}\n")
    photos = Path(image).parent
    models.write_image(photos / 'thin.png', 1, 900)
    argv = config, '--image', str(photos), '--out', str(photos)
    for _ in range(2):
        compare_predictions.main(argv)
        printed = capsys.readouterr()
        assert 'thin.png: not predicted: ' in printed.err
        assert '1 could not be predicted' in printed.out
    names = {x.name for x in photos.iterdir()}
    endings = ('.png', '_labels.png', '_predictions.png', '_predictions.json')
    assert names == {'thin.png', *(f'square{x}' for x in endings)}
    labels = np.asarray(Image.open(photos / 'square_labels.png'))
    assert labels.shape == (60, 90) and labels.max() < 4
    line = error_of(compare_predictions.main, [*argv, '--image', f'{photos}/thin.png'])
    assert 'thin.png: not predicted: ' in line


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.mark.parametrize('name', ['save_picture', 'save_label_map', 'save'])
def test_a_killed_command_goes_on(tmp_path, name, capsys, monkeypatch):
    """Whatever it wrote last: the next run makes what is missing, and no more."""
    config = models.write_config(tmp_path, 'segmentor', 'segmentor')
    for i in range(3):
        models.write_image(tmp_path / f'photos/{i}.png')
    out = tmp_path / 'out'
    argv = config, '--image', str(tmp_path / 'photos'), '--out', str(out)
    write, count = getattr(compare_predictions, name), iter(range(9))

    def die(*args):
        if next(count) == 1:
            raise Killed
        write(*args)

    with monkeypatch.context() as patch:
        patch.setattr(compare_predictions, name, die)
        with pytest.raises(Killed):
            compare_predictions.main(argv)
    assert [x.name for x in out.glob('*.json')] == ['0_predictions.json']
    (out / '.1_labels.png.01234567.part').touch()  # half of a file
    compare_predictions.main(argv)
    assert '1 images are predicted already, 2 remain' in capsys.readouterr().out
    kinds = ('labels.png', 'predictions.json', 'predictions.png')
    assert {x.name for x in out.iterdir()} == {
        f'{i}_{kind}' for i in range(3) for kind in kinds
    }


def test_numbers_never_stand_beside_another_models_picture(
    tmp_path, image, monkeypatch
):
    one, two = (models.write_config(tmp_path, name) for name in ('one', 'two'))
    out = tmp_path / 'out'
    rest = '--image', image, '--out', str(out)
    compare_predictions.main([one, *rest])

    def die(*args):
        raise Killed

    monkeypatch.setattr(compare_predictions, 'save', die)
    with pytest.raises(Killed):
        compare_predictions.main([two, *rest, '--overwrite'])
    assert [x.name for x in out.iterdir()] == ['square_predictions.png']


@pytest.mark.parametrize('kind', ['picture', 'figure', 'numbers'])
def test_files_are_whole_or_as_they_were(tmp_path, kind, monkeypatch):
    path = tmp_path / ('a.json' if kind == 'numbers' else 'a.png')
    path.write_bytes(b'as it was')

    def half(self, place, *args, **kwargs):
        Path(place).write_bytes(b'half')
        raise Killed

    names = dict(picture=(Image.Image, 'save'), figure=(Figure, 'savefig'))
    contents = dict(picture=Image.new('L', (9, 9)), figure=Figure(), numbers={})
    write = pictures.save_picture if kind == 'picture' else figures.save
    with monkeypatch.context() as patch:
        if kind == 'numbers':
            patch.setattr(Path, 'write_text', half_of_text)
        else:
            patch.setattr(*names[kind], half)
        with pytest.raises(Killed):
            write(contents[kind], path)
    assert path.read_bytes() == b'as it was' and len(list(tmp_path.iterdir())) == 1
    write(contents[kind], path)
    assert path.read_bytes() != b'as it was'


def half_of_text(self, text):
    self.write_bytes(text[:3].encode())
    raise Killed


def test_predictions_of_a_run_are_in_its_folder(tmp_path, image, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = models.write_config(tmp_path, 'soft')
    (tmp_path / 'run').mkdir()
    weights = models.save_weights(config, tmp_path / 'run/best.pth')
    monkeypatch.setattr(compare_predictions, 'get_device', lambda: 'cpu')
    compare_predictions.main([config, '--checkpoint', weights, '--image', image])
    assert (tmp_path / 'run/predictions/square_predictions.png').is_file()
    devices = []
    monkeypatch.setattr(compare_predictions, 'get_device', lambda: 'meta')
    monkeypatch.setattr(
        compare_predictions, 'Subject', lambda *args: devices.append(args[2])
    )
    with pytest.raises(AttributeError):  # there is no model
        compare_predictions.main([config, '--image', image])
    assert devices == ['meta']


def test_legends():
    """Classes by their share, in rows, in the colors of the data set or their own."""
    labels = np.zeros((40, 60), int)
    labels[:, 50:], labels[:3] = 1, 300
    pixels = np.full((40, 60, 3), 100, np.uint8)
    picture, legend = pictures.draw_label_map(pixels, labels, ['a', 'b'], [(0, 200, 0)])
    assert picture.shape == (267, 400, 3) and tuple(picture[200, 9]) == (50, 150, 50)
    assert [name for name, _ in legend] == ['a 77.1%', 'b 15.4%', '300 7.5%']
    assert len({color for _, color in legend}) == 3
    many = [(f'class {i} ' + 'x' * i, (i, i, i)) for i in range(60)]
    rows = pictures.rows_of(many, 300)
    assert rows[-1][-1][1] == '36 more' and len(rows) > 5
    panel = pictures.Panel(np.zeros((3, 2000, 3), np.uint8), ['x' * 500], many)
    tall = pictures.Panel(np.zeros((2000, 3, 3), np.uint8), ['y'])
    width, height = pictures.side_by_side([panel, tall]).size
    assert width < 1500 and 1000 < height < 2000


def test_ids_of_many_classes(tmp_path):
    labels = np.array([[0, 70], [300, 1]])
    for most in (255, 300):
        pictures.save_label_map(labels.clip(max=most), tmp_path / 'a.png')
        pixels = np.asarray(Image.open(tmp_path / 'a.png'))
        assert (pixels == labels.clip(max=most)).all()
