"""tools/misc/dump_configs.py: dumps of resolved configs, and their comparison."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.modern

TOOL = Path(__file__).parents[2] / 'tools' / 'misc' / 'dump_configs.py'

BASES = {
    '_base_/models/net.py': 'model = dict(width=8, heads=[dict(k=1), dict(k=2)])\n',
    'a/net_small.py': "_base_ = '../_base_/models/net.py'\nsize = (3, 4)\n",
    'a/net_large.py': "_base_ = './net_small.py'\nmodel = dict(width=16)\n",
    'b/other.py': 'scale = 0.5\n',
}


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the tool; returns its exit code and what it printed, or its error."""
    spec = importlib.util.spec_from_file_location('dump_configs', TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    def call(*args):
        monkeypatch.setattr(sys, 'argv', ['dump_configs.py', *map(str, args)])
        code = 0
        try:
            tool.main()
        except SystemExit as done:
            code = done.code
        printed = capsys.readouterr()
        if code in (0, 1):
            return code, printed.out
        # the error goes to stderr here or in the interpreter
        return 2, f'{printed.err}{code}'

    return call


@pytest.fixture
def configs(tmp_path):
    """Writes configs, with changes, and returns their folder."""

    def write(name, **changes):
        for path, text in {**BASES, **changes}.items():
            if text:
                file = tmp_path / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        return tmp_path / name

    return write


@pytest.fixture
def dump(run, configs, tmp_path):
    """Dumps configs with changes, and returns the folder of the dump."""

    def make(name, **changes):
        out = tmp_path / f'dump_{name}'
        code, text = run('write', out, '--configs', configs(name, **changes))
        assert code == 0 and text == f'3 configs: {out}\n'
        return out

    return make


def test_alike(run, dump):
    before = dump('before')
    assert (before / 'a' / 'net_large.txt').read_text() == (
        "{'model': {'heads': [{'k': 1}, {'k': 2}], 'width': 16}, 'size': (3, 4)}\n"
    )
    # other files, in other words: nothing but the model's own file changed
    after = dump(
        'after',
        **{
            '_base_/models/net.py': 'model = dict(heads=[dict(k=1)], width=8)\n'
            'model["heads"].append(dict(k=2))\n',
            'a/net_small.py': "size = (3, 4)\n_base_ = '../_base_/models/net.py'\n",
        },
    )
    assert run('compare', before, after) == (0, '3 configs, all alike\n')


def test_differences(run, dump):
    before = dump('before')
    after = dump(
        'after',
        **{
            '_base_/models/net.py': 'model = dict(width=8, heads=[dict(k=1), dict()])\n'
            'extra = True\n',
            'b/other.py': 'scale = [0.5]\n',
        },
    )
    code, text = run('compare', before, after)
    assert code == 1
    assert text.split('\n\n') == [
        '  extra\n+ True\n  in 2: a/net_large, a/net_small',
        '  model.heads.1.k\n- 2\n  in 2: a/net_large, a/net_small',
        '  scale\n- 0.5\n+ [0.5]\n  in 1: b/other\n',
    ]


@pytest.mark.parametrize(
    'text, shown',
    [
        ('(0.5,)', '- [0.5]\n+ (0.5,)'),
        ('[0.5, 1]', '- [0.5]\n+ [0.5, 1]'),
        ('[1]', '- 0.5\n+ 1'),
    ],
)
def test_values_in_lists(run, dump, text, shown):
    before = dump('before', **{'b/other.py': 'scale = [0.5]\n'})
    after = dump('after', **{'b/other.py': f'scale = {text}\n'})
    code, found = run('compare', before, after)
    assert code == 1 and shown in found


def test_true_is_not_one(run, dump):
    before = dump('before', **{'b/other.py': 'scale = 1\n'})
    after = dump('after', **{'b/other.py': 'scale = True\n'})
    assert run('compare', before, after)[0] == 1


def test_renamed(run, dump, tmp_path):
    before = dump('before')
    after = dump('after', **{'b/other.py': '', 'b/third.py': 'scale = 0.5\n'})
    code, text = run('compare', before, after)
    assert code == 1
    assert '- the whole config\n  in 1: b/other' in text
    assert '+ the whole config\n  in 1: b/third' in text
    renamed = 'compare', before, after, '--rename'
    assert run(*renamed, 'oth(.)r$', r'third')[0] == 0
    assert 'several configs' in run(*renamed, '.*', 'x')[1]
    assert 'no regular expression' in run(*renamed, '(', 'x')[1]


def test_bad_input(run, dump, configs, tmp_path):
    before = dump('before')
    folder = configs('before')
    _, said = run('write', before, '--configs', folder)
    assert 'must be a new or an empty folder' in said
    _, said = run('write', tmp_path / 'new', '--configs', tmp_path / 'nowhere')
    assert "nowhere': there are no configs" in said
    (folder / 'b' / 'other.py').write_text("_base_ = './missing.py'\n")
    _, said = run('write', tmp_path / 'new', '--configs', folder)
    assert 'other.py: FileNotFoundError' in said
    _, said = run('compare', before, tmp_path / 'nowhere')
    assert 'dump_configs.py: error: AFTER=' in said
    (before / 'b' / 'other.txt').write_text('__import__("os")')
    _, said = run('compare', before, before)
    assert 'is no file of a dump' in said


def test_help():
    out = subprocess.run(
        [sys.executable, TOOL, 'write', '--help'],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert '--configs' in out
