"""The script behind ``make env``, without a network and without installing."""

import json
import subprocess

import pytest

from mmlinattn.commands import make_env as make_env_command

pytestmark = pytest.mark.openmmlab


@pytest.fixture
def make_env(tmp_path, monkeypatch):
    """The script, for an empty project on a machine without Python."""
    module = make_env_command
    (tmp_path / 'project' / 'requirements').mkdir(parents=True)
    for name in ('openmmlab.txt', 'modern.txt'):
        (tmp_path / 'project' / 'requirements' / name).write_text('torch\n')
    (tmp_path / 'project' / 'mmlinattn').mkdir()
    monkeypatch.setattr(module, 'SOURCES', {'mmlinattn'})
    monkeypatch.setattr(module, 'ROOT', tmp_path / 'project')
    monkeypatch.setattr(module.sys, 'executable', '')
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    monkeypatch.setenv('HOME', str(tmp_path))
    for name in ('MAX_JOBS', 'PYTHONPATH'):
        monkeypatch.delenv(name, raising=False)
    return module


def add_python(folder, name, answer):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\n{answer}\n')
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    'versions, stacks, folder',
    [
        (['3.9'], 'openmmlab', '.venv'),
        (['3.8', '3.10', '3.13'], 'openmmlab modern', '.venv'),
        (['3.12'], 'modern', '.venv-modern'),
    ],
)
def test_stacks_that_have_their_python(
    make_env, tmp_path, capsys, versions, stacks, folder
):
    add_python(tmp_path / 'bin', 'python3.11', 'exit 127')  # a shim of nothing
    for version in versions:
        add_python(tmp_path / 'bin', f'python{version}', f'echo {version}')
    make_env.main(['--print-stacks'])
    make_env.main(['--print-folder'])
    assert capsys.readouterr().out == f'{stacks}\n{folder}\n'


@pytest.mark.parametrize(
    'argv, there, message',
    [
        (
            [],
            None,
            'stack needs Python 3.11 or 3.10 or 3.9 with ensurepip, and there is',
        ),
        ([], 'echo 3.8', 'has another Python, or lost it'),
        (['--stack', 'new'], None, "invalid choice: 'new'"),
    ],
)
def test_no_python(make_env, tmp_path, capsys, argv, there, message):
    add_python(tmp_path / 'bin', 'python3.8', 'echo 3.8')
    for folder in ('.venv', '.venv-modern') if there else ():
        add_python(make_env.ROOT / folder / 'bin', 'python', there)
    with pytest.raises(SystemExit) as stop:
        make_env.main(argv)
    assert stop.value.code == 2 and message in capsys.readouterr().err


@pytest.fixture
def commands(make_env, tmp_path, monkeypatch):
    """Commands, which are not run."""
    ran = []

    def run(*command, **env):
        ran.append(
            ' '.join(map(str, command)) + ' '.join(f' {k}={env[k]}' for k in env)
        )
        if ' venv ' in ran[-1]:
            command[-1].mkdir(exist_ok=True)

    add_python(tmp_path / 'bin', 'python3.11', 'echo 3.11')
    answer = json.dumps(['cu121', '2', '1', False])
    monkeypatch.setattr(make_env, 'run', run)
    monkeypatch.setattr(subprocess, 'check_output', lambda command: answer)
    works = subprocess.CompletedProcess([], 0, b'3.11')
    monkeypatch.setattr(subprocess, 'run', lambda *args, **kwargs: works)
    return ran


def test_only_what_changed_is_done_again(make_env, commands, capsys):
    make_env.main([])
    assert 'python3.11' in commands[0] and 'openmmlab.txt' in commands[1]
    assert '--force-reinstall' in commands[2] and len(commands) == 4
    # for what imports mmdet before mmlinattn, such as `mim train mmdet`
    assert commands[3].endswith('-m mmlinattn.ops --install')
    make_env.main([])
    assert len(commands) == 4 and '.venv is up to date' in capsys.readouterr().out
    (make_env.ROOT / 'mmlinattn' / '__init__.py').touch()
    make_env.main([])
    assert len(commands) == 6 and '--force-reinstall' in commands[4]
    (make_env.ROOT / 'requirements' / 'openmmlab.txt').write_text('numpy\n')
    make_env.main([])
    assert len(commands) == 10 and 'openmmlab.txt' in commands[7]


def test_what_pins_a_release_without_a_wheel_comes_alone(
    make_env, commands, tmp_path, monkeypatch
):
    add_python(tmp_path / 'bin', 'python3.14', 'echo 3.14')
    works = subprocess.CompletedProcess([], 0, b'3.14')
    monkeypatch.setattr(subprocess, 'run', lambda *args, **kwargs: works)
    make_env.main(['--stack', 'modern'])
    assert [x for x in commands if '--no-deps' in x and 'onedl-mim==' in x]


def test_a_killed_run_leaves_no_half(make_env, commands, monkeypatch, capsys):
    """Half of a stamp is none, and half of a package is no package."""
    make_env.main([])
    packages = make_env.ROOT / '.venv/lib/python3.11/site-packages'
    for name, files in (('whole', ('METADATA', 'INSTALLER')), ('half', ('METADATA',))):
        (packages / f'{name}-1.0.dist-info').mkdir(parents=True)
        for file in files:
            (packages / f'{name}-1.0.dist-info' / file).touch()
    stamp = make_env.ROOT / '.venv/make-env.json'
    stamp.write_text(stamp.read_text()[:20])
    make_env.main([])
    assert len(commands) == 8 and json.loads(stamp.read_text())
    assert [x.name for x in packages.iterdir()] == ['whole-1.0.dist-info']
    assert 'half of a package is installed again: half-1.0' in capsys.readouterr().out
    before = stamp.read_text()

    def write(self, text):
        with self.open('w') as file:
            file.write(text[:9])
        raise KeyboardInterrupt

    monkeypatch.setattr(type(stamp), 'write_text', write)
    (make_env.ROOT / 'mmlinattn' / 'new.py').touch()
    with pytest.raises(SystemExit, match='130'):
        make_env.main([])
    assert stamp.read_text() == before
