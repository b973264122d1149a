"""What benchmarks/int8.py compares."""

import importlib
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'
ARCH = dict(embed_dims=[16, 32, 64, 64], depths=[1, 1, 1, 1], num_heads=[1, 2, 4, 4])


@pytest.fixture
def int8(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module('int8')


@pytest.mark.parametrize('kind', ('SOFT', 'SOFTPlusPlus'))
def test_forms_of_a_backbone(int8, kind, tmp_path):
    pytest.importorskip('onnxruntime')
    backbone = MODELS.build(dict(type=f'mmlinattn.{kind}', arch=ARCH)).eval()
    forms = int8.forms_of(backbone, tmp_path, (64, 64))
    x = torch.randn(1, 3, 64, 96)
    for name, (form, size) in forms.items():
        compared = int8.Compared(form, backbone)
        with torch.no_grad():
            compared(x)
        errors = compared.errors()
        assert len(errors) == 4 and max(errors) < 0.5
        if 'int8' in name:
            assert max(errors) > 1e-4
            assert size < forms[name.replace('int8', 'float32')][1]
        else:
            assert max(errors) < 1e-4
    costs = int8.costs_of(forms, (64, 64), rounds=2)
    assert costs.keys() == forms.keys()


def test_errors_are_of_all_images(int8):
    class Maps(nn.Module):
        def __init__(self, factors):
            super().__init__()
            self.factors = factors

        def forward(self, x):
            return tuple(factor * x for factor in self.factors)

    compared = int8.Compared(Maps((1, 1.5)), Maps((1, 1)))
    for value in (1, 3):
        compared(torch.full((1, 2), float(value)))
    assert compared.errors() == pytest.approx([0, 0.5])


def test_wrong_numbers(int8, capsys):
    with pytest.raises(SystemExit) as stop:
        int8.main(['config.py', '--rounds', '0'])
    assert stop.value.code == 2
    assert '--rounds must be at least 1, got 0' in capsys.readouterr().err


def test_a_config_that_is_not_there(int8, capsys):
    with pytest.raises(SystemExit) as stop:
        int8.main(['nowhere.py'])
    assert stop.value.code == 2
    line = capsys.readouterr().err
    assert 'nowhere.py' in line and line.count('\n') == 1
