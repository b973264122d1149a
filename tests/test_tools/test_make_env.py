"""The script behind ``make env``, without a network and without installing."""

import importlib.util
import json
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / 'tools' / 'misc' / 'make_env.py'


@pytest.fixture
def make_env(tmp_path, monkeypatch):
    """The script as a module, in an empty project on a machine without Python."""
    spec = importlib.util.spec_from_file_location('make_env', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, 'make_env', module)
    spec.loader.exec_module(module)
    for name in ('project', 'bin', 'cache'):
        (tmp_path / name).mkdir()
    requirements = tmp_path / 'project' / 'requirements'
    requirements.mkdir()
    for stack, mmcv in (('openmmlab', 'mmcv==2.1.0'), ('modern', 'onedl-mmcv==2.3.6')):
        (requirements / f'{stack}.txt').write_text('torch\n')
        (requirements / f'{stack}-mmcv.txt').write_text(f'{mmcv}\n')
    monkeypatch.setattr(module, 'ROOT', tmp_path / 'project')
    monkeypatch.setenv('PATH', str(tmp_path / 'bin'))
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path / 'pyenv'))
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.delenv('CXX', raising=False)
    return module


@pytest.fixture
def add_python(tmp_path):
    """Puts a command on PATH that answers as the interpreter it is named for."""

    def add(version, has_venv=True, starts=True, name=None):
        path = tmp_path / 'bin' / (name or f'python{version}')
        major, minor = version.split('.')
        answer = f'echo {major} {minor} 4 {int(has_venv)}'
        path.write_text(f'#!/bin/sh\n{answer if starts else "exit 127"}\n')
        path.chmod(0o755)
        return str(path)

    return add


def add_venv(make_env, stack, version):
    folder = make_env.ROOT / make_env.STACKS[stack].folder
    (folder / 'bin').mkdir(parents=True)
    (folder / 'bin' / 'python').symlink_to(sys.executable)
    (folder / 'pyvenv.cfg').write_text(f'home = /usr/bin\nversion = {version}\n')
    return folder


@pytest.mark.parametrize(
    'versions, stack, chosen',
    [
        (['3.11', '3.12'], 'openmmlab', '3.11'),
        (['3.9', '3.10'], 'openmmlab', '3.10'),
        (['3.8', '3.9'], 'openmmlab', '3.9'),
        (['3.12', '3.13'], 'modern', '3.12'),
        (['3.13'], 'modern', '3.13'),
    ],
)
def test_default_stack_is_the_one_that_has_its_python(
    make_env, add_python, versions, stack, chosen
):
    paths = {version: add_python(version) for version in versions}
    found, python, reason = make_env.choose_stack()
    assert found.name == stack
    assert python.path == paths[chosen]
    assert f'found Python {chosen}.4' in reason
    if stack == 'modern':
        assert 'no Python 3.9 to 3.11 for the openmmlab stack' in reason


def test_no_python(make_env, add_python):
    add_python('3.8')
    with pytest.raises(make_env.EnvError) as error:
        make_env.choose_stack()
    assert 'no Python 3.9 to 3.11' in str(error.value)
    assert 'no Python 3.10 to 3.13' in str(error.value)
    assert 'apt install python3.11' in str(error.value)


def test_shim_without_a_python_is_passed_over(make_env, add_python):
    add_python('3.11', starts=False)
    path = add_python('3.10')
    assert make_env.choose_stack('openmmlab')[1].path == path


def test_python_without_a_version_in_its_name(make_env, add_python):
    path = add_python('3.10', name='python3')
    assert make_env.choose_stack('openmmlab')[1].path == path


def test_python_of_pyenv(make_env, add_python, tmp_path):
    add_python('3.9', name='python3')
    found = Path(add_python('3.10'))
    folder = tmp_path / 'pyenv' / 'versions' / '3.10.4' / 'bin'
    folder.mkdir(parents=True)
    found.rename(folder / 'python3.10')
    python = make_env.choose_stack('openmmlab')[1]
    assert python.path == str(folder / 'python3.10')


def test_python_without_venv_says_what_to_install(make_env, add_python):
    add_python('3.11', has_venv=False)
    with pytest.raises(make_env.EnvError, match='python3.11-venv'):
        make_env.choose_stack('openmmlab')


def test_wanted_python(make_env, add_python):
    add_python('3.11')
    path = add_python('3.12', name='mine')
    assert make_env.choose_stack(wanted=path)[0].name == 'modern'
    assert make_env.choose_stack(wanted='mine')[1].path == path
    with pytest.raises(make_env.EnvError, match='mine is Python 3.12.4'):
        make_env.choose_stack('openmmlab', 'mine')
    with pytest.raises(make_env.EnvError, match='PYTHON=/no/python does not'):
        make_env.choose_stack(wanted='/no/python')


def test_usable_stacks(make_env, add_python, capsys):
    with pytest.raises(make_env.EnvError):
        make_env.usable_stacks()
    add_python('3.9')
    assert make_env.usable_stacks() == ['openmmlab']
    assert 'modern' in capsys.readouterr().err
    add_python('3.10')
    assert make_env.usable_stacks() == ['openmmlab', 'modern']


def test_environment_that_is_there_needs_no_python(make_env):
    add_venv(make_env, 'openmmlab', '3.10.13')
    stack, python, reason = make_env.choose_stack()
    assert stack.name == 'openmmlab' and python is None
    assert '.venv has Python 3.10.13' in reason


def test_environment_of_another_python_is_in_the_way(make_env, add_python):
    folder = add_venv(make_env, 'openmmlab', '3.12.1')
    add_python('3.11')
    stack, python, _ = make_env.choose_stack('openmmlab')
    with pytest.raises(make_env.EnvError, match=f'{folder} has Python 3.12.1'):
        make_env.Environment(stack, python).make()


def test_environment_that_lost_its_python(make_env, add_python):
    folder = add_venv(make_env, 'openmmlab', '3.11.4')
    (folder / 'bin' / 'python').unlink()
    (folder / 'bin' / 'python').symlink_to('/no/python')
    add_python('3.11')
    stack, python, _ = make_env.choose_stack('openmmlab')
    with pytest.raises(make_env.EnvError, match=f'that made {folder} is gone'):
        make_env.Environment(stack, python).make()


def test_wheels_are_kept_apart(make_env):
    key = make_env.wheel_key('openmmlab', '2.1.2', 'cp311', 'linux-x86_64')
    assert key == 'openmmlab-torch2.1.2-cp311-linux_x86_64'
    mac = make_env.wheel_key('modern', '2.12.1', 'cp312', 'macosx-11.0-arm64')
    assert mac == 'modern-torch2.12.1-cp312-macosx_11_0_arm64'
    cuda = make_env.wheel_key('openmmlab', '2.1.2', 'cp311', 'linux-x86_64', '12.1')
    assert cuda == key + '-cu121'


def test_missing_compiler_says_what_to_install(make_env, tmp_path, monkeypatch):
    with pytest.raises(make_env.EnvError, match=r'no C\+\+ compiler.*apt install'):
        make_env.check_compiler(tmp_path)
    monkeypatch.setenv('CXX', 'ccache nothing')
    with pytest.raises(make_env.EnvError, match=r'no C\+\+ compiler \(ccache'):
        make_env.check_compiler(tmp_path)


def test_missing_headers_say_what_to_install(make_env, tmp_path, add_python):
    add_python('3.11', name='c++')
    with pytest.raises(make_env.EnvError, match='Python.h.*python3-dev'):
        make_env.check_compiler(tmp_path)
    (tmp_path / 'Python.h').touch()
    make_env.check_compiler(tmp_path)


class Recorder:
    """Stands in for the commands of an environment, and remembers them.

    Args:
        fail (tuple[str]): Words; a command that has one fails.
        mmcv (str): The mmcv that is installed, '' for one that doesn't work.
    """

    def __init__(self, monkeypatch, make_env, fail=(), mmcv=''):
        self.commands = []
        self.fail = fail
        self.mmcv = mmcv
        monkeypatch.setattr(make_env.Environment, 'run', self.run)
        monkeypatch.setattr(make_env.Environment, 'ask', self.ask)
        self.error = make_env.EnvError

    def run(self, title, *command, must=True, cwd=None, **env):
        line = ' '.join(command)
        self.commands.append(line)
        good = not any(word in line for word in self.fail)
        if must and not good:
            raise self.error(f'{title} failed')
        mmcv = any('mmcv' in Path(part).name for part in command)
        if good and mmcv and 'install' in command:
            self.mmcv = '2.1.0'
        if good and 'wheel' in command:
            (cwd / 'mmcv-2.1.0-cp311-cp311-linux_x86_64.whl').touch()
        if good and 'download' in command:
            folder = Path(command[command.index('-d') + 1])
            folder.mkdir(parents=True)
            tarfile.open(folder / 'mmcv-2.1.0.tar.gz', 'w:gz').close()
        return good

    def ask(self, code):
        if 'torch.utils' in code:
            include = str(Path(sys.executable).parent)
            return json.dumps(
                dict(
                    torch='2.1.2',
                    wish=None,
                    cuda=None,
                    tag='cp311',
                    platform='linux-x86_64',
                    include=include,
                )
            )
        return self.mmcv if 'mmcv.ops' in code else ''

    def count(self, *words):
        return sum(all(word in line for word in words) for line in self.commands)


@pytest.fixture
def openmmlab(make_env):
    """The openmmlab environment, made but empty."""
    add_venv(make_env, 'openmmlab', '3.11.4')
    (make_env.ROOT / 'mmlinattn').mkdir()
    (make_env.ROOT / 'mmlinattn' / '__init__.py').touch()
    return make_env.Environment(make_env.STACKS['openmmlab'])


def test_second_run_does_nothing(make_env, openmmlab, monkeypatch, capsys):
    recorder = Recorder(monkeypatch, make_env)
    openmmlab.make()
    assert recorder.count('-r', 'openmmlab.txt') == 1
    recorder.commands.clear()
    openmmlab.make()
    assert recorder.commands == []
    assert 'up to date' in capsys.readouterr().out


def test_changed_sources_are_installed_again(make_env, openmmlab, monkeypatch):
    recorder = Recorder(monkeypatch, make_env)
    openmmlab.make()
    recorder.commands.clear()
    (make_env.ROOT / 'mmlinattn' / '__init__.py').write_text('new = 1\n')
    openmmlab.make()
    (command,) = recorder.commands
    assert '--no-deps' in command and '--no-build-isolation' in command
    recorder.commands.clear()
    cache = make_env.ROOT / 'mmlinattn' / '__pycache__'
    cache.mkdir()
    (cache / 'x.pyc').touch()
    openmmlab.make()
    assert recorder.commands == []


def test_changed_requirements_are_installed_again(make_env, openmmlab, monkeypatch):
    recorder = Recorder(monkeypatch, make_env)
    openmmlab.make()
    recorder.commands.clear()
    openmmlab.stack.requirements.write_text('torch\nnumpy\n')
    openmmlab.make()
    (command,) = recorder.commands
    assert str(openmmlab.stack.requirements) in command


def test_stopped_run_goes_on(make_env, openmmlab, monkeypatch):
    recorder = Recorder(monkeypatch, make_env, fail=['--force-reinstall --no-build'])
    with pytest.raises(make_env.EnvError, match='mmlinattn failed'):
        openmmlab.make()
    recorder = Recorder(monkeypatch, make_env)
    openmmlab.make()
    (command,) = recorder.commands
    assert '--force-reinstall --no-build-isolation' in command


def test_mmcv_that_works_is_left_alone(make_env, openmmlab, monkeypatch):
    recorder = Recorder(monkeypatch, make_env, mmcv='2.1.0')
    openmmlab.make()
    requirements, package = recorder.commands
    assert '-r ' in requirements and '--no-deps' in package


def test_ready_wheel_comes_before_a_build(make_env, openmmlab, monkeypatch):
    recorder = Recorder(monkeypatch, make_env)
    openmmlab.make()
    assert recorder.count('mim install', 'mmcv==2.1.0') == 1
    assert recorder.count('pip wheel') == 0


def test_built_wheel_is_kept_and_used_again(
    make_env, openmmlab, monkeypatch, add_python
):
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    monkeypatch.setenv('MAX_JOBS', '3')
    recorder = Recorder(monkeypatch, make_env, fail=['bin/mim'])
    openmmlab.make()
    assert recorder.count('pip wheel', '--no-cache-dir', '--no-build-isolation') == 1
    shelf = make_env.cache_folder() / 'openmmlab-torch2.1.2-cp311-linux_x86_64'
    (wheel,) = shelf.iterdir()
    assert wheel.suffix == '.whl'

    openmmlab.stamp.unlink()
    recorder = Recorder(monkeypatch, make_env, fail=['bin/mim'])
    openmmlab.make()
    assert recorder.count('install', str(wheel)) == 1
    assert recorder.count('bin/mim') == recorder.count('pip wheel') == 0


def test_kept_wheel_that_fails_is_replaced(make_env, openmmlab, monkeypatch):
    shelf = make_env.cache_folder() / 'openmmlab-torch2.1.2-cp311-linux_x86_64'
    shelf.mkdir(parents=True)
    wheel = shelf / 'mmcv-2.1.0-cp311-cp311-linux_x86_64.whl'
    wheel.write_text('of another glibc')
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(monkeypatch, make_env, fail=['bin/mim', str(wheel)])
    openmmlab.make()
    assert recorder.count('pip wheel') == 1
    assert wheel.read_text() == ''


def test_build_without_a_compiler(make_env, openmmlab, monkeypatch):
    Recorder(monkeypatch, make_env, fail=['bin/mim'])
    with pytest.raises(make_env.EnvError, match=r'no C\+\+ compiler'):
        openmmlab.make()
    assert 'stack' not in openmmlab.done


def test_failure_shows_the_end_of_the_log(make_env, openmmlab):
    with openmmlab.lock():
        with pytest.raises(make_env.EnvError) as error:
            openmmlab.run('it', '/bin/sh', '-c', 'echo no network; exit 3')
        assert openmmlab.run('it', '/bin/sh', '-c', 'exit 3', must=False) is False
    assert 'it failed' in str(error.value)
    assert str(openmmlab.log) in str(error.value)
    assert 'no network' in str(error.value)


def test_long_step_shows_that_it_goes_on(make_env, openmmlab, monkeypatch, capsys):
    monkeypatch.setattr(make_env, 'HEARTBEAT', 0.1)
    say = 'echo "[3/78] c++ x.cpp"; echo warning; /bin/sleep 1'
    with openmmlab.lock():
        assert openmmlab.run('mmcv', '/bin/sh', '-c', say)
    out = capsys.readouterr().out
    assert 'compiled 3 of 78 files' in out
    assert 'mmcv: done' in out
