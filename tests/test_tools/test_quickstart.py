import importlib.util
import json
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest
from mmengine.config import DictAction

from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def quickstart():
    path = ROOT / 'tools' / 'misc' / 'quickstart.py'
    spec = importlib.util.spec_from_file_location('quickstart', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def commands(quickstart, monkeypatch):
    """Stands in for the commands that quickstart runs, and remembers them."""
    titles = []

    def run(title, command, log):
        titles.append(title)
        log.write_text(title)
        if title == 'Training':
            folder = Path(command[command.index('--work-dir') + 1])
            folder.mkdir()
            (folder / 'last_checkpoint').write_text('epoch_4.pth')
        if title == 'Testing':
            folder = Path(command[command.index('--work-dir') + 1]) / '2026'
            (folder / 'pictures').mkdir(parents=True)
            (folder / 'pictures' / '1.png').touch()
            metrics = {
                f'coco/{kind}_mAP{suffix}': 0.5
                for kind in ('bbox', 'segm')
                for suffix in ('', '_50', '_75')
            }
            (folder / '2026.json').write_text(json.dumps(metrics))

    monkeypatch.setattr(quickstart, 'run', run)
    monkeypatch.setattr(quickstart, 'find_spec', lambda name: name)
    return titles


@pytest.mark.parametrize(
    'name', ['coco/x', 'train/x', 'test/x', 'predictions/x', 'train', 'x', 'coco.zip']
)
def test_data_of_others_is_left_alone(quickstart, commands, tmp_path, capsys, name):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text('mine')
    with pytest.raises(SystemExit) as stop:
        quickstart.main(['--out', str(tmp_path)])
    assert stop.value.code == 2 and not commands
    line = capsys.readouterr().err
    assert f'{tmp_path} is not an empty folder' in line and line.count('\n') == 1
    assert [x for x in tmp_path.rglob('*') if x.is_file()] == [mine]


def test_second_run_replaces_the_first(quickstart, commands, tmp_path, capsys):
    out = tmp_path / 'new'
    quickstart.main(['--out', str(out)])
    (out / 'train' / 'epoch_1.pth').touch()
    (out / 'coco').mkdir()
    (out / 'notes.txt').write_text('mine')
    quickstart.main(['--out', str(out)])
    assert len(commands) == 6 and '0.500' in capsys.readouterr().out
    assert {x.name for x in out.iterdir()} == {
        'quickstart.json',
        'notes.txt',
        'coco',
        *quickstart.RESULTS,
    }
    assert not (out / 'train' / 'epoch_1.pth').exists()


def test_shapes_have_their_own_names(quickstart, tmp_path):
    """Wherever mmdet looks for names and colors of classes."""
    args = quickstart.parse_args([])
    parser = ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    words = ['--cfg-options', *quickstart.cfg_options(tmp_path, args)]
    options = parser.parse_args(words).cfg_options
    cfg = load_config(str(ROOT / quickstart.CONFIG), options)
    for split in ('train', 'val', 'test'):
        metainfo = cfg[f'{split}_dataloader'].dataset.metainfo
        assert metainfo.classes == ['circle', 'square', 'triangle']
        assert len({tuple(color) for color in metainfo.palette}) == 3
    heads = cfg.model.roi_head
    assert heads.bbox_head.num_classes == heads.mask_head.num_classes == 3


@pytest.mark.parametrize('chosen, used', [(None, 'PASSIVE'), ('ACTIVE', 'ACTIVE')])
def test_threads_wait_asleep(quickstart, monkeypatch, tmp_path, chosen, used):
    monkeypatch.delenv('OMP_WAIT_POLICY', raising=False)
    if chosen:
        monkeypatch.setenv('OMP_WAIT_POLICY', chosen)
    code = 'import os; print(os.environ["OMP_WAIT_POLICY"])'
    quickstart.run('', [sys.executable, '-c', code], tmp_path / 'log')
    assert (tmp_path / 'log').read_text().strip() == used


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--size', '63'], '--size must be 64 to 2048, got 63'),
        (['--size', '100000'], '--size must be 64 to 2048, got 100000'),
        (['--size', 'big'], "invalid int value: 'big'"),
        (['--epochs', '0'], '--epochs must be at least 1, got 0'),
        (['--num-train', '-1'], '--num-train must be at least 1, got -1'),
        (['--num-val'], '--num-val: expected one argument'),
        (['--num-tain', '3'], 'unrecognized arguments: --num-tain 3'),
        (['--out', __file__], 'is a file, not a folder'),
        (['--out', f'{__file__}/x'], 'can not be written'),
    ],
)
def test_bad_input(quickstart, commands, capsys, argv, message):
    with pytest.raises(SystemExit) as stop:
        quickstart.main(argv)
    assert stop.value.code == 2 and not commands
    line = capsys.readouterr().err
    assert message in line and line.count('\n') == 1


def test_environment_without_the_libraries(quickstart, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(quickstart, 'find_spec', lambda name: None)
    with pytest.raises(SystemExit) as stop:
        quickstart.main(['--out', str(tmp_path / 'new')])
    assert stop.value.code == 2 and not (tmp_path / 'new').exists()
    assert 'mim and mmdet can not be imported' in capsys.readouterr().err
