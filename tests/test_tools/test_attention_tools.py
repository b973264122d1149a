"""attention_heatmap.py, frequency_report.py, pinv_report.py, compare_predictions.py and
cam.py on miniatures; what they do on bad input."""

import importlib.util
import shutil
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from mmlinattn.analysis import hc_proportion, watch
from mmlinattn_tools.visualization import load_model, load_subjects, read_model_config

pytestmark = pytest.mark.modern
HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location('models', HERE / 'analysis_models.py')
models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(models)

NAMES = (
    'attention_heatmap',
    'frequency_report',
    'pinv_report',
    'compare_predictions',
    'cam',
)
SOFT, VIT = models.SOFT, models.VIT


@pytest.fixture
def image(tmp_path):
    return models.write_image(tmp_path / 'images/square.png')


@pytest.fixture
def run(tmp_path, image):
    """Runs a tool in this process and reads what it wrote."""

    def call(name, *arguments):
        out = tmp_path / 'out'
        argv = [*map(str, arguments), '--out', str(out)]
        if '--image' not in arguments:
            argv += ['--image', image]
        models.load_tool(name).main(argv)
        for path in out.glob('*.png'):
            pixels = np.asarray(Image.open(path))
            assert min(pixels.shape[:2]) > 100 and pixels.std() > 5
        return {path.name: path for path in sorted(out.iterdir())}

    return call


@pytest.fixture
def fails(run, tmp_path, capsys):
    """Runs a tool that ends with one line, and returns it; nothing is written."""

    def call(name, *arguments):
        with pytest.raises(SystemExit) as stop:
            run(name, *arguments)
        assert stop.value.code == 2
        assert not (tmp_path / 'out').exists()
        line = capsys.readouterr().err
        assert line.count('\n') == 1
        return line.rstrip()

    return call


def save_weights(config, path, whole=True):
    model = load_model(read_model_config(config))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    state = model.state_dict()
    if not whole:
        state = {key: x for key, x in state.items() if key.startswith('backbone.')}
    torch.save(dict(state_dict=state), path)
    return str(path)


def test_heatmap(run, tmp_path):
    pytest.importorskip('mmpretrain')
    soft = models.write_config(tmp_path, 'soft')
    vit = models.write_config(
        tmp_path, 'vit', backbone=VIT, options=', attn_scale=True'
    )
    weights = save_weights(vit, tmp_path / 'vit.pth')
    written = run(
        'attention_heatmap',
        *(soft, vit, '--checkpoint', 'none', weights, '--svg'),
        *('--at', '0.5,0.5', '--at', '0,1', '--label', 'SOFT++', 'ViT'),
    )
    assert list(written) == [f'square_attention.{x}' for x in ('json', 'png', 'svg')]
    numbers = models.read_json(written['square_attention.json'])
    assert [x['weights'] for x in numbers['models']] == ['random', weights]
    rows = numbers['rows']
    assert [x['label'] for x in rows] == ['SOFT++'] * 2 + ['ViT'] * 2
    assert [x['query'] for x in rows] == [[0.5, 0.5], [0, 1]] * 2
    shapes = [[np.shape(x['weights']) for x in row['maps']] for row in rows]
    assert shapes == [[(16, 24), (8, 12), (8, 12)]] * 2 + [[(4, 6)] * 3] * 2
    # softmax attention, its row by hand: the class token has the rest of the weights
    model = load_model(read_model_config(vit), weights)
    assert model.training is False
    call = one_call(model, image_tensor(tmp_path, model), 'backbone.blocks.1.attn')
    q, k = (x.unflatten(-1, (2, -1)).transpose(1, 2) for x in (call.q, call.k))
    attn = (q @ k.mT / 8**0.5).softmax(-1)
    omega = call.module.omega[:, None, None]
    attn = (attn + omega * (attn - 1 / 25)).mean(1)
    expected = attn[0, 1 + 2 * 6 + 3, 1:].view(4, 6)
    found = torch.tensor(rows[2]['maps'][1]['weights'])
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def image_tensor(tmp_path, model):
    """The image as the tools' pipeline makes it, without mm."""
    image = Image.open(tmp_path / 'images/square.png')
    pixels = cv2.resize(np.asarray(image), (96, 64)).astype(np.float32)
    return (torch.from_numpy(pixels).permute(2, 0, 1)[None] - 120) / 60


def one_call(model, inputs, name):
    found = []
    with (
        torch.no_grad(),
        watch(model, lambda call: found.append(call) if call.name == name else None),
    ):
        model.backbone(inputs)
    return found[0]


def test_heatmap_of_heads_and_layers(run, tmp_path):
    pytest.importorskip('mmpretrain')
    config = models.write_config(tmp_path, 'soft')
    written = run(
        *('attention_heatmap', config, '--heads', 'all', '--shape', '64', '128'),
        *('--layers', 'stages.1.blocks.1', '0'),
    )
    (row,) = models.read_json(written['square_attention.json'])['rows']
    assert [(x['layer'], x['heads']) for x in row['maps']] == [
        (f'stages.{i}', f'head {head}')
        for i in ('0.blocks.0', '1.blocks.1')
        for head in (0, 1)
    ]
    assert np.shape(row['maps'][0]['weights']) == (16, 32)


def test_frequency(run, tmp_path):
    pytest.importorskip('mmpretrain')
    plain = models.write_config(tmp_path, 'plain', backbone=VIT)
    scaled = models.write_config(
        tmp_path, 'scaled', backbone=VIT, options=', attn_scale=True, feat_scale=True'
    )
    models.write_image(tmp_path / 'images/other.png', 40, 40)
    folder = str(tmp_path / 'images')
    written = run('frequency_report', plain, scaled, '--image', folder)
    assert list(written) == [
        'frequency_report.json',
        'frequency_report.png',
        'frequency_vectors.png',
    ]
    numbers = models.read_json(written['frequency_report.json'])
    assert numbers['images'] == ['other.png', 'square.png']
    for model in numbers['models']:
        assert list(model['blocks']) == [f'blocks.{i}' for i in range(3)]
        for block in model['blocks'].values():
            assert len(block) == 4 and None not in block.values()
    vectors = numbers['models'][1]['vectors']
    assert vectors['omega'] == {f'blocks.{i}': [0, 0] for i in range(3)}
    assert not numbers['models'][0]['vectors']


def test_frequency_of_one_image(run, tmp_path):
    """A measure by hand, and a model with maps of more tokens than are compared."""
    pytest.importorskip('mmpretrain')
    config = models.write_config(tmp_path, 'soft')
    written = run('frequency_report', config, '--tokens', '100')
    assert 'frequency_vectors.png' not in written
    blocks = models.read_json(written['frequency_report.json'])['models'][0]['blocks']
    found = []
    model = load_model(read_model_config(config))
    with torch.no_grad(), watch(model, on_block=found.append):
        model.backbone(image_tensor(tmp_path, model))
    assert [x.name for x in found] == [f'backbone.{name}' for name in blocks]
    for call, block in zip(found, blocks.values()):
        expected = hc_proportion(call.tokens).item()
        assert block['hc_proportion'] == pytest.approx(expected, rel=1e-3)
    # 384 tokens, then 96
    assert [block['relative_gain'] is None for block in blocks.values()] == [
        True,
        False,
        False,
    ]


def test_frequency_of_large_maps_only(run, tmp_path):
    pytest.importorskip('mmpretrain')
    config = models.write_config(tmp_path, 'soft')
    written = run('frequency_report', config, '--tokens', '50')
    (model,) = models.read_json(written['frequency_report.json'])['models']
    for block in model['blocks'].values():
        assert block['relative_gain'] is None and 0 < block['attention_similarity'] <= 1


@pytest.mark.parametrize('options', ('', ', attn_norm=False'))
def test_pinv(run, tmp_path, options):
    pytest.importorskip('mmpretrain')
    config = models.write_config(tmp_path, 'soft', options=options)
    written = run('pinv_report', config, '--shape', '128')
    assert list(written) == ['pinv_report.json', 'pinv_report.png']
    layers = models.read_json(written['pinv_report.json'])['models'][0]['layers']
    assert list(layers) == [
        'stages.0.blocks.0',
        'stages.1.blocks.0',
        'stages.1.blocks.1',
    ]
    for layer in layers.values():
        assert layer['landmarks'] == len(layer['eigenvalues']) == 64
        assert layer['heads'] == 2
        assert len(layer['residuals']) == len(layer['bound']) == 21
        assert np.all(np.array(layer['residuals']) <= layer['bound'])
        assert np.all(np.diff(layer['residuals']) <= 0)
        assert layer['norms']['landmarks'] == [8, 16, 32, 64]
        trace = 64 * (1 if not options else 1.01)
        assert sum(layer['eigenvalues']) == pytest.approx(trace, rel=1e-4)


def test_predictions(run, tmp_path):
    pytest.importorskip('mmdet')
    pytest.importorskip('mmseg')
    retinanet = models.write_config(tmp_path, 'retinanet', 'retinanet')
    segmentor = models.write_config(tmp_path, 'segmentor', 'segmentor')
    written = run('compare_predictions', retinanet, segmentor, '--score', '0')
    assert list(written) == ['square_predictions.json', 'square_predictions.png']
    boxes, shares = models.read_json(written['square_predictions.json'])['models']
    assert len(boxes['boxes']) == len(boxes['scores']) == 5
    assert set(boxes['classes']) <= set('xyz')
    found = np.array(boxes['boxes'])
    assert found.min() >= 0 and found.max(0)[2] <= 90 and found.max(0)[3] <= 60
    assert sum(shares['shares'].values()) == pytest.approx(1)
    assert set(shares['shares']) <= set('abcd')


def grad_cam(config, weights, image, layer):
    """By class, Grad-CAM as its paper writes it, on the map of the layer."""
    tool = models.load_tool('cam')
    argv = [config, '--checkpoint', weights, '--image', image]
    (subject,), (path,) = load_subjects(tool.parse_args(argv), whole=True)
    picture = subject.read(path)
    shape = tool.map_shape(subject, picture, layer)
    scores = tool.score_classes(subject, picture)
    kept = []
    module = subject.model.get_submodule(layer)
    handle = module.register_forward_hook(lambda *seen: kept.append(seen[-1]))
    values = scores(picture.inputs)[0]
    handle.remove()
    cams = []
    for value in values:
        (grad,) = torch.autograd.grad(value, kept, retain_graph=True)
        tokens = slice(-shape[0] * shape[1], None)
        activation, grad = (x[0, tokens].detach() for x in (kept[0], grad))
        cams.append((activation * grad.mean(0)).sum(-1).relu().view(shape))
    return cams, scores.found()


def check_brightest(drawn, cam):
    """The map that is drawn is the smooth enlargement of another one."""
    drawn = np.array(drawn)
    assert drawn.min() >= 0 and 0.9 < drawn.max() <= 1
    place = np.unravel_index(drawn.argmax(), drawn.shape)
    expected = np.unravel_index(cam.argmax().item(), cam.shape)
    cell = np.array(drawn.shape) / cam.shape
    assert np.all(np.abs(np.array(place) / cell - 0.5 - expected) <= 1)


@pytest.mark.parametrize('kind', models.KINDS)
def test_cam(run, tmp_path, image, kind):
    pytest.importorskip('pytorch_grad_cam')
    pytest.importorskip('mmdet')
    config = models.write_config(tmp_path, kind, kind)
    weights = save_weights(config, tmp_path / 'whole.pth')
    layer = 'backbone.stages.1.blocks.1.norm1'
    cams, _ = grad_cam(config, weights, image, layer)
    category = next(i for i, cam in enumerate(cams) if cam.max() > 0)
    written = run(
        *('cam', config, '--checkpoint', weights, '--category', category),
        *('--method', 'grad-cam', 'score-cam'),
    )
    (model,) = models.read_json(written['square_cam.json'])['models']
    assert model['layer'] == layer and model['category'] == category
    names = dict(segmentor='abcd', retinanet='xyz', faster='xyz')
    # those of ImageNet, of which the miniature has three
    names = names.get(kind, ('tench, Tinca tinca', 'goldfish, Carassius auratus'))
    assert category >= len(names) or model['class_name'] == names[category]
    check_brightest(model['maps']['grad-cam'], cams[category])
    assert np.shape(model['maps']['score-cam']) == (64, 96)


def test_cam_of_a_class_token(run, tmp_path, image):
    pytest.importorskip('pytorch_grad_cam')
    config = models.write_config(tmp_path, 'vit', backbone=VIT)
    weights = save_weights(config, tmp_path / 'vit.pth')
    layer = 'backbone.blocks.2.norm1'
    cams, found = grad_cam(config, weights, image, layer)
    written = run('cam', config, '--checkpoint', weights)
    (model,) = models.read_json(written['square_cam.json'])['models']
    assert (model['layer'], model['category']) == (layer, found)
    check_brightest(model['maps']['grad-cam'], cams[found])


def test_backbone_weights_start_a_whole_model(run, fails, tmp_path):
    """They will do for attention maps, and not for predictions."""
    pytest.importorskip('mmdet')
    config = models.write_config(tmp_path, 'retinanet', 'retinanet')
    weights = save_weights(config, tmp_path / 'backbone.pth', whole=False)
    line = fails('compare_predictions', config, '--checkpoint', weights)
    assert 'backbone.pth' in line and 'it lacks neck.' in line
    run('frequency_report', config, '--checkpoint', weights)


@pytest.mark.parametrize('name', NAMES)
def test_bad_input(fails, tmp_path, image, name):
    pytest.importorskip('mmpretrain')
    if name == 'cam':
        pytest.importorskip('pytorch_grad_cam')
    config = models.write_config(tmp_path, 'soft')
    tool = f'{Path(sys.argv[0]).name}: error: '

    line = fails(name, 'nowhere.py')
    assert line == f"{tool}config='nowhere.py': there is no such file"
    line = fails(name, config, '--image', 'nowhere.png')
    assert line == f"{tool}image='nowhere.png': there is no such file or folder"
    line = fails(name, config, '--image', config)
    assert f'image={config!r} is not an image' in line and 'PNG' in line
    (tmp_path / 'empty').mkdir()
    assert 'has no image' in fails(name, config, '--image', tmp_path / 'empty')
    line = fails(name, config, '--checkpoint', 'nowhere.pth')
    assert line == f"{tool}checkpoint='nowhere.pth': there is no such file"
    line = fails(name, config, config, '--checkpoint', 'none')
    assert '--checkpoint takes one value for each config, 2, got 1' in line
    assert '--device nowhere' in fails(name, config, '--device', 'nowhere')

    other = models.write_config(tmp_path, 'vit', backbone=VIT)
    weights = save_weights(other, tmp_path / 'vit.pth')
    line = fails(name, config, '--checkpoint', weights)
    assert weights in line and 'it lacks backbone.stages' in line

    text = tmp_path / 'text.pth'
    text.write_text('no weights')
    line = fails(name, config, '--checkpoint', text)
    assert f"checkpoint='{text}'" in line

    if name != 'compare_predictions':
        resnet = Path(models.write_config(tmp_path, 'resnet'))
        text = resnet.read_text().replace(SOFT, "dict(type='ResNet', depth=18")
        resnet.write_text(text.replace(", out_type='avg_featmap'", ''))
        line = fails(name, resnet)
        assert 'resnet' in line.lower() and 'of mmlinattn' in line


def test_figures_replace_their_own_alone(run, tmp_path, capsys):
    config = models.write_config(tmp_path, 'soft')
    written = run('attention_heatmap', config, '--svg')
    before = written['square_attention.json'].read_text()
    written = run('attention_heatmap', config, '--svg', '--at', '0,0')
    assert written['square_attention.json'].read_text() != before
    for path in written.values():
        mine = path.read_bytes()
        path.write_bytes(b'mine')
        with pytest.raises(SystemExit) as stop:
            run('attention_heatmap', config, '--svg')
        assert stop.value.code == 2 and path.read_bytes() == b'mine'
        assert f'{path} exists: give --overwrite' in capsys.readouterr().err
        path.write_bytes(mine)
    written['square_attention.json'].write_text('mine')
    run('attention_heatmap', config, '--overwrite')


def test_hostile_images(run, fails, tmp_path, monkeypatch):
    config = models.write_config(tmp_path, 'soft')
    bomb = models.write_image(tmp_path / 'bomb.png', 300, 200)
    run('attention_heatmap', config, '--image', bomb)
    thin = models.write_image(tmp_path / 'thin.png', 1, 2000)
    run('attention_heatmap', config, '--image', thin)
    shutil.rmtree(tmp_path / 'out')
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 20_000)
    line = fails('attention_heatmap', config, '--image', bomb)
    assert f'image={str(bomb)!r} has too many pixels' in line


def test_weights_that_are_nan(fails, tmp_path):
    config = models.write_config(tmp_path, 'soft')
    model = load_model(read_model_config(config))
    torch.nn.init.constant_(model.backbone.stages[0].blocks[0].attn.proj.weight, np.nan)
    torch.save(model.state_dict(), tmp_path / 'nan.pth')
    line = fails('attention_heatmap', config, '--checkpoint', tmp_path / 'nan.pth')
    assert 'attention of stages.1.blocks.0 has NaN or infinite weights' in line


def test_layers_and_heads_that_do_not_exist(fails, tmp_path):
    pytest.importorskip('mmpretrain')
    config = models.write_config(tmp_path, 'soft')
    line = fails('attention_heatmap', config, '--layers', 'stages.7')
    assert '--layers stages.7' in line and 'stages.1.blocks.1' in line
    assert '--layers 3' in fails('attention_heatmap', config, '--layers', '3')
    line = fails('attention_heatmap', config, '--heads', '2')
    assert '--heads 2' in line and "0 to 1, 'all' or 'mean'" in line
    line = fails('attention_heatmap', config, '--at', '2,0')
    assert "'2,0' is not X,Y" in line


def test_models_of_another_kind(fails, tmp_path):
    pytest.importorskip('mmpretrain')
    vit = models.write_config(tmp_path, 'vit', backbone=VIT)
    line = fails('pinv_report', vit)
    assert 'vit.py' in line and 'no SoftmaxFreeAttention, only SoftmaxAttention' in line
    line = fails('compare_predictions', vit)
    assert 'ImageClassifier is neither a detector nor a segmentor' in line


def test_cam_of_what_does_not_exist(fails, tmp_path):
    pytest.importorskip('pytorch_grad_cam')
    config = models.write_config(tmp_path, 'soft')
    line = fails('cam', config, '--layer', 'backbone.nowhere')
    assert '--layer backbone.nowhere' in line and 'blocks.1' in line
    assert 'is no map' in fails('cam', config, '--layer', 'head.fc')
    line = fails('cam', config, '--category', '3')
    assert '--category 3' in line and 'classes 0 to 2' in line


def test_without_grad_cam(fails, tmp_path, monkeypatch):
    config = models.write_config(tmp_path, 'soft')
    monkeypatch.setitem(sys.modules, 'pytorch_grad_cam', None)
    assert 'pip install grad-cam' in fails('cam', config)


@pytest.mark.parametrize('name', NAMES)
def test_help(name, capsys):
    with pytest.raises(SystemExit) as stop:
        models.load_tool(name).main(['--help'])
    printed = capsys.readouterr().out
    assert stop.value.code == 0
    assert f'python tools/analysis_tools/{name}.py' in printed
