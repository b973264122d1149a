"""The commands that look at models, on miniatures, and with bad input."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from loading import load_module
from PIL import Image

from analysis_tools import attention_heatmap, compare_predictions
from mmlinattn.analysis import watch
from mmlinattn_tools import figures
from mmlinattn_tools.analysis import Subject

pytestmark = pytest.mark.modern
pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

models = load_module(Path(__file__).with_name('analysis_models.py'))

SOFT, VIT = models.SOFT, models.VIT


@pytest.fixture
def image(tmp_path):
    return models.write_image(tmp_path / 'images/square.png')


@pytest.fixture
def run(tmp_path, image):
    """Runs a command in this process and reads what it wrote."""

    def call(command, *arguments):
        out = tmp_path / 'out'
        argv = [*map(str, arguments), '--out', str(out)]
        if '--image' not in arguments:
            argv += ['--image', image]
        command.main(argv)
        for path in out.glob('*.png'):
            pixels = np.asarray(Image.open(path))
            assert min(pixels.shape[:2]) > 100 and pixels.std() > 5
        return {path.name: path for path in sorted(out.iterdir())}

    return call


@pytest.fixture
def fails(run, tmp_path, capsys):
    """Runs a command that ends with one line, and returns it; nothing is written."""

    def call(command, *arguments):
        with pytest.raises(SystemExit) as stop:
            run(command, *arguments)
        assert stop.value.code == 2
        assert not (tmp_path / 'out').exists()
        line = capsys.readouterr().err
        assert line.count('\n') == 1
        return line.rstrip()

    return call


def test_heatmap(run, tmp_path, image):
    soft = models.write_config(tmp_path, 'soft')
    vit = models.write_config(
        tmp_path, 'vit', backbone=VIT, options=', attn_scale=True'
    )
    weights = models.save_weights(vit, tmp_path / 'vit.pth')
    written = run(
        attention_heatmap,
        *(soft, vit, '--checkpoint', 'none', weights),
        *('--at', '0.5,0.5', '--at', '0,1', '--label', 'SOFT++', 'ViT'),
    )
    assert list(written) == [f'square_attention.{x}' for x in ('json', 'png')]
    numbers = models.read_json(written['square_attention.json'])
    assert [x['weights'] for x in numbers['models']] == ['none', weights]
    rows = numbers['rows']
    assert [x['label'] for x in rows] == ['SOFT++'] * 2 + ['ViT'] * 2
    assert [x['query'] for x in rows] == [[0.5, 0.5], [0, 1]] * 2
    shapes = [[np.shape(x['weights']) for x in row['maps']] for row in rows]
    assert shapes == [[(16, 24), (8, 12), (8, 12)]] * 2 + [[(4, 6)] * 3] * 2
    # softmax attention, its row by hand: the class token has the rest of the weights
    model = models.load_model(vit, weights)
    calls = []
    with torch.no_grad(), watch(model, calls.append):
        model.backbone(image_tensor(image))
    call = calls[1]
    q, k = (x.unflatten(-1, (2, -1)).transpose(1, 2) for x in (call.q, call.k))
    attn = (q @ k.mT / 8**0.5).softmax(-1)
    omega = call.module.omega[:, None, None]
    attn = (attn + omega * (attn - 1 / 25)).mean(1)
    expected = attn[0, 1 + 2 * 6 + 3, 1:].view(4, 6)
    found = torch.tensor(rows[2]['maps'][1]['weights'])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def image_tensor(image):
    """The image as the commands' pipeline makes it, without mm."""
    pixels = cv2.resize(np.asarray(Image.open(image)), (96, 64)).astype(np.float32)
    return (torch.from_numpy(pixels).permute(2, 0, 1)[None] - 120) / 60


def test_heatmap_of_heads_and_layers(run, tmp_path):
    config = models.write_config(tmp_path, 'soft')
    written = run(
        *(attention_heatmap, config, '--heads', 'all', '--shape', '64', '128'),
        *('--layers', 'stages.1.blocks.1', 'stages.0.blocks.0'),
    )
    (row,) = models.read_json(written['square_attention.json'])['rows']
    found = [(x['layer'], x['heads']) for x in row['maps']]
    layers = ('stages.0.blocks.0', 'stages.1.blocks.1')
    assert found == [(x, f'heads.{head}') for x in layers for head in (0, 1)]
    assert np.shape(row['maps'][0]['weights']) == (16, 32)


def test_predictions(run, tmp_path, image):
    kinds = ('retinanet', 'segmentor', 'classifier')
    configs = [models.write_config(tmp_path, kind, kind) for kind in kinds]
    written = run(compare_predictions, *configs, '--score', '0')
    assert list(written) == ['square_predictions.json', 'square_predictions.png']
    numbers = models.read_json(written['square_predictions.json'])['models']
    boxes, shares, classes = numbers
    assert len(boxes['boxes']) == len(boxes['scores']) == 5
    assert set(boxes['classes']) <= set('xyz')
    found = np.array(boxes['boxes'])
    assert found.min() >= 0 and found.max(0)[2] <= 90 and found.max(0)[3] <= 60
    assert sum(shares['shares']) == pytest.approx(1)
    assert set(shares['classes']) <= set('abcd')
    # the classifier, computed from its modules
    model = models.load_model(configs[2])
    with torch.no_grad():
        logits = model.head.fc(model.backbone(image_tensor(image))[-1])[0]
    expected = logits.softmax(-1).sort(descending=True).values.tolist()
    assert classes['probabilities'] == pytest.approx(expected, rel=1e-3)


def test_names_of_classes(tmp_path):
    """The checkpoint's, the config's, or those of the data's type, in this order."""
    path = Path(models.write_config(tmp_path, 'retinanet', 'retinanet'))
    assert Subject(str(path), 'none', '').class_name(1) == 'y'
    meta = dict(dataset_meta=dict(classes=['cat']))
    weights = models.save_weights(str(path), tmp_path / 'cat.pth', meta=meta)
    assert Subject(str(path), weights, '').class_name(0) == 'cat'
    given = "classes=('x', 'y', 'z')"
    path.write_text(path.read_text().replace(given, ''))
    subject = Subject(str(path), 'none', '')
    assert subject.class_name(1) == 'bicycle' and subject.class_name(80) == '80'


def test_backbone_weights_start_a_whole_model(run, fails, tmp_path):
    """They serve for attention maps, but not for predictions."""
    config = models.write_config(tmp_path, 'retinanet', 'retinanet')
    weights = models.save_weights(config, tmp_path / 'backbone.pth', whole=False)
    line = fails(compare_predictions, config, '--checkpoint', weights)
    assert 'backbone.pth' in line and 'neck.' in line and 'missing' in line
    run(attention_heatmap, config, '--checkpoint', weights)


def test_bad_input(fails, tmp_path):
    config = models.write_config(tmp_path, 'soft')
    other = models.write_config(tmp_path, 'vit', backbone=VIT)
    weights = models.save_weights(other, tmp_path / 'vit.pth')
    (tmp_path / 'empty').mkdir()
    for arguments, message in (
        ([config, '--image', 'nowhere.png'], '--image nowhere.png: there is no image'),
        ([config, '--image', tmp_path / 'empty'], 'empty: there is no image'),
        ([config, '--checkpoint', 'nowhere.pth'], "'nowhere.pth': there is no such"),
        ([config, '--checkpoint', weights], weights),
        ([config, config, '--checkpoint', 'none'], 'for each config, 2, got 1'),
        ([config, '--shape', 64, 64, 64], '--shape takes one or two numbers, got 3'),
        ([config, '--layers', 'stages.7'], '--layers stages.7: there is no such layer'),
        ([config, '--at', '2,0'], 'argument --at: must be 0 to 1, got 2'),
    ):
        assert message in fails(attention_heatmap, *arguments)


def test_models_without_the_attention(fails, tmp_path):
    path = Path(models.write_config(tmp_path, 'resnet'))
    text = path.read_text().replace(SOFT, "dict(type='ResNet', depth=18")
    path.write_text(text.replace(", out_type='avg_featmap'", ''))
    assert 'of mmlinattn' in fails(attention_heatmap, path)


def test_predictions_go_on(tmp_path, capsys):
    """Those of the same model are kept; a damaged photo costs that photo only."""
    config, out = models.write_config(tmp_path, 'soft'), tmp_path / 'out'
    arguments = [config, '--image', f'{tmp_path / "photos"}', '--out', f'{out}']
    models.write_image(tmp_path / 'photos/a.png')
    compare_predictions.main(arguments)
    first, written = out / 'a_predictions.png', out / 'b.png_predictions.json'
    first.unlink()
    for name in ('b.png', 'b.jpg', 'c.jpg', 'd.png'):
        models.write_image(tmp_path / f'photos/{name}')
    cut = tmp_path / 'photos/c.jpg'
    cut.write_bytes(cut.read_bytes()[:-300])
    (tmp_path / 'photos/d.png').write_bytes(b'')
    compare_predictions.main(arguments)
    told = capsys.readouterr()
    assert 'it has 1 images, 2 left' in told.out and not first.exists()
    assert 'left out 2 damaged photos: c.jpg, d.png\n' in told.err
    assert written.is_file() and (out / 'b.jpg_predictions.json').is_file()
    compare_predictions.main([*arguments, '--score', '0.1'])
    assert first.exists()


@pytest.mark.parametrize('name', ('', 'paper.svg', 'paper.pdf'))
def test_figures_replace_their_own_alone(tmp_path, capsys, image, name):
    config = models.write_config(tmp_path, 'soft')
    arguments = [config, '--image', image, '--out', str(tmp_path / 'out' / name)]
    attention_heatmap.main(arguments)
    written = sorted((tmp_path / 'out').iterdir())
    assert len(written) == 2 and (not name or written[0].stem == 'paper')
    before = written[0].read_text()
    attention_heatmap.main([*arguments, '--at', '0,0'])
    assert written[0].read_text() != before
    for path in written:
        ours = path.read_bytes()
        path.write_bytes(b'mine')
        with pytest.raises(SystemExit) as stop:
            attention_heatmap.main(arguments)
        assert stop.value.code == 2 and path.read_bytes() == b'mine'
        assert f'{path} exists: give --overwrite' in capsys.readouterr().err
        path.write_bytes(ours)
    path.write_bytes(b'mine')
    attention_heatmap.main([*arguments, '--overwrite'])
    assert path.read_bytes() != b'mine'


def test_figures_of_papers(tmp_path, image):
    """Text is text, layers are as papers have them, and names are in JSON."""
    config = models.write_config(tmp_path, 'soft')
    more = '--shape', '64', '--image', image
    attention_heatmap.main([config, '--out', str(tmp_path / 'a/map.svg'), *more])
    svg = (tmp_path / 'a/map.svg').read_text()
    assert '>stage 2, block 2<' in svg and 'stages.' not in svg
    (row,) = models.read_json(tmp_path / 'a/map.json')['rows']
    assert row['maps'][-1]['layer'] == 'stages.1.blocks.1'
    attention_heatmap.main([config, '--out', str(tmp_path / 'map.pdf'), *more])
    assert b'/CIDFontType2' in (tmp_path / 'map.pdf').read_bytes()  # TrueType


def test_names_of_layers():
    for name, title in {
        'backbone.stages.2.blocks.1': 'stage 3, block 2',
        'class_blocks.0': 'class block 1',
        'SOFT++': 'SOFT++',
    }.items():
        assert figures.layer_title(name) == title
