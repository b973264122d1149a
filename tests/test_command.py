"""The command ``mmlinattn``, and the scripts in tools/ that call it."""

import shlex
import subprocess
import sys
from importlib.util import find_spec

import pytest
from loading import ROOT, run_command

from mmlinattn import __main__ as command
from mmlinattn.cli import program
from mmlinattn.cli.verbs import MIM_VERBS, VERBS

SCRIPTS = {
    path.relative_to(ROOT / 'tools').as_posix(): path
    for path in (ROOT / 'tools').rglob('*.py')
}


def fails(*words):
    """The line of a command that ends with exit code 2."""
    done = subprocess.run(
        [sys.executable, '-m', 'mmlinattn', *words], capture_output=True, text=True
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    return line


def test_help_imports_no_library(run_python):
    """It has a line and an example of each command."""
    shown = run_python(
        'import sys\n'
        'from mmlinattn.__main__ import main\n'
        "main(['--help'])\n"
        "assert not {'torch', 'mmengine', 'numpy', 'mim'} & sys.modules.keys()\n"
    )
    for verb, known in VERBS.items():
        assert f'  {verb} ' in shown and known.line in shown
        assert f'$ mmlinattn {verb} {known.example}\n' in shown
    assert all(verb in shown for verb in MIM_VERBS)


def test_every_command_is_there():
    """Scripts in tools/ are few lines, and each calls a command."""
    for known in VERBS.values():
        assert find_spec(f'mmlinattn.commands.{known.module}')
    assert {known.script for known in VERBS.values()} == {*SCRIPTS}
    for verb, known in VERBS.items():
        if verb != 'predict':  # another one's script does it, too
            text = SCRIPTS[known.script].read_text('utf-8')
            assert f"main = command('{verb}')" in text and text.count('\n') < 20


@pytest.mark.parametrize(
    'words, line',
    [
        (['tarin', 'x.py'], "no command 'tarin': did you mean train?"),
        (['gridsaerch'], "no command 'gridsaerch': did you mean gridsearch?"),
        (['xyz'], "no command 'xyz': there are new-config, train, test, predict, "),
    ],
)
def test_a_misspelled_command(words, line):
    assert fails(*words).startswith(f'python -m mmlinattn: error: {line}')


def test_messages_have_the_name_of_the_command(monkeypatch, capsys):
    line = fails('train', 'none.py')
    assert line.startswith("python -m mmlinattn train: error: config='none.py': there")
    monkeypatch.setattr(sys, 'argv', ['/somewhere/bin/mmlinattn'])
    with pytest.raises(SystemExit, match='2'):
        command.main(['test', '--what'])
    assert capsys.readouterr().err.startswith('mmlinattn test: error: the following')


@pytest.mark.parametrize(
    'words, is_of_mim',
    [
        (['train', 'torch', 'mine.py'], True),
        (['train', '--gpus', '0', 'torch', 'mine.py'], True),
        (['test', 'torch', 'mine.py', '--checkpoint', 'x.pth'], True),
        (['run', 'mmlinattn', 'get_flops'], True),
        (['train', 'mine.py'], False),
        (['train', 'mine.py', '--work-dir', 'torch'], False),
        (['train', '--work-dir', 'torch', 'mine.py'], False),
        (['train', 'no-such-package', 'mine.py'], False),
        (['train'], False),
    ],
)
def test_verbs_of_mim(words, is_of_mim, monkeypatch):
    """A package that is installed goes first; a file of its name is a config."""

    class Ran(Exception):
        pass

    def run(kind):
        def call(*args):
            raise Ran(kind)

        return call

    monkeypatch.setattr(command, 'run_mim', run('mim'))
    monkeypatch.setattr(command, 'run', run('ours'))
    monkeypatch.setattr(sys, 'argv', ['mmlinattn'])
    with pytest.raises(Ran, match='mim' if is_of_mim else 'ours'):
        command.main(words)


def test_a_file_of_a_package_is_a_config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.names_package(['torch', 'mine.py'])
    (tmp_path / 'torch').touch()
    assert not command.names_package(['torch', 'mine.py'])


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """Whether a shell finds ``mmlinattn``, of this Python or of another one."""

    def put(own):
        folder = tmp_path / 'bin'
        folder.mkdir()
        (folder / 'mmlinattn').write_text('#!/bin/sh\n')
        (folder / 'mmlinattn').chmod(0o755)
        monkeypatch.setenv('PATH', str(folder))
        if own:
            monkeypatch.setattr(sys, 'executable', str(folder / 'python'))

    return put


@pytest.mark.parametrize('own', [True, False])
def test_the_next_command_of_the_command(own, on_path, monkeypatch):
    on_path(own)
    monkeypatch.setattr(sys, 'argv', ['mmlinattn train', 'mine.py'])
    start = ['mmlinattn'] if own else [sys.executable, '-m', 'mmlinattn']
    words = shlex.split(program.command('test', 'my config.py', 'best.pth'))
    assert words == [*start, 'test', 'my config.py', 'best.pth']
    *_, name, verb, config, option, launcher = shlex.split(
        program.train_on_gpus('mine.py', 2)
    )
    assert [name, verb, config, option, launcher] == [
        *('mmlinattn', 'train', 'mine.py', '--launcher', 'pytorch')
    ]


@pytest.mark.parametrize('script', ['train.py', 'misc/new_config.py'])
def test_the_next_command_of_a_script(script, on_path, tmp_path, monkeypatch):
    """It is a script of the same folder, whatever is installed."""
    on_path(True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', [str(ROOT / 'tools' / script)])
    _, path, *words = shlex.split(program.command('compare', 'mine.py'))
    tool = ROOT / 'tools/analysis_tools/compare_predictions.py'
    assert (tmp_path / path).samefile(tool) and words == ['mine.py']
    _, path, *words = shlex.split(program.train_on_gpus('mine.py', 2))
    assert (tmp_path / path).samefile(ROOT / 'tools/dist_train.sh')
    assert words == ['mine.py', '2'] and program.name() == script.rpartition('/')[2]


def test_a_script_of_the_user_is_none_of_ours(tmp_path, monkeypatch):
    (tmp_path / 'train.py').touch()
    monkeypatch.setattr(sys, 'argv', [str(tmp_path / 'train.py')])
    assert program.find_tools() is None and program.name() == 'train.py'
    monkeypatch.setattr(sys, 'argv', ['/x/ipykernel_launcher.py'])
    assert program.name() == 'mmlinattn'


SPY = """
from multiprocessing import get_context
import sys


def enabled():
    return any(getattr(x, '__module__', '') == 'mmlinattn.ops' for x in sys.meta_path)


def main(argv):
    with get_context('spawn').Pool(1) as pool:
        print(pool.apply(enabled), *argv)
"""
START = """
import sys

import spy
from mmlinattn.cli.verbs import VERBS

sys.modules['mmlinattn.commands.spy'] = spy
VERBS['spy'] = VERBS['env']._replace(module='spy')
"""


@pytest.mark.parametrize('way', ['-m', 'script'])
def test_spawned_workers_have_the_operators(way, tmp_path, monkeypatch):
    (tmp_path / 'spy.py').write_text(SPY)
    (tmp_path / 'sitecustomize.py').write_text(START)
    script = tmp_path / 'mmlinattn-script'
    script.write_text(
        "from mmlinattn.__main__ import main\nif __name__ == '__main__':\n    main()\n"
    )
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path}:{ROOT}')
    start = ['-m', 'mmlinattn'] if way == '-m' else [script]
    printed = run_command(sys.executable, *start, 'spy', 'x', cwd=tmp_path)
    assert printed.splitlines()[-1] == 'True x'
