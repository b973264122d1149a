"""What benchmarks/int8.py compares."""

import importlib
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
ARCH = dict(embed_dims=[16, 32, 64, 64], depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 4])


@pytest.fixture
def int8(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module('int8')


def test_forms_of_a_backbone(int8, tmp_path):
    pytest.importorskip('onnxruntime')
    backbone = MODELS.build(dict(type='mmlinattn.SOFTPlusPlus', arch=ARCH)).eval()
    forms = int8.forms_of(backbone, tmp_path, (64, 64))
    for name, (form, size) in forms.items():
        compared = int8.Compared(form, backbone)
        with torch.no_grad():
            compared(torch.randn(1, 3, 64, 96))
        errors = compared.errors()
        assert len(errors) == 4 and max(errors) < 0.5
        assert (max(errors) > 1e-4) == ('int8' in name)
        if 'int8' in name:
            assert size < forms[name.replace('int8', 'float32')][1]
    assert int8.costs_of(forms, (64, 64), rounds=2).keys() == forms.keys()


def test_errors_are_of_all_images(int8):
    compared = int8.Compared(lambda x: (x, 1.5 * x), lambda x: (x, x))
    for value in (1, 3):
        compared(torch.full((1, 2), float(value)))
    assert compared.errors() == pytest.approx([0, 0.5])


@pytest.mark.parametrize(
    'options, message',
    [
        (['config.py', '--rounds', '0'], '--rounds must be at least 1, got 0'),
        (['nowhere.py'], 'nowhere.py'),
    ],
)
def test_bad_input(int8, capsys, options, message):
    with pytest.raises(SystemExit) as stop:
        int8.main(options)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1
