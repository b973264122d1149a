"""tools/misc/dump_configs.py: dumps of resolved configs, and their comparison."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.modern
TOOL = Path(__file__).parents[2] / 'tools/misc/dump_configs.py'
spec = importlib.util.spec_from_file_location('dump_configs', TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

CONFIGS = {
    '_base_/models/net.py': 'model = dict(width=8, heads=[dict(k=1), dict(k=2)])\n',
    'a/small.py': "_base_ = '../_base_/models/net.py'\nsize = (3, 4)\nnone = []\n",
    'a/large.py': "_base_ = './small.py'\nmodel = dict(width=16)\n",
    'b/other.py': 'scale = 0.5\n',
}


@pytest.fixture
def dump(tmp_path):
    """Dumps configs with changes, and returns the folder of the dump."""

    def make(name, **changes):
        for path, text in {**CONFIGS, **changes}.items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        out = tmp_path / f'dump_{name}'
        tool.main(['write', str(out), '--configs', str(tmp_path / name)])
        return str(out)

    return make


def test_alike(dump, capsys):
    before = dump('before')
    assert Path(before, 'a/large.txt').read_text().splitlines() == [
        *('model.heads.0.k = 1', 'model.heads.1.k = 2', 'model.width = 16'),
        *('none = []', 'size = (3, 4)'),
    ]
    changed = 'model = dict(heads=[dict(k=1), dict(k=2)], width=8)\n'
    after = dump('after', **{'_base_/models/net.py': changed})
    tool.main(['compare', before, after])
    assert capsys.readouterr().out.endswith('3 configs, all alike\n')


def test_differences(dump, capsys):
    before = dump('before', **{'b/gone.py': 'x = 1\n'})
    after = dump(
        'after',
        **{
            '_base_/models/net.py': 'model = dict(width=True, heads=[dict(k=1)])\n',
            'b/other.py': 'scale = [0.5]\n',
        },
    )
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        tool.main(['compare', before, after])
    assert stop.value.code == 1
    assert capsys.readouterr().out.strip().split('\n\n') == [
        '- model.heads.1.k = 2\n  in 2: a/large, a/small',
        '- model.width = 8\n+ model.width = True\n  in 1: a/small',
        '- the whole config\n  in 1: b/gone',
        '- scale = 0.5\n  in 1: b/other',
        '+ scale.0 = 0.5\n  in 1: b/other',
    ]


def test_bad_input(dump, tmp_path, capsys):
    before = dump('before')
    folder, new, nowhere = (str(tmp_path / x) for x in ('before', 'new', 'nowhere'))
    Path(folder, 'b/other.py').write_text("_base_ = './missing.py'\n")
    Path(before, 'b/other.txt').write_text('no dump')
    for command, says in (
        (['write', before, '--configs', folder], 'must be a new or an empty folder'),
        (['write', new, '--configs', nowhere], "nowhere': there are no configs"),
        (['write', new, '--configs', folder], 'other.py: FileNotFoundError'),
        (['compare', before, nowhere], "AFTER='"),
        (['compare', before, before], 'other.txt is no file of a dump'),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            tool.main(command)
        assert stop.value.code == 2 and says in capsys.readouterr().err
