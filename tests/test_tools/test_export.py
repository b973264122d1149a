"""tools/deployment/export.py: models of three libraries in files of two formats."""

import json
import re
from pathlib import Path

import analysis_models as miniatures
import onnx
import pytest
import torch

from mmlinattn.commands import export as tool

OUTPUTS = dict(
    retinanet=[f'{kind}_{i}' for kind in ('cls_scores', 'bbox_preds') for i in (0, 1)],
    segmentor=['logits'],
    classifier=['logits'],
)


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Paths of the config and of the weights of a small model."""
    monkeypatch.chdir(tmp_path)

    def make(task):
        config = miniatures.write_config('', task, task, miniatures.QUICK)
        return [config, miniatures.save_weights(config, 'weights.pth')]

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
def test_parity_at_another_size(task, format, inputs, capsys, error_of):
    shape = ['96', '96'] if tool.FORMATS[format].any_size else ['129', '161']
    arguments = [*inputs(task), '--format', format, '--verify', '--shape', *shape]
    if format == 'export' and not hasattr(torch.compiler, 'is_exporting'):
        assert 'torch 2.7 or newer' in error_of(tool.main, arguments)
        return
    tool.main(arguments)
    printed = capsys.readouterr().out
    differences = printed_differences(printed)
    assert list(differences) == OUTPUTS[task]
    assert max(differences.values()) <= 1e-4
    suffix = tool.FORMATS[format].suffix
    assert f'\n{task}{suffix}: ' in printed and '129 x 161' in printed
    stages = re.findall(r'^([a-z ]+): \d+\.\d s$', printed, re.M)
    assert stages == [
        *('read config and weights', 'run the model once'),
        *('write the file', 'open the file'),
    ]
    files = {f'{task}.py', f'{task}{suffix}', 'weights.pth'}
    assert {path.name for path in Path().iterdir()} == files


@pytest.mark.parametrize('task', OUTPUTS)
def test_half_precision(task, inputs, capsys):
    paths = inputs(task)
    tool.main(paths)
    tool.main(
        [*paths, '--half', '--out', 'half.onnx', '--verify', '--shape', '96', '96']
    )
    printed = capsys.readouterr().out
    assert 1e-5 < max(printed_differences(printed).values()) < 1e-2
    assert 'halve the precision: ' in printed and '(0.01 is allowed)' in printed
    single, half = onnx.load(f'{task}.onnx').graph, onnx.load('half.onnx').graph
    assert (single.input, single.output) == (half.input, half.output)
    kinds = {x.name: x.data_type for x in half.initializer}
    assert onnx.TensorProto.FLOAT16 in kinds.values()
    assert all(
        name.endswith('_half') == (kind == onnx.TensorProto.FLOAT16)
        for name, kind in kinds.items()
    )


def test_notes(inputs):
    paths = inputs('classifier')
    tool.main([*paths, '--out', 'new/model.onnx'])
    file = onnx.load('new/model.onnx')
    noted = {x.key: x.value for x in file.metadata_props}
    assert json.loads(noted['notes']) == dict(mean=[120] * 3, std=[60] * 3, to_rgb=True)


def test_only_the_backbone_of_a_two_stage_detector(inputs, capsys, error_of):
    paths = inputs('faster')
    assert 'has a roi_head' in error_of(tool.main, paths)
    assert not Path('faster.onnx').exists()
    tool.main([*paths, '--backbone-only', '--verify'])
    assert len(printed_differences(capsys.readouterr().out)) == 2


@pytest.mark.parametrize('difference', (0.01, float('inf'), float('nan')))
def test_a_file_that_differs(difference, inputs, monkeypatch):
    monkeypatch.setattr(tool, 'parity', lambda *args: dict(logits=difference))
    arguments = [*inputs('classifier'), '--verify']
    with pytest.raises(SystemExit, match='more than --tolerance 0.0001'):
        tool.main(arguments)


@pytest.mark.parametrize(
    'checkpoint, options, message',
    [
        ('nowhere.pth', [], "'nowhere.pth'"),
        ('classifier.py', [], 'is not a file of torch.save'),
        ('other.pth', [], "'other.pth' is not from this ImageClassifier: .* missing"),
        ('weights.pth', ['--cfg-options', 'defualt_scope=x'], "'default_scope'"),
        ('weights.pth', ['--out', 'other.pth'], '--overwrite'),
        ('weights.pth', ['--shape', '16', '16'], 'must be 32 to'),
        ('weights.pth', ['--half', '--format', 'export'], '--half needs --format onnx'),
    ],
)
def test_wrong_input(checkpoint, options, message, inputs, error_of):
    config, _ = inputs('classifier')
    torch.save({'x': torch.ones(1)}, 'other.pth')
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert re.search(message, error_of(tool.main, [config, checkpoint, *options]))
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
