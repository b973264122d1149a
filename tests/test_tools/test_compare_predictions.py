"""Predictions side by side, of miniatures, and with bad input."""

import json
from pathlib import Path

import analysis_models as models
import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from analysis_tools import compare_predictions

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
    found = np.array([x['box'] for x in boxes['objects']])
    assert found.min() >= 0 and found.max(0)[2] <= 90 and found.max(0)[3] <= 60
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
    assert 'left out 2 damaged photos: c.jpg, d.png\n' in capsys.readouterr().err
    names = {x.name for x in out.glob('*.json')}
    assert names == {'b.png_predictions.json', 'b.jpg_predictions.json'}
    first = out / 'b.png_predictions.json'
    first.unlink()
    compare_predictions.main(argv)  # it goes on
    assert 'it has 1 images, 1 left' in capsys.readouterr().out and first.exists()
    compare_predictions.main([*argv, '--score', '0.1'])
    assert 'left' not in capsys.readouterr().out


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
