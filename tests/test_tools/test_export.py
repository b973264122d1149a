"""tools/deployment/export.py: models of three libraries in files of three formats."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern
ROOT = Path(__file__).parents[2]
SOFT = ROOT / 'configs/soft'
SMALL = (
    'dict(_delete_=True, embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], '
    'num_heads=[1, 2, 3, 4])'
)
CONFIGS = {
    'detector': f"""
_base_ = {str(SOFT / 'retinanet_softpp-t_fpn_1x_coco.py')!r}
model = dict(
    backbone=dict(arch={SMALL}),
    neck=dict(in_channels=[16, 24, 32], out_channels=8),
    bbox_head=dict(in_channels=8, feat_channels=8, num_classes=3),
)
""",
    'segmentor': f"""
_base_ = {str(SOFT / 'upernet_softpp-t_1x_ade20k-512x512.py')!r}
model = dict(
    backbone=dict(arch={SMALL}),
    decode_head=dict(in_channels=[8, 16, 24, 32], channels=8, num_classes=3),
    auxiliary_head=dict(in_channels=24, channels=8, num_classes=3),
)
""",
    'classifier': f"""
_base_ = {str(SOFT / 'softpp-t_in1k.py')!r}
model = dict(backbone=dict(arch={SMALL}), head=dict(in_channels=32, num_classes=3))
""",
    'mask-rcnn': f"""
_base_ = {str(SOFT / 'mask-rcnn_softpp-t_fpn_1x_coco.py')!r}
model = dict(
    backbone=dict(arch={SMALL}),
    neck=dict(in_channels=[8, 16, 24, 32], out_channels=8),
    rpn_head=dict(in_channels=8, feat_channels=8),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=8),
        bbox_head=dict(in_channels=8, fc_out_channels=8),
        mask_roi_extractor=dict(out_channels=8),
        mask_head=dict(in_channels=8, conv_out_channels=8, num_convs=1),
    ),
)
""",
}
LIBRARIES = dict(
    detector='mmdet',
    segmentor='mmseg',
    classifier='mmpretrain',
    **{'mask-rcnn': 'mmdet'},
)
OUTPUTS = dict(
    detector=[f'{kind}_{i}' for kind in ('cls_scores', 'bbox_preds') for i in range(5)],
    segmentor=['logits'],
    classifier=['logits'],
)

spec = importlib.util.spec_from_file_location(
    'tool_export', ROOT / 'tools/deployment/export.py'
)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def build(path):
    cfg = load_config(str(path))
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model = MODELS.build(cfg.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Paths of the config and of the weights of a small model."""
    monkeypatch.chdir(tmp_path)

    def make(task):
        pytest.importorskip(LIBRARIES[task])
        config = tmp_path / f'{task}.py'
        config.write_text(CONFIGS[task])
        torch.save(dict(state_dict=build(config).state_dict()), 'weights.pth')
        return [str(config), 'weights.pth']

    return make


def printed_differences(text):
    return {k: float(v) for k, v in re.findall(r'^  (\S+): (\S+)$', text, re.M)}


@pytest.mark.parametrize(
    'format',
    [
        # the one that only a new torch has
        pytest.param(x, marks=() if x == 'export' else pytest.mark.modern_full)
        for x in tool.FORMATS
    ],
)
@pytest.mark.parametrize('task', OUTPUTS)
def test_parity_at_another_size(task, format, inputs, capsys):
    if format == 'onnx':
        pytest.importorskip('onnxruntime')
    if format == 'export' and not hasattr(torch.compiler, 'is_exporting'):
        pytest.skip('needs torch 2.7')
    options = ['--format', format, '--verify', '129', '161']
    if not tool.FORMATS[format].any_size:
        options += ['--shape', '129', '161']
    tool.main([*inputs(task), *options])
    printed = capsys.readouterr().out
    differences = printed_differences(printed)
    assert list(differences) == OUTPUTS[task]
    assert max(differences.values()) <= 1e-4
    suffix = tool.FORMATS[format].suffix
    assert printed.startswith(f'{task}{suffix}: ') and '129 x 161' in printed
    assert {path.name for path in Path().iterdir()} == {
        f'{task}.py',
        f'{task}{suffix}',
        'weights.pth',
    }


def test_the_file_says_how_to_prepare_images(inputs):
    onnx = pytest.importorskip('onnx')
    tool.main([*inputs('classifier'), '--out', 'new/model.onnx'])
    noted = {x.key: x.value for x in onnx.load('new/model.onnx').metadata_props}
    cfg = load_config('classifier.py')
    assert json.loads(noted['notes'])['mean'] == cfg.data_preprocessor.mean


def test_only_the_backbone_of_mask_rcnn(inputs, capsys):
    paths = [*inputs('mask-rcnn'), '--format', 'torchscript']
    with pytest.raises(SystemExit):
        tool.main(paths)
    assert 'has a roi_head' in capsys.readouterr().err
    assert not Path('mask-rcnn.pt').exists()
    tool.main([*paths, '--backbone-only', '--verify'])
    assert len(printed_differences(capsys.readouterr().out)) == 4


def test_int8(inputs, capsys):
    onnx = pytest.importorskip('onnx')
    pytest.importorskip('onnxruntime')
    tool.main([*inputs('classifier'), '--int8', '--verify'])
    (difference,) = printed_differences(capsys.readouterr().out).values()
    assert 1e-4 < difference < 1
    weights = onnx.load('classifier.onnx').graph.initializer
    assert any(x.data_type == onnx.TensorProto.INT8 for x in weights)
    assert not list(Path().glob('*float32*'))


@pytest.mark.parametrize('difference', (0.01, float('inf'), float('nan')))
def test_a_file_that_differs(difference, inputs, capsys, monkeypatch):
    monkeypatch.setattr(tool, 'parity', lambda *args: dict(logits=difference))
    with pytest.raises(SystemExit) as stopped:
        tool.main([*inputs('classifier'), '--format=torchscript', '--verify'])
    assert stopped.value.code == 1
    assert 'more than --tolerance 0.0001' in capsys.readouterr().err


WRONG = {
    'config': (['nowhere.py', 'weights.pth'], 'nowhere.py'),
    'checkpoint': (['{config}', 'nowhere.pth'], "'nowhere.pth'"),
    'no-checkpoint': (['{config}', '{config}'], 'is no file of torch.save'),
    'other-model': (
        ['{config}', 'other.pth'],
        "'other.pth' is of another model: .*lacks",
    ),
    'more-keys': (['{config}', 'more.pth'], "has 1 more keys, such as 'new'"),
    'shapes': (['{config}', 'shapes.pth'], 'another model: .*size mismatch'),
    'option': (['{config}', 'weights.pth', '--cfg-options', 'modle.x=1'], "'model'"),
    'over-config': (['{config}', 'weights.pth', '--out', '{config}'], '--overwrite'),
    'over-weights': (['{config}', 'weights.pth', '--out', 'more.pth'], '--overwrite'),
    'format': (['{config}', 'weights.pth', '--format', 'caffe'], 'invalid choice'),
    'shape': (['{config}', 'weights.pth', '--shape', '16', '16'], 'from 32'),
    'verify': (['{config}', 'weights.pth', '--verify', '64'], 'takes H and W'),
    'int8': (
        ['{config}', 'weights.pth', '--int8', '--format=export'],
        'needs --format',
    ),
}


@pytest.mark.parametrize('case', WRONG)
def test_wrong_input(case, inputs, capsys):
    config, weights = inputs('classifier')
    state_dict = torch.load(weights)['state_dict']
    torch.save({'x': torch.ones(1)}, 'other.pth')
    torch.save({**state_dict, 'new': torch.ones(1)}, 'more.pth')
    torch.save({**state_dict, 'head.fc.bias': torch.ones(7)}, 'shapes.pth')
    before = {path: path.read_bytes() for path in Path().iterdir()}
    arguments, message = WRONG[case]
    with pytest.raises(SystemExit) as stopped:
        tool.main([x.format(config=config) for x in arguments])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1 and re.search(message, error)
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_draw_for_each_size(inputs, capsys, monkeypatch):
    changed = CONFIGS['classifier'].replace('arch=', "sampler='random', arch=")
    monkeypatch.setitem(CONFIGS, 'classifier', changed)
    with pytest.raises(SystemExit) as stopped:
        tool.main([*inputs('classifier'), '--format=torchscript'])
    assert stopped.value.code == 2
    assert "sampler='random'" in capsys.readouterr().err
    assert not list(Path().glob('*.pt'))


@pytest.mark.skipif(hasattr(torch.compiler, 'is_exporting'), reason='this torch can')
def test_an_old_torch(inputs, capsys):
    with pytest.raises(SystemExit):
        tool.main([*inputs('classifier'), '--format', 'export'])
    assert 'torch 2.7 or newer' in capsys.readouterr().err
