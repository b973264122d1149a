"""The script behind ``make env``, without a network and without installing."""

import functools
import http.server
import importlib.util
import json
import socket
import sys
import tarfile
import threading
import urllib.request
import zipfile
from importlib.metadata import version
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
    monkeypatch.setenv('MMCV_BASE_URL', (tmp_path / 'no-wheels').as_uri())
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
        mmcv (tuple[str]): Devices that the installed mmcv works on.
        new_mmcv (tuple[str]): The same of one that is installed now.
        **torch: What torch answers when it is asked for its CUDA.
    """

    def __init__(
        self, monkeypatch, make_env, fail=(), mmcv=('cpu',), new_mmcv=('cpu',), **torch
    ):
        self.commands = []
        self.fail = fail
        self.mmcv = mmcv
        self.new_mmcv = new_mmcv
        self.torch = dict(dict(cuda=None, gpu=False, nvcc=False), **torch)
        monkeypatch.setattr(make_env.Environment, 'run', self.run)
        monkeypatch.setattr(make_env.Environment, 'ask', self.ask)
        self.error = make_env.StepError

    def run(self, title, *command, must=True, cwd=None, **env):
        line = ' '.join(command)
        self.commands.append(line)
        good = not any(word in line for word in self.fail)
        if must and not good:
            raise self.error(f'{title} failed')
        mmcv = any('mmcv' in Path(part).name for part in command)
        if good and mmcv and 'install' in command:
            built = 'just built' in title
            self.mmcv = ('cpu', *['cuda'] * self.torch['nvcc']) if built else None
            self.mmcv = self.mmcv or self.new_mmcv
        if good and 'wheel' in command:
            (cwd / 'mmcv-2.1.0-cp311-cp311-linux_x86_64.whl').touch()
        if good and 'download' in command:
            folder = Path(command[command.index('-d') + 1])
            folder.mkdir(parents=True, exist_ok=True)
            if '://' in command[-1]:
                name = command[-1].rpartition('/')[2]
                urllib.request.urlretrieve(command[-1], folder / name)
            else:
                tarfile.open(folder / 'mmcv-2.1.0.tar.gz', 'w:gz').close()
        return good

    def ask(self, code, *arguments):
        if 'torch.utils' in code:
            return json.dumps(
                dict(
                    self.torch,
                    torch='2.1.2',
                    tag='cp311',
                    platform='linux-x86_64',
                    include=str(Path(sys.executable).parent),
                )
            )
        if 'mmcv.ops' in code:
            found = dict(version='2.1.0', devices=self.mmcv)
            return json.dumps(found) if self.mmcv else None
        return ''

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
    recorder = Recorder(monkeypatch, make_env, mmcv=('cpu',))
    openmmlab.make()
    requirements, package = recorder.commands
    assert '-r ' in requirements and '--no-deps' in package


# ------------------------------------------------------------- ready-made wheels
WHEEL = 'mmcv-2.1.0-cp311-cp311-manylinux1_x86_64.whl'
SHELF = 'openmmlab-torch2.1.2-cp311-linux_x86_64'


@pytest.fixture
def host(make_env, tmp_path, monkeypatch):
    """A host of wheels on this machine, and what it was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, form, *args):
            asked.append(self.path)

    root = tmp_path / 'host'
    handler = functools.partial(Handler, directory=str(root))
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv('MMCV_BASE_URL', f'http://127.0.0.1:{server.server_port}/')
        monkeypatch.setenv('no_proxy', '127.0.0.1')
        yield asked
        server.shutdown()
        thread.join()


def add_wheels(tmp_path, *names, device='cpu'):
    """Puts wheels on the host and lists them on their page."""
    folder = tmp_path / 'host' / 'mmcv' / 'dist' / device / 'torch2.1.0'
    folder.mkdir(parents=True)
    rows = [f'<a href="../torch2.1.0/{name}">{name}</a><br>' for name in names]
    (folder / 'index.html').write_text('<html><body>' + '\n'.join(rows))
    for name in names:
        (folder / name).write_text(name)
    return folder


def test_pages_of_wheels(make_env, monkeypatch):
    """Where `mim install` of each stack looks."""
    page, stacks = make_env.wheel_page, make_env.STACKS
    monkeypatch.delenv('MMCV_BASE_URL')
    assert page(stacks['openmmlab'], '2.1.2', '12.1') == (
        'https://download.openmmlab.com/mmcv/dist/cu121/torch2.1.0/index.html'
    )
    assert page(stacks['modern'], '2.12.1', '13.0') == (
        'https://mmwheels.onedl.ai/cu130-torch2120/simple/onedl-mmcv/index.html'
    )
    monkeypatch.setenv('MMCV_BASE_URL', 'http://mirror/x/')
    assert page(stacks['openmmlab'], '2.1.2') == (
        'http://mirror/x/mmcv/dist/cpu/torch2.1.0/index.html'
    )


@pytest.mark.parametrize(
    'file, requirement, tag, platform, fits',
    [
        (WHEEL, 'mmcv==2.1.0', 'cp311', 'linux-x86_64', True),
        (WHEEL, 'mmcv==2.1.0', 'cp310', 'linux-x86_64', False),
        (WHEEL, 'mmcv==2.1.0', 'cp311', 'linux-aarch64', False),
        (WHEEL, 'mmcv==2.1.0', 'cp311', 'macosx-11.0-x86_64', False),
        (WHEEL, 'mmcv==2.1', 'cp311', 'linux-x86_64', False),
        (WHEEL, 'mmcv==2.2.0', 'cp311', 'linux-x86_64', False),
        (WHEEL, 'onedl-mmcv==2.1.0', 'cp311', 'linux-x86_64', False),
        (WHEEL.replace('.whl', '.tar.gz'), 'mmcv==2.1.0', 'cp311', 'linux-x86_64', 0),
        ('mmcv-2.1.0.tar.gz', 'mmcv==2.1.0', 'cp311', 'linux-x86_64', False),
        (
            'onedl_mmcv-2.3.6-cp312-cp312-manylinux_2_34_x86_64.whl#sha256=12',
            'onedl-mmcv==2.3.6',
            'cp312',
            'linux-x86_64',
            True,
        ),
        (
            'mmcv-2.1.0%2Bcu121-cp311-cp311-manylinux1_x86_64.whl',
            'mmcv==2.1.0',
            'cp311',
            'linux-x86_64',
            True,
        ),
        (
            'mmcv-2.1.0-cp311-cp311-macosx_11_0_arm64.whl',
            'mmcv==2.1.0',
            'cp311',
            'macosx-12.3-arm64',
            True,
        ),
    ],
)
def test_wheel_that_fits(make_env, file, requirement, tag, platform, fits):
    links = ['http://host/readme.html', f'http://host/a/{file}']
    found = make_env.choose_wheel(links, requirement, tag, platform)
    assert found == (links[1] if fits else None)


def test_ready_wheel_comes_before_a_build(
    make_env, openmmlab, host, tmp_path, monkeypatch
):
    add_wheels(tmp_path, WHEEL.replace('cp311', 'cp310'), WHEEL)
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('pip wheel') == 0 and recorder.count('install', WHEEL) == 1
    assert openmmlab.done['mmcv'] == SHELF
    assert (make_env.cache_folder() / SHELF / WHEEL).read_text() == WHEEL
    assert host == [
        '/mmcv/dist/cpu/torch2.1.0/index.html',
        f'/mmcv/dist/cpu/torch2.1.0/{WHEEL}',
    ]

    openmmlab.stamp.unlink()
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('install', WHEEL) == 1 and len(host) == 2


@pytest.mark.parametrize('listed', [None, [], [WHEEL.replace('2.1.0', '2.2.0')]])
def test_no_ready_wheel(
    make_env, openmmlab, host, tmp_path, monkeypatch, capsys, listed
):
    if listed is not None:
        add_wheels(tmp_path, *listed)
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('pip wheel') == 1 and len(host) == (
        2 if listed is None else 1
    )
    out = capsys.readouterr().out
    assert '404' in out if listed is None else 'no mmcv==2.1.0 for cp311 on' in out


@pytest.mark.parametrize('answers', ['refuses', 'is silent'])
def test_host_that_can_not_be_reached(
    make_env, openmmlab, monkeypatch, capsys, answers
):
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    monkeypatch.setattr(make_env, 'PATIENCE', 0.2)
    monkeypatch.setenv('no_proxy', '127.0.0.1')
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    with socket.socket() as server:
        server.bind(('127.0.0.1', 0))
        if answers == 'is silent':
            server.listen()
        address = f'http://127.0.0.1:{server.getsockname()[1]}'
        monkeypatch.setenv('MMCV_BASE_URL', address)
        openmmlab.make()
    assert recorder.count('pip wheel') == 1
    assert recorder.count('download', 'http://') == 0
    assert 'it can not be read: ' in capsys.readouterr().out


def test_address_that_is_none(make_env, openmmlab, monkeypatch, capsys):
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    monkeypatch.setenv('MMCV_BASE_URL', 'mirror')
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('pip wheel') == 1
    assert 'unknown url type' in capsys.readouterr().out


@pytest.mark.parametrize(
    'fail, new_mmcv', [([], ()), ([WHEEL], ('cpu',)), (['http://'], ('cpu',))]
)
def test_ready_wheel_that_does_not_work(
    make_env, openmmlab, host, tmp_path, monkeypatch, fail, new_mmcv
):
    """Its operations don't load, pip refuses it, or it can't be fetched."""
    add_wheels(tmp_path, WHEEL)
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(monkeypatch, make_env, fail=fail, mmcv=(), new_mmcv=new_mmcv)
    openmmlab.make()
    assert recorder.count('pip wheel') == 1
    (kept,) = (make_env.cache_folder() / SHELF).iterdir()
    assert kept.name != WHEEL
    assert not [path for path in openmmlab.folder.iterdir() if 'tmp' in path.name]


@pytest.mark.parametrize('gpu', [False, True])
def test_ready_wheel_for_cuda(make_env, openmmlab, host, tmp_path, monkeypatch, gpu):
    """It serves a machine without a GPU too, as torch's own wheel does."""
    add_wheels(tmp_path, WHEEL, device='cu121')
    recorder = Recorder(
        monkeypatch, make_env, cuda='12.1', gpu=gpu, mmcv=(), new_mmcv=('cpu', 'cuda')
    )
    openmmlab.make()
    assert recorder.count('pip wheel') == 0
    assert (make_env.cache_folder() / f'{SHELF}-cu121' / WHEEL).exists()
    assert not openmmlab.done['warning']


def test_wheel_for_the_cpu_is_not_enough_for_a_gpu(make_env, openmmlab, monkeypatch):
    shelf = make_env.cache_folder() / SHELF
    shelf.mkdir(parents=True)
    (shelf / WHEEL).touch()
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(
        monkeypatch, make_env, cuda='12.1', gpu=True, nvcc=True, mmcv=('cpu',)
    )
    openmmlab.make()
    assert (
        recorder.count('pip wheel') == 1 and recorder.count('install', str(shelf)) == 0
    )
    assert len(list((make_env.cache_folder() / f'{SHELF}-cu121').iterdir())) == 1


@pytest.mark.parametrize('kept', [False, True])
def test_gpu_without_nvcc(make_env, openmmlab, monkeypatch, capsys, kept):
    shelf = make_env.cache_folder() / SHELF
    if kept:
        shelf.mkdir(parents=True)
        (shelf / WHEEL).touch()
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(monkeypatch, make_env, mmcv=(), cuda='12.1', gpu=True)
    openmmlab.make()
    assert recorder.count('pip wheel') == (not kept)
    assert recorder.count('install', str(shelf)) == kept
    assert openmmlab.done['mmcv'] == SHELF
    warning = (
        'WARNING: there is no nvcc of CUDA 12.1, so that mmcv was built for the CPU'
    )
    out = capsys.readouterr().out
    assert out.count(warning) == 2 and warning in out.splitlines()[-1]
    openmmlab.make()
    assert 'up to date' in (out := capsys.readouterr().out) and warning in out


def test_built_wheel_is_kept_and_used_again(make_env, openmmlab, monkeypatch):
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    monkeypatch.setenv('MAX_JOBS', '3')
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('pip wheel', '--no-cache-dir', '--no-build-isolation') == 1
    (wheel,) = (make_env.cache_folder() / SHELF).iterdir()
    assert wheel.suffix == '.whl'

    openmmlab.stamp.unlink()
    recorder = Recorder(monkeypatch, make_env, mmcv=())
    openmmlab.make()
    assert recorder.count('install', str(wheel)) == 1
    assert recorder.count('pip wheel') == 0


def test_kept_wheel_that_fails_is_replaced(make_env, openmmlab, monkeypatch):
    shelf = make_env.cache_folder() / SHELF
    shelf.mkdir(parents=True)
    wheel = shelf / 'mmcv-2.1.0-cp311-cp311-linux_x86_64.whl'
    wheel.write_text('of another glibc')
    monkeypatch.setattr(make_env, 'check_compiler', lambda include: None)
    recorder = Recorder(monkeypatch, make_env, fail=[str(wheel)], mmcv=())
    openmmlab.make()
    assert recorder.count('pip wheel') == 1
    assert wheel.read_text() == ''


def test_build_without_a_compiler(make_env, openmmlab, monkeypatch):
    Recorder(monkeypatch, make_env, mmcv=())
    with pytest.raises(make_env.EnvError, match=r'no C\+\+ compiler'):
        openmmlab.make()
    assert 'stack' not in openmmlab.done


# -------------------------------------------------- what the Recorder stands in for
@pytest.fixture
def here(openmmlab):
    """The environment of these tests in the place of the one that is made."""
    openmmlab.python = sys.executable
    return openmmlab


def test_what_torch_tells(make_env, here):
    import torch

    found = json.loads(here.ask(make_env.PROBE_TORCH).splitlines()[-1])
    assert found['torch'] == torch.__version__.split('+')[0]
    assert found['cuda'] == torch.version.cuda
    assert found['gpu'] == torch.cuda.is_available()
    assert found['tag'] == 'cp{}{}'.format(*sys.version_info)
    assert {'nvcc', 'platform', 'include'} <= set(found)


def test_operations_of_mmcv_are_tried(make_env, here):
    pytest.importorskip('mmcv._ext')
    found = json.loads(here.ask(make_env.PROBE_MMCV, 'mmcv').splitlines()[-1])
    assert found['version'] == version('mmcv') and found['devices'][0] == 'cpu'


def test_what_mmcv_has_to_serve(make_env, openmmlab, monkeypatch):
    Recorder(monkeypatch, make_env, mmcv=('cpu', 'cuda'))
    assert openmmlab.mmcv_serves({'cpu', 'cuda'}, 'mmcv==2.1.0')
    assert not openmmlab.mmcv_serves({'cpu'}, 'mmcv==2.1.1')
    assert not openmmlab.mmcv_serves({'cpu', 'mlu'}, 'mmcv==2.1.0')
    Recorder(monkeypatch, make_env, mmcv=())
    assert not openmmlab.mmcv_serves({'cpu'}, 'mmcv==2.1.0')


@pytest.mark.parametrize(
    'ops',
    [
        "raise ImportError('undefined symbol')",
        "nms = lambda *args: ([], None)\nget_compiling_cuda_version = lambda: '12.1'",
        'import os; os.abort()',
    ],
)
def test_operations_that_do_not_work(here, ops):
    (here.folder / 'mmcv').mkdir()  # it comes before the installed one
    (here.folder / 'mmcv' / '__init__.py').touch()
    (here.folder / 'mmcv' / 'ops.py').write_text(ops)
    assert not here.mmcv_serves({'cpu'}, 'mmcv==2.1.0')


def test_pip_fetches_the_wheel(here, host, tmp_path, monkeypatch):
    tag = 'cp{}{}'.format(*sys.version_info)
    name = f'mmcv-2.1.0-{tag}-{tag}-manylinux1_x86_64.whl'
    folder = add_wheels(tmp_path, name)
    with zipfile.ZipFile(folder / name, 'w') as wheel:
        info = 'Metadata-Version: 2.1\nName: mmcv\nVersion: 2.1.0\n'
        wheel.writestr('mmcv-2.1.0.dist-info/METADATA', info)
        wheel.writestr('mmcv-2.1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\n')
    fetched = []

    def install_wheel(title, wheel, devices, requirement):
        fetched.append(wheel.read_bytes())
        return True

    monkeypatch.setattr(here, 'install_wheel', install_wheel)
    torch = dict(torch='2.1.2', cuda=None, tag=tag, platform='linux-x86_64')
    with here.lock():
        shelf = here.install_ready(torch, tmp_path / 'shelf', {'cpu'}, 'mmcv==2.1.0')
    assert fetched == [(folder / name).read_bytes()] == [(shelf / name).read_bytes()]


# -------------------------------------------------------------------- command line
@pytest.mark.parametrize(
    'argv, message',
    [
        (['--stack', 'new'], "argument --stack: invalid choice: 'new'"),
        (['--stack'], 'argument --stack: expected one argument'),
        (['--stak', 'modern'], 'unrecognized arguments: --stak modern'),
        (['--print'], 'unrecognized arguments: --print'),
        (['--python', '/no/python'], 'PYTHON=/no/python does not start.'),
        ([], 'no Python 3.9 to 3.11 for the openmmlab stack'),
        (['--print-stacks'], 'no Python 3.10 to 3.13 for the modern stack'),
    ],
)
@pytest.mark.parametrize('debug', [False, True])
def test_bad_input(make_env, capsys, argv, message, debug):
    with pytest.raises(SystemExit) as stop:
        make_env.main([*argv, *['--debug'] * debug])
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == ''
    *trace, line = err.splitlines()
    assert line.startswith('make env: error: ') and message in line
    assert bool(trace) == (debug and 'argument' not in line)


def test_file_in_the_place_of_the_folder(make_env, add_python, capsys):
    add_python('3.11')
    (make_env.ROOT / '.venv').touch()
    with pytest.raises(SystemExit) as stop:
        make_env.main([])
    assert stop.value.code == 2
    assert 'is in the way: it is no folder' in capsys.readouterr().err


def test_failed_step_is_no_bad_input(make_env, openmmlab, monkeypatch, capsys):
    Recorder(monkeypatch, make_env, fail=['-r'])
    with pytest.raises(SystemExit) as stop:
        make_env.main([])
    assert stop.value.code == 1 and 'failed' in capsys.readouterr().err


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
