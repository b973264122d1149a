"""demo.py without its page: files, what the page's parts answer, and bad input."""

import asyncio
import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image

from mmlinattn_tools.visualization import (
    RANDOM,
    Choice,
    Demo,
    Limits,
    class_name,
    dataset_meta,
    load_model,
    load_subject,
)
from mmlinattn_tools.visualization import read_model_config as read_config

pytestmark = pytest.mark.modern

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tool = load(ROOT / 'tools/misc/demo.py')
models = load(ROOT / 'tests/test_tools/analysis_models.py')


@pytest.fixture
def image(tmp_path):
    return models.write_image(tmp_path / 'square.png')


@pytest.fixture
def make(tmp_path, image):
    """A demo of miniatures, and its choices by kind."""

    def call(*kinds, **options):
        configs = {kind: models.write_config(tmp_path, kind, kind) for kind in kinds}
        demo = Demo(
            {kind: Path(path) for kind, path in configs.items()},
            {},
            {'square': Path(image)},
            uploads=tmp_path,
            **options,
        )
        return demo, [Choice(kind) for kind in kinds]

    return call


def weights_of(config, path, **more):
    model = load_model(read_config(config))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    torch.save(dict(state_dict=model.state_dict(), **more), path)
    return str(path)


@pytest.fixture
def fails(tmp_path, capsys, monkeypatch):
    """Runs the tool, which ends with one line, and returns it; nothing is written."""
    monkeypatch.setattr(sys, 'argv', ['demo.py'])

    def call(*arguments):
        out = tmp_path / 'out'
        with pytest.raises(SystemExit) as stop:
            tool.main([*map(str, arguments), '--out', str(out)])
        assert stop.value.code == 2 and not out.exists()
        line = capsys.readouterr().err
        assert line.count('\n') == 1
        return line.rstrip().partition('error: ')[2]

    return call


def test_files(tmp_path, image, capsys):
    config = models.write_config(tmp_path, 'soft', 'segmentor')
    weights = weights_of(config, tmp_path / 'soft.pth')
    out = tmp_path / 'out'
    tool.main([image, config, weights, '--at', '0.2,0.7', '--out', str(out)])
    names = [f'square_{x}.png' for x in ('attention', 'frequencies', 'predictions')]
    names.insert(1, 'square_demo.json')
    assert sorted(path.name for path in out.iterdir()) == names
    # what was built may have printed before
    printed = capsys.readouterr().out.splitlines()[-4:]
    assert [Path(x).name for x in printed] == [
        f'square_{x}'
        for x in ('predictions.png', 'attention.png', 'frequencies.png', 'demo.json')
    ]
    for path in out.glob('*.png'):
        pixels = np.asarray(Image.open(path))
        assert min(pixels.shape[:2]) > 100 and pixels.std() > 5
    numbers = models.read_json(out / 'square_demo.json')
    assert sum(numbers['predictions']['shares'].values()) == pytest.approx(1)
    (row,) = numbers['attention']['rows']
    assert row['query'] == [0.2, 0.7] and len(row['maps']) == 3
    assert numbers['attention']['models'][0]['weights'] == weights
    blocks = numbers['frequencies'][0]['blocks']
    assert list(blocks) == [
        'stages.0.blocks.0',
        *(f'stages.1.blocks.{i}' for i in '01'),
    ]


def test_predictions_side_by_side(make):
    demo, choices = make('classifier', 'segmentor', 'retinanet', score=0.0)
    image = demo.open_image('square')
    assert image.shape == (60, 90, 3)
    classes, shares, boxes = demo.predict(image, choices)
    assert [x.label for x in (classes, shares)] == [
        'classifier\n(random weights)',
        'segmentor\n(random weights)',
    ]
    values = list(classes.numbers['probabilities'].values())
    assert values == sorted(values, reverse=True) and sum(values) == pytest.approx(1)
    assert classes.pixels is None
    assert shares.pixels.shape == boxes.pixels.shape == (60, 90, 3)
    assert not np.array_equal(shares.pixels, image)
    found = np.array(boxes.numbers['boxes'])
    assert len(found) == 5 and found.max(0)[2] <= 90 and found.max(0)[3] <= 60


def test_names_of_classes(make):
    """The checkpoint's, the config's, or those of the data's type, in this order."""
    demo, _ = make('retinanet')
    path = demo.configs['retinanet']
    subject = load_subject(str(path), None, 'x')
    assert class_name(dataset_meta(subject), 1) == 'y'
    given = "metainfo=dict(classes=('x', 'y', 'z')),"
    assert given in path.read_text()
    path.write_text(path.read_text().replace(given, ''))
    subject = load_subject(str(path), None, 'x')
    meta = dataset_meta(subject)
    assert class_name(meta, 1) == 'bicycle' and class_name(meta, 80) == '80'
    meta = dict(dataset_meta=dict(classes=['cat']))
    weights = weights_of(str(path), path.with_suffix('.pth'), meta=meta)
    meta = dataset_meta(subject._replace(checkpoint=weights))
    assert class_name(meta, 0) == 'cat'


def test_the_models_own_answer(make, tmp_path):
    """The label of a classifier, computed from its modules."""
    demo, (choice,) = make('classifier')
    (found,) = demo.predict(demo.open_image('square'), [choice])
    model = load_model(read_config(str(demo.configs['classifier'])))
    pixels = cv2.resize(demo.open_image('square'), (96, 64)).astype(np.float32)
    inputs = (torch.from_numpy(pixels).permute(2, 0, 1)[None] - 120) / 60
    with torch.no_grad():
        logits = model.head.fc(model.backbone(inputs)[-1])[0]
    expected = logits.softmax(-1)
    names = list(found.numbers['probabilities'])
    assert len(names) == 3
    torch.testing.assert_close(
        torch.tensor(list(found.numbers['probabilities'].values())),
        expected.sort(descending=True).values,
        rtol=1e-3,
        atol=1e-5,
    )


def test_attention_where_it_is_clicked(make):
    demo, choices = make('classifier')
    image = demo.open_image('square')
    (row,) = demo.attention(image, choices, (0.9, 0.1))
    assert [x.layer for x in row.maps] == [
        'stages.0.blocks.0',
        'stages.1.blocks.0',
        'stages.1.blocks.1',
    ]
    assert [x.weights.shape for x in row.maps] == [(16, 24), (8, 12), (8, 12)]
    (other,) = demo.attention(image, choices, (0.1, 0.9))
    assert not np.array_equal(row.maps[0].weights, other.maps[0].weights)


def test_every_layer(make, tmp_path):
    """More of them than a line of the figure has."""
    demo, _ = make()
    deep = models.PLAIN.replace('num_layers=3', 'num_layers=10')
    backbone = models.VIT.replace(models.PLAIN, deep)
    demo.configs['vit'] = Path(
        models.write_config(tmp_path, 'vit', 'classifier', backbone)
    )
    image = demo.open_image('square')
    (few,) = demo.attention(image, [Choice('vit')], (0.5, 0.5))
    (row,) = demo.attention(image, [Choice('vit')], (0.5, 0.5), every_layer=True)
    assert len(few.maps) == 6
    assert [x.layer for x in row.maps] == [f'blocks.{i}' for i in range(10)]
    figure = tool.draw_heatmaps([row])
    assert len([x for x in figure.axes if x.get_title()]) == 1 + 10


def test_weights_change_what_is_seen(make, tmp_path):
    demo, (random,) = make('classifier')
    path = weights_of(str(demo.configs['classifier']), tmp_path / 'own.pth')
    demo.checkpoints['own'] = Path(path)
    choices = [random, Choice('classifier', 'own')]
    image = demo.open_image('square')
    labels = [x['label'] for x in demo.frequencies(image, choices)]
    assert labels == ['classifier\n(random weights)', 'classifier\n(own.pth)']
    first, second = demo.predict(image, choices)
    assert first.numbers != second.numbers


def test_models_in_memory(make, monkeypatch):
    """They are built once, and the oldest make room."""
    demo, choices = make('classifier', 'segmentor')
    built = []
    original = Demo._load.__globals__['load_subject']
    monkeypatch.setitem(
        Demo._load.__globals__,
        'load_subject',
        lambda *args, **options: built.append(args[0]) or original(*args, **options),
    )
    monkeypatch.setitem(Demo._load.__globals__, 'KEPT', 1)
    image = demo.open_image('square')
    for choice in (*choices[:1] * 2, choices[1], choices[0]):
        demo.attention(image, [choice], (0, 0))
    assert [Path(x).stem for x in built] == ['classifier', 'segmentor', 'classifier']


def test_only_what_was_named(make, tmp_path):
    """A page that asks for another file gets none, by whatever path."""
    demo, (choice,) = make('classifier')
    image = demo.open_image('square')
    path = str(demo.configs['classifier'])
    with pytest.raises(ValueError, match='config=.* is not offered: choose one of'):
        demo.predict(image, [Choice(path)])
    weights = weights_of(path, tmp_path / 'own.pth')
    with pytest.raises(ValueError, match='checkpoint=.* is not offered'):
        demo.predict(image, [choice._replace(checkpoint=weights)])
    with pytest.raises(ValueError, match='image=.* is not offered'):
        demo.open_image(str(demo.images['square']))
    demo.uploads = tmp_path / 'uploads'
    demo.uploads.mkdir()
    link = demo.uploads / 'link.png'
    link.symlink_to(demo.images['square'])
    for place in (tmp_path / 'square.png', link, demo.uploads / '../square.png'):
        with pytest.raises(ValueError, match="image='square.png' is no upload"):
            demo.open_upload(str(place))


class Evil:
    def __reduce__(self):
        return print, ('ran',)


def test_checkpoints_run_no_code(make, tmp_path, capsys):
    demo, _ = make('classifier')
    config = str(demo.configs['classifier'])
    demo.checkpoints['evil'] = Path(
        weights_of(config, tmp_path / 'evil.pth', meta=Evil())
    )
    image = demo.open_image('square')
    with pytest.raises(ValueError, match=r'evil\.pth.*holds more than weights'):
        demo.predict(image, [Choice('classifier', 'evil')])
    assert 'ran' not in capsys.readouterr().out


def test_answers(make, image, tmp_path):
    """What the page's parts show, from the upload to the curves, and on errors."""
    demo, _ = make('classifier', 'retinanet', limits=Limits(megapixels=0.01))
    answers = tool.Answers(demo)
    names = ('classifier', RANDOM, tool.NO_MODEL, RANDOM, 'retinanet', RANDOM)
    nothing = 'Error: there is no picture: upload or choose one'
    assert answers.predict(None, *names) == (nothing, None)

    message, view, pixels, *figures = answers.upload(image)
    assert message == '90 x 60 pixels. Predict, or click a pixel.'
    assert pixels.shape == (60, 90, 3) and figures == [None] * 3
    shown = [
        answers.predict(view, *names),
        answers.attention(view, False, names, [80, 10]),
        answers.curves(view, *names),
    ]
    for (message, drawn), title in zip(shown, ('Pred', 'Attention at (80', 'Freq')):
        assert message.startswith(title)
        assert drawn.dtype == np.uint8 and drawn.ndim == 3 and drawn.std() > 5

    no_models = [tool.NO_MODEL, RANDOM] * 3
    message, drawn = answers.predict(view, *no_models)
    assert message == 'Error: no model is chosen: choose one' and drawn is None
    text = tmp_path / 'text.png'
    text.write_text('text')
    message, *rest = answers.upload(str(text))
    assert message.startswith("Error: image='text.png' is not an image: give PNG, ")
    assert rest == [None] * 5
    large = models.write_image(tmp_path / 'large.png', 101, 100)
    message = answers.upload(large)[0]
    assert 'has 100 x 101 pixels' in message and 'give one of 0.01 mega' in message
    assert answers.choose('square')[0].startswith('90 x 60')
    assert 'is not offered' in answers.choose('/etc/passwd')[0]


def test_a_click_on_a_smaller_view(make, monkeypatch, image):
    """Places are parts of the view, which is smaller than a large picture."""
    demo, _ = make('classifier')
    monkeypatch.setattr(tool, 'LARGEST_VIEW', 45)
    answers = tool.Answers(demo)
    _, view, pixels, *_ = answers.upload(image)
    assert pixels.shape == (30, 45, 3) and view[0].shape == (60, 90, 3)
    points = []
    monkeypatch.setattr(
        demo, 'attention', lambda image, choices, point, every: points.append(point)
    )
    monkeypatch.setattr(tool, 'draw_heatmaps', lambda rows: Figure((1, 1)))
    message, _ = answers.attention(view, False, ('classifier', RANDOM), [44, 0])
    assert message.startswith('Attention at (44, 0)')
    assert points == [pytest.approx((44.5 / 45, 0.5 / 30))]


def test_bad_input(fails, tmp_path, image):
    config = models.write_config(tmp_path, 'soft')
    assert 'give IMAGE CONFIG CHECKPOINT, or none' in fails(image, config)
    line = fails('nowhere.png', config, 'none')
    assert line == 'IMAGE nowhere.png: there is no such file or folder'
    assert fails(config, config, 'none').startswith("image='soft.py' is not an image")
    line = fails(image, 'nowhere.py', 'none')
    assert line == 'CONFIG nowhere.py: there is no such file or folder'
    line = fails(image, config, 'nowhere.pth')
    assert line == 'CHECKPOINT nowhere.pth: there is no such file or folder'
    line = fails(image, config, 'none', '--max-megapixels', '0.001')
    assert 'has 90 x 60 pixels' in line and '0.001 megapixels or fewer' in line
    assert '--device nowhere' in fails(image, config, 'none', '--device', 'nowhere')
    for option, value in (
        ('--at', '2,0'),
        ('--score', '2'),
        ('--max-megapixels', '0'),
        ('--port', '70000'),
        ('--shape', '31'),
    ):
        line = fails(image, config, 'none', option, value)
        assert f'argument {option}: {value!r} is not ' in line
    line = fails(image, config, 'none', '--shape', '64', '64', '64')
    assert '--shape takes one or two numbers, got 3' in line

    other = models.write_config(tmp_path, 'vit', backbone=models.VIT)
    weights = weights_of(other, tmp_path / 'vit.pth')
    line = fails(image, config, weights)
    assert weights in line and 'it lacks backbone.stages' in line
    resnet = Path(models.write_config(tmp_path, 'resnet'))
    text = resnet.read_text().replace(models.SOFT, "dict(type='ResNet', depth=18")
    text = text.replace(", out_type='avg_featmap'", '').replace(
        'in_channels=16', 'in_channels=512'
    )
    resnet.write_text(
        text.replace('head=dict(', "neck=dict(type='GlobalAveragePooling'), head=dict(")
    )
    line = fails(image, resnet, 'none')
    assert 'ResNet has no attention of mmlinattn' in line


def test_bad_input_of_the_page(fails, tmp_path, image, monkeypatch):
    monkeypatch.setitem(sys.modules, 'gradio', None)
    line = fails()
    assert "demo.py's page needs the package gradio: pip install gradio==" in line
    monkeypatch.setattr(tool, 'import_gradio', lambda folder: None)
    config = models.write_config(tmp_path, 'soft')
    assert (
        fails('--configs', 'nowhere')
        == '--configs nowhere: there is no such file or folder'
    )
    (tmp_path / 'empty').mkdir()
    for option in ('--configs', '--checkpoints', '--images'):
        line = fails('--configs', config, option, tmp_path / 'empty')
        assert line.startswith(f'{option} {tmp_path / "empty"}: the folder has no file')


@pytest.mark.parametrize(
    'host, own',
    [
        ('localhost:7860', True),
        ('127.0.0.1:7860', True),
        ('[::1]:7860', True),
        ('192.168.0.7', True),
        ('demo.lan:7860', True),
        ('evil.example:7860', False),
        ('127.0.0.1.evil.example', False),
        ('[', False),
        ('', False),
    ],
)
def test_requests_for_other_hosts(host, own):
    """Their name may lead here, for a page of theirs to read what is shown."""
    sent = []

    async def app(scope, receive, send):
        await send(dict(type='http.response.start', status=200))

    async def send(message):
        sent.append(message)

    scope = dict(type='http', headers=[(b'host', host.encode())])
    asyncio.run(tool.OwnHostOnly(app, 'demo.lan')(scope, None, send))
    assert sent[0]['status'] == (200 if own else 421)


def test_uploads_end_with_the_process(monkeypatch, tmp_path, image):
    folders = []

    class Page:
        def queue(self, **options):
            pass

        def launch(self, **options):
            (folders[0] / 'upload.png').touch()
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)

    monkeypatch.setattr(
        tool, 'import_gradio', lambda folder: folders.append(Path(folder))
    )
    monkeypatch.setattr(tool, 'make_page', lambda gradio, demo: Page())
    config = models.write_config(tmp_path, 'soft')
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(KeyboardInterrupt):
            tool.main(['--configs', config])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert folders and not folders[0].exists()


def test_files_that_are_offered(tmp_path):
    """Those of folders at any depth, without bases and what MMEngine keeps."""
    for name in ('a/x.py', 'a/_base_/y.py', 'a/vis_data/config.py', 'z.py', 'a/x.txt'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = tool.find_files('--configs', [str(tmp_path)], ['.py'])
    assert list(found) == [str(tmp_path / name) for name in ('a/x.py', 'z.py')]
    found = tool.find_files('--configs', [str(tmp_path / 'a/x.txt')], ['.py'])
    assert list(found) == [str(tmp_path / 'a/x.txt')]


def test_the_packages_version():
    """The one that the message, the requirements and setup.py name."""
    line = f"{tool.GRADIO}; python_version >= '3.10'"
    assert line in (ROOT / 'requirements/demo.txt').read_text().splitlines()
    assert line in (ROOT / 'setup.py').read_text()


def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        tool.main(['--help'])
    assert stop.value.code == 0
    assert 'python tools/misc/demo.py' in capsys.readouterr().out
