import json
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest
from mmengine.config import DictAction

from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def quickstart(load_tool):
    return load_tool('misc/quickstart.py')


@pytest.fixture
def titles(quickstart, monkeypatch):
    """Of the commands that would have been run; they leave what they make."""
    ran = []

    def run(title, *command, log):
        ran.append(title)
        if title == 'Data: shapes in the COCO layout':
            return
        folder = command[command.index('--work-dir') + 1]
        (folder / '2026' / 'pictures').mkdir(parents=True)
        (folder / 'last_checkpoint').write_text('epoch_4.pth')
        names = [
            f'coco/{x}_mAP{y}' for x in ('bbox', 'segm') for y in ('', '_50', '_75')
        ]
        (folder / '2026' / '2026.json').write_text(
            json.dumps(dict.fromkeys(names, 0.5))
        )

    monkeypatch.setattr(quickstart, 'run', run)
    return ran


def test_second_run_replaces_the_first_and_nothing_else(
    quickstart, titles, tmp_path, capsys
):
    quickstart.main(['--out', str(tmp_path)])
    (tmp_path / 'train' / 'epoch_1.pth').touch()
    (tmp_path / 'notes.txt').touch()
    quickstart.main(['--out', str(tmp_path)])
    assert len(titles) == 6 and '0.500' in capsys.readouterr().out
    names = {'quickstart.json', 'notes.txt', *quickstart.RESULTS}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert not (tmp_path / 'train' / 'epoch_1.pth').exists()


def test_options_fit_the_config(quickstart, tmp_path):
    """Classes and colors are those of shapes wherever mmdet looks for them."""
    words = quickstart.cfg_options(tmp_path, quickstart.parse_args([]))
    parser = ArgumentParser()
    parser.add_argument('--cfg-options', nargs='+', action=DictAction)
    options = parser.parse_args(['--cfg-options', *words]).cfg_options
    cfg = load_config(str(ROOT / quickstart.CONFIG), options)
    for split in ('train', 'val', 'test'):
        metainfo = cfg[f'{split}_dataloader'].dataset.metainfo
        assert metainfo.classes == ['circle', 'square', 'triangle']
        assert len({tuple(color) for color in metainfo.palette}) == 3


def test_commands_are_logged(quickstart, tmp_path, capsys):
    code = 'import os; print("Epoch(", os.environ["OMP_WAIT_POLICY"]); print("more")'
    quickstart.run('title', sys.executable, '-c', code, log=tmp_path / 'log')
    assert 'more' in (tmp_path / 'log').read_text()
    assert 'Epoch( PASSIVE\n--' in capsys.readouterr().out
    with pytest.raises(SystemExit, match='title failed; the whole log is in'):
        quickstart.run('title', sys.executable, '-c', 'exit(1)', log=tmp_path / 'log')


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--size', '63'], '--size: must be 64 to 2048, got 63'),
        (['--epochs', '0'], '--epochs: must be 1 to'),
        (['--cfg-options', 'x'], "'x' is not KEY=VALUE"),
        (['--out', str(ROOT)], 'was not written by this tool'),
    ],
)
def test_bad_input(quickstart, titles, capsys, argv, message):
    with pytest.raises(SystemExit) as stop:
        quickstart.main(argv)
    assert stop.value.code == 2 and not titles
    assert message in capsys.readouterr().err
