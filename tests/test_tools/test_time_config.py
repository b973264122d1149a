"""Time and memory of a person's config, beside Swin-T in the place of its backbone."""

import json

import analysis_models as models
import pytest
import torch

from mmlinattn.commands import time_config
from mmlinattn.engine.preflight import build_model
from mmlinattn.runs import step_time
from mmlinattn.runs.step_time import Peak, TimedModel, Variant
from mmlinattn.utils import load_config, measuring

pytestmark = pytest.mark.openmmlab

TRAIN = """
step = dict(type='Resize', scale=(64, 64))
pipeline = [dict(type='LoadImageFromFile'), step, dict(type='PackInputs')]
loader = dict(
    num_workers=2, persistent_workers=True, batch_size=3,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='CustomDataset', data_prefix={folder!r}, pipeline=pipeline),
)
train_dataloader = test_dataloader = loader
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.5))
"""


@pytest.fixture
def config(tmp_path):
    """The path of a classifier's config, with data of four photos."""
    for i in range(4):
        models.write_image(tmp_path / f'photos/{"xyz"[i % 3]}/{i}.png')
    path = models.write_config(tmp_path, 'classifier', 'classifier')
    with open(path, 'a', encoding='utf-8') as file:
        file.write(TRAIN.format(folder=str(tmp_path / 'photos')))
    return path


@pytest.fixture
def without_process(monkeypatch):
    """Memory is not measured."""
    monkeypatch.setattr(time_config, 'measure_peak', lambda *args: Peak(None, 2**21))


def test_table(config, tmp_path, without_process, capsys):
    weights = models.save_weights(config, tmp_path / 'w.pth')
    out = tmp_path / 'times.json'
    argv = config, '--checkpoint', weights, '--rounds', '2', '--out', str(out)
    time_config.main(argv)
    printed = capsys.readouterr().out
    assert 'a photo of 64 x 64; training with 3 photos' in printed
    untrained, swin, trained = json.loads(out.read_text())['models']
    assert swin['model'] == 'with Swin-T' and 'with Swin-T' in printed
    assert swin['parameters'] > 27e6 > trained['parameters'] == untrained['parameters']
    for row in (untrained, swin, trained):
        assert row['predict'] > 0 and row['train'] > 0
        assert row['predict_memory'] is None and row['train_memory'] == 2**21


def test_training_steps_leave_the_weights(config):
    model = TimedModel(Variant('', config), 'cpu')
    before = {name: x.clone() for name, x in model.model.named_parameters()}
    (group,) = model.optimizer.optimizer.param_groups
    for rate in (group['lr'], 0.5):
        group['lr'] = rate
        assert model.train() > 0 and model.predict() > 0
        same = [(x == before[key]).all() for key, x in model.model.named_parameters()]
        assert all(same) is (rate == 0)


@pytest.mark.parametrize('kind', [*models.KINDS])
def test_swin_takes_the_place_of_the_backbone(kind, tmp_path):
    """The model runs, and what follows the backbone's maps stays as it is."""
    path = models.write_config(tmp_path, kind, kind)
    model = build_model(load_config(path))
    cfg = step_time.swin_in_place(load_config(path))
    swin = build_model(cfg).eval()
    assert type(swin.backbone).__name__ == 'SwinTransformer'
    with torch.no_grad():
        maps = swin.extract_feat(torch.zeros(1, 3, 64, 64))
        expected = model.extract_feat(torch.zeros(1, 3, 64, 64))
        if kind == 'classifier':
            assert swin.head(maps).shape == (1, 3)
        elif kind == 'segmentor':
            assert swin.decode_head(maps).shape == model.decode_head(expected).shape
        else:
            assert [x.shape for x in maps] == [x.shape for x in expected]


def test_other_strides_leave_swin_out(config, without_process, capsys):
    """The config itself is measured."""
    stem = dict(type='ResNet', depth=18, strides=(2, 2, 2, 2))
    with open(config, 'a', encoding='utf-8') as file:
        file.write(f"model['backbone'] = {stem}\n")
        file.write("model['neck'] = dict(type='GlobalAveragePooling')\n")
        file.write("model['head']['in_channels'] = 512\n")
    time_config.main([config, '--rounds', '1'])
    printed = capsys.readouterr()
    reason = 'Swin-T is not measured: model.backbone has maps of strides [64]'
    assert reason in printed.err
    assert 'untrained' in printed.out and 'with Swin-T' not in printed.out


def test_bad_input(config, tmp_path, error_of):
    (tmp_path / 'photos').rename(tmp_path / 'moved')
    line = error_of(time_config.main, [config])
    assert 'test_dataloader' in line and str(tmp_path / 'photos') in line


@pytest.mark.full
def test_memory_is_that_of_a_process_of_its_own(config):
    peak = step_time.measure_peak(Variant('', config), 'cpu')
    assert peak.predict is None or peak.predict >= 0
    assert peak.train is None or peak.train > 0


def test_what_a_step_takes(monkeypatch):
    """40 MiB are found within a tenth."""
    if not measuring.RESET.exists():
        pytest.skip('measured on Linux alone')
    taken = measuring.peak_bytes(lambda: torch.ones(10 * 2**20).sum(), 'cpu')
    assert taken == pytest.approx(40 * 2**20, rel=0.1)
