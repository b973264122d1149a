import pytest
from mmengine.config import DictAction
from small_configs import draw_shapes

from mmlinattn.commands import new_config, quickstart
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab


@pytest.fixture
def titles(monkeypatch):
    """Titles of the commands, which are not run but leave their results."""
    ran = []

    def run(title, *command):
        ran.append(title)
        for option in ('--work-dir', '--show-dir'):
            if option in command:
                folder = command[command.index(option) + 1]
                folder.mkdir(parents=True)
                (folder / 'last_checkpoint').write_text('epoch_4.pth')

    monkeypatch.setattr(quickstart, 'run', run)
    return ran


def test_second_run_replaces_the_first_and_nothing_else(titles, tmp_path, capsys):
    quickstart.main(['--out', str(tmp_path)])
    (tmp_path / 'train' / 'epoch_1.pth').touch()
    (tmp_path / 'notes.txt').touch()
    quickstart.main(['--out', str(tmp_path)])
    assert len(titles) == 8 and 'epoch_4.pth' in capsys.readouterr().out
    names = {'quickstart.json', 'notes.txt', *quickstart.RESULTS}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert not (tmp_path / 'train' / 'epoch_1.pth').exists()


def test_options_are_of_the_config(titles, tmp_path):
    """The config that it has written takes them."""
    folder = tmp_path / 'coco'
    draw_shapes('shapes', folder, 5)
    config = tmp_path / 'shapes.py'
    argv = ['--data', f'{folder}', '--task', 'det', '--backbone', 'softpp-t']
    new_config.main([*argv, '--no-estimate', '--out', f'{config}'])
    options = dict(option.split('=') for option in quickstart.SIMPLE)
    options = {
        key: DictAction._parse_int_float_bool(value) for key, value in options.items()
    }
    after = load_config(f'{config}', options)
    assert after.model.roi_head.mask_head.num_classes == 3
    assert after.train_dataloader.dataset.metainfo.classes == (
        *('circle', 'square', 'triangle'),
    )
