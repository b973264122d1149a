#!/usr/bin/env python3
"""Makes the project's virtual environment: `.venv` or `.venv-modern`.

It needs nothing but a Python 3.9 or newer, and may be stopped and run again at
any time: what is done already stays done.
"""

import argparse
import contextlib
import fcntl
import hashlib
import html.parser
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# What the installed package is made from.
SOURCES = (
    'mmlinattn',
    'tools',
    'configs',
    'model-index.yml',
    'dataset-index.yml',
    'setup.py',
    'pyproject.toml',
    'MANIFEST.in',
    'README.md',
    'LICENSE',
)
NOT_SOURCES = shutil.ignore_patterns('__pycache__', '.mim', '*.egg-info')
GIB = 1024**3
HEARTBEAT = 30  # seconds between two signs of life in a log
PATIENCE = 10  # seconds for the page of ready-made wheels to answer
# Asks torch for its version and CUDA, whether mmcv has to serve a GPU, and whether it
# can be built for one here.
PROBE_TORCH = """
import json, os, re, subprocess, sys, sysconfig
import torch
from torch.utils.cpp_extension import CUDA_HOME
cuda = torch.version.cuda
release = None
if cuda and CUDA_HOME and os.path.exists(CUDA_HOME + '/bin/nvcc'):
    text = subprocess.check_output([CUDA_HOME + '/bin/nvcc', '--version'])
    release = re.search(r'release (\\d+)', text.decode()).group(1)
print(json.dumps(dict(
    torch=torch.__version__.split('+')[0], cuda=cuda,
    gpu=torch.cuda.is_available() or os.environ.get('FORCE_CUDA') == '1',
    nvcc=release is not None and release == cuda.split('.')[0],
    tag='cp{}{}'.format(*sys.version_info), platform=sysconfig.get_platform(),
    include=sysconfig.get_path('include'))))
"""
# Asks mmcv on which devices its operations work: they are tried where they can be.
PROBE_MMCV = """
import json, sys
from importlib.metadata import version
from mmcv.ops import get_compiling_cuda_version, nms
import torch

def works(device):
    boxes = [[0.0, 0.0, 9.0, 9.0], [0.0, 0.0, 9.0, 8.0], [20.0, 20.0, 29.0, 29.0]]
    scores = torch.tensor([0.9, 0.8, 0.7], device=device)
    return nms(torch.tensor(boxes, device=device), scores, 0.5)[1].tolist() == [0, 2]

devices = ['cpu'] if works('cpu') else []
if get_compiling_cuda_version() != 'not available':
    try:
        cuda = not torch.cuda.is_available() or works('cuda')
    except RuntimeError:
        cuda = False
    devices += ['cuda'] if cuda else []
print(json.dumps(dict(version=version(sys.argv[1]), devices=devices)))
"""


class EnvError(Exception):
    """Something the user has to see to; the message says what."""


class StepError(EnvError):
    """A command that failed; the message has the end of its log."""


class Stack(NamedTuple):
    """A set of library versions that work together.

    Attributes:
        name (str): Its name, and that of its files in requirements/.
        folder (str): The environment's folder in the project root.
        versions (tuple[tuple[int]]): Python versions, the preferred one first.
        wheel_host (str): Where ready-made wheels of its mmcv are.
        wheel_page (str): The page there that lists those for a torch and a CUDA.
    """

    name: str
    folder: str
    versions: tuple
    wheel_host: str
    wheel_page: str

    @property
    def requirements(self):
        return ROOT / 'requirements' / f'{self.name}.txt'

    @property
    def mmcv_requirement(self):
        return ROOT / 'requirements' / f'{self.name}-mmcv.txt'

    @property
    def python_range(self):
        return '{}.{} to {}.{}'.format(*min(self.versions), *max(self.versions))


# The pages are those in which each stack's own mim looks.
STACKS = {
    'openmmlab': Stack(
        'openmmlab',
        '.venv',
        ((3, 11), (3, 10), (3, 9)),
        'https://download.openmmlab.com',
        'mmcv/dist/{device}/torch{major}.{minor}.0/index.html',
    ),
    'modern': Stack(
        'modern',
        '.venv-modern',
        ((3, 11), (3, 12), (3, 10), (3, 13)),
        'https://mmwheels.onedl.ai',
        '{device}-torch{major}{minor}0/simple/onedl-mmcv/index.html',
    ),
}


class Python(NamedTuple):
    """An interpreter that was started and answered."""

    path: str
    version: tuple
    has_venv: bool

    def __str__(self):
        return 'Python {}.{}.{}'.format(*self.version) + f' ({self.path})'


def probe_python(path):
    """Starts an interpreter, since a name on PATH may be an empty shim.

    Args:
        path (str | Path): The interpreter.

    Returns:
        Python | None: None if it doesn't run.
    """
    code = (
        'import sys; from importlib.util import find_spec as f; '
        'print(*sys.version_info[:3], int(bool(f("venv") and '
        'f("ensurepip"))))'
    )
    try:
        answer = subprocess.run(
            [path, '-I', '-c', code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=True,
        ).stdout.split()
        *version, has_venv = (int(part) for part in answer)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Python(str(path), tuple(version), bool(has_venv))


def candidate_pythons(stack):
    """Yields interpreters for a stack by their name: PATH's, then pyenv's."""
    pyenv = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv'))
    for version in stack.versions:
        name = 'python{}.{}'.format(*version)
        for folder in os.environ.get('PATH', '').split(os.pathsep):
            yield shutil.which(name, path=folder or os.curdir)
        yield from pyenv.glob(f'versions/*/bin/{name}')
    yield from (shutil.which('python3'), shutil.which('python'))


def find_python(stack, wanted=None):
    """Finds an interpreter for a stack.

    Args:
        stack (Stack): The stack.
        wanted (str, optional): The interpreter that the user asked for.

    Returns:
        Python: The interpreter.

    Raises:
        EnvError: If there is none that fits, starts and can make environments.
    """
    if wanted:
        pythons = [probe_python(shutil.which(wanted) or wanted)]
        if pythons[0] is None:
            raise EnvError(f'PYTHON={wanted} does not start.')
        if pythons[0].version[:2] not in stack.versions:
            raise EnvError(
                f'PYTHON={wanted} is {pythons[0]}, but the {stack.name} '
                f'stack needs Python {stack.python_range}.'
            )
    else:
        pythons = map(probe_python, filter(None, candidate_pythons(stack)))
    found = []
    for python in pythons:
        if python and python.version[:2] in stack.versions:
            if python.has_venv:
                return python
            found.append(python)
    if found:
        name = 'python{}.{}'.format(*found[0].version)
        raise EnvError(
            f'{found[0]} has no venv and ensurepip. On Debian and Ubuntu they '
            f'come with `sudo apt install {name}-venv {name}-dev`.'
        )
    name = 'python{}.{}'.format(*stack.versions[0])
    raise EnvError(
        f'no Python {stack.python_range} for the {stack.name} stack. Install '
        f'one (`sudo apt install {name} {name}-venv {name}-dev`, `uv python '
        'install`, pyenv or conda), or name one: make env PYTHON=/path/to/it'
    )


def venv_version(folder):
    """Reads the Python version of an environment, None if it isn't whole."""
    config = Path(folder, 'pyvenv.cfg')
    if not config.exists() or not Path(folder, 'bin', 'python').exists():
        return None
    match = re.search(
        r'^version(?:_info)? *= *(\d+)\.(\d+)\.(\d+)', config.read_text(), re.MULTILINE
    )
    return match and tuple(int(part) for part in match.groups())


def choose_stack(name=None, wanted=None):
    """Chooses the stack, and the interpreter to make its environment with.

    Args:
        name (str, optional): The stack that the user asked for. Defaults to
            openmmlab where a Python for it is found, and to modern otherwise.
        wanted (str, optional): The interpreter that the user asked for.

    Returns:
        tuple[Stack, Python | None, str]: The interpreter is None where the
        environment is there already; the string says why this stack.

    Raises:
        EnvError: If no interpreter fits.
    """
    why_not = []
    for stack in [STACKS[name]] if name else STACKS.values():
        version = venv_version(ROOT / stack.folder)
        if not wanted and version and version[:2] in stack.versions:
            reason = '{} has Python {}.{}.{}'.format(stack.folder, *version)
            return stack, None, '; '.join([*why_not, reason])
        try:
            python = find_python(stack, wanted)
        except EnvError as error:
            why_not.append(str(error))
        else:
            return stack, python, '; '.join([*why_not, f'found {python}'])
    raise EnvError(' '.join(dict.fromkeys(why_not)))


def usable_stacks(wanted=None):
    """Lists the stacks that can be had here, and says why one can't.

    Args:
        wanted (str, optional): The interpreter that the user asked for.

    Returns:
        list[str]: Their names, at least one.

    Raises:
        EnvError: If there is none.
    """
    names, why_not = [], []
    for name in STACKS:
        try:
            choose_stack(name, wanted)
            names.append(name)
        except EnvError as error:
            why_not.append(str(error))
    if not names:
        raise EnvError(' '.join(dict.fromkeys(why_not)))
    for reason in why_not:
        print(f'left out: {reason}', file=sys.stderr)
    return names


def cache_folder():
    base = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(base, 'mmlinattn', 'wheels')


def wheel_key(stack, torch, python_tag, platform, cuda=None):
    """Names the folder of an mmcv wheel by all that its binary depends on.

    >>> wheel_key('openmmlab', '2.1.2', 'cp311', 'linux-x86_64')
    'openmmlab-torch2.1.2-cp311-linux_x86_64'
    """
    parts = [stack, f'torch{torch}', python_tag, re.sub(r'\W', '_', platform)]
    if cuda:
        parts.append('cu' + cuda.replace('.', ''))
    return '-'.join(parts)


def wheel_page(stack, torch, cuda=None):
    """The address of the page that lists ready-made mmcv wheels.

    Args:
        stack (Stack): The stack.
        torch (str): Version of torch; wheels for x.y.0 serve all x.y.
        cuda (str, optional): Version of the CUDA that torch was built for.

    Returns:
        str: The address; MMCV_BASE_URL, as mim has it, replaces the host.
    """
    host = os.environ.get('MMCV_BASE_URL') or stack.wheel_host
    major, minor = torch.split('.')[:2]
    device = 'cu' + cuda.replace('.', '') if cuda else 'cpu'
    page = stack.wheel_page.format(device=device, major=major, minor=minor)
    return f'{host.rstrip("/")}/{page}'


class LinkParser(html.parser.HTMLParser):
    """Collects the addresses that a page links to."""

    def __init__(self, page):
        super().__init__()
        self.page = page
        self.links = []

    def handle_starttag(self, tag, attrs):
        address = dict(attrs).get('href')
        if tag == 'a' and address:
            self.links.append(urllib.parse.urljoin(self.page, address))


def read_links(page):
    """The links of a page.

    Args:
        page (str): Its address.

    Returns:
        list[str]: Addresses.

    Raises:
        OSError: If it can't be read within ``PATIENCE`` seconds.
    """
    found = []

    def read():
        try:
            with urllib.request.urlopen(page, timeout=PATIENCE) as answer:
                parser = LinkParser(answer.geturl())
                parser.feed(answer.read().decode(errors='replace'))
            found.append(parser.links)
        except (OSError, ValueError, http.client.HTTPException) as error:
            found.append(error)

    # looking up a name knows no time limit of its own
    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    result = found[0] if found else TimeoutError(f'no answer in {PATIENCE} s')
    if isinstance(result, Exception):
        raise OSError(str(result)) from result
    return result


def choose_wheel(links, requirement, python_tag, platform):
    """The wheel among some links that fits a Python and a machine.

    Args:
        links (list[str]): Addresses.
        requirement (str): Such as 'mmcv==2.1.0'.
        python_tag (str): Such as 'cp311'.
        platform (str): Such as 'linux-x86_64'.

    Returns:
        str | None: The first that fits; pip has the last word on the platform's
        version.
    """
    name, version = requirement.replace('-', '_').split('==')
    system, machine = platform.split('-')[0], platform.split('-')[-1]
    for link in links:
        file = urllib.parse.unquote(urllib.parse.urlsplit(link).path).rpartition('/')[2]
        parts = file[: -len('.whl')].split('-') if file.endswith('.whl') else []
        if (
            len(parts) >= 5
            and (parts[0].lower(), parts[1].partition('+')[0]) == (name, version)
            and python_tag in parts[-3].split('.')
            and system in parts[-1]
            and parts[-1].endswith(f'_{machine}')
        ):
            return link
    return None


def check_compiler(python_include):
    """Raises EnvError where mmcv can't be built, saying what to install."""
    names = [os.environ['CXX']] if os.environ.get('CXX') else ['c++', 'g++']
    if not any(shutil.which(shlex.split(name)[0]) for name in names):
        raise EnvError(
            f'no C++ compiler ({", ".join(names)}) on PATH, and mmcv has to be '
            'built from source. Install one: `sudo apt install g++` (Debian, '
            'Ubuntu), `sudo dnf install gcc-c++` (Fedora, RHEL), '
            '`xcode-select --install` (macOS). Then run the same command again.'
        )
    if not Path(python_include, 'Python.h').exists():
        raise EnvError(
            f'no Python.h in {python_include}, and mmcv has to be built from '
            'source. Debian and Ubuntu have it in python3-dev (python3.11-dev '
            'for Python 3.11). Then run the same command again.'
        )


def build_jobs():
    """Compilers to run at once: one a core, and 3 GiB of memory for each."""
    cores = (
        len(os.sched_getaffinity(0))
        if hasattr(os, 'sched_getaffinity')
        else os.cpu_count()
    )
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    return max(1, min(cores, memory // (3 * GIB)))


def hash_files(paths, *more):
    """Hashes names and contents of files, and of all files in folders."""
    digest = hashlib.sha256(repr(more).encode())
    for path in paths:
        files = sorted(path.rglob('*')) if path.is_dir() else [path]
        for file in files:
            inside = file.relative_to(path.parent)
            if file.is_file() and not NOT_SOURCES('', inside.parts):
                digest.update(f'{inside} {os.access(file, os.X_OK)}'.encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def duration(seconds):
    return '{} min {:02d} s'.format(*divmod(round(seconds), 60))


class Environment:
    """A stack's virtual environment and what has been done to it.

    Args:
        stack (Stack): The stack.
        python (Python, optional): What to make it with; None if it is there.
    """

    def __init__(self, stack, python=None):
        self.stack = stack
        self.base = python
        self.folder = ROOT / stack.folder
        self.python = str(self.folder / 'bin' / 'python')
        self.log = self.folder / 'make-env.log'
        self.stamp = self.folder / 'make-env.json'
        self.env = {
            name: value
            for name, value in os.environ.items()
            if name not in ('PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV')
        }
        self.env.update(PIP_DISABLE_PIP_VERSION_CHECK='1', PYTHONNOUSERSITE='1')

    def make(self):
        """Brings the environment up to date, step by step."""
        self.check_venv()
        with self.lock():
            if self.done.items() >= self.wanted().items():
                print(f'  {self.folder.name} is up to date')
                self.warn()
                return
            self.make_venv()
            wanted = self.wanted()
            if self.done.get('stack') != wanted['stack']:
                self.pip(
                    'torch and the mm libraries (about 5 GB)',
                    'install',
                    '-r',
                    str(self.stack.requirements),
                )
                self.install_mmcv()
                self.mark(stack=wanted['stack'])
            if self.done.get('package') != wanted['package']:
                self.install_package()
                self.mark(package=wanted['package'])
            print(f'  {self.folder.name} is ready')
            self.warn()

    def warn(self):
        """Says last, where it is seen, what the environment lacks."""
        if self.done.get('warning'):
            print(f'  WARNING: {self.done["warning"]}')

    @contextlib.contextmanager
    def lock(self):
        """Keeps a second `make env` out while this one works."""
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / 'make-env.lock', 'w') as self.lock_file:
            try:
                fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print(
                    f'  waiting for another `make env` in {self.folder.name}',
                    flush=True,
                )
                fcntl.flock(self.lock_file, fcntl.LOCK_EX)
            yield

    @property
    def done(self):
        """dict[str, str]: For each step, what it was done with."""
        try:
            return json.loads(self.stamp.read_text())
        except (OSError, ValueError):
            return {}

    def wanted(self):
        """dict[str, str]: For each step, what it is to be done with now."""
        stack = self.stack.requirements, self.stack.mmcv_requirement
        sources = [ROOT / name for name in SOURCES if (ROOT / name).exists()]
        return dict(
            stack=hash_files(stack, venv_version(self.folder)),
            package=hash_files(sources),
        )

    def mark(self, **steps):
        draft = self.stamp.with_suffix('.tmp')
        draft.write_text(json.dumps({**self.done, **steps}, indent=2))
        draft.replace(self.stamp)

    def check_venv(self):
        """Raises EnvError where another environment is in the way."""
        if os.path.islink(self.python) and not os.path.exists(self.python):
            raise EnvError(
                f'the Python that made {self.folder} is gone. Remove '
                'that folder and run the same command again.'
            )
        if self.folder.exists() and not self.folder.is_dir():
            raise EnvError(f'{self.folder} is in the way: it is no folder.')
        version = venv_version(self.folder)
        if version and self.base and version[:2] != self.base.version[:2]:
            raise EnvError(
                '{} has Python {}.{}.{}'.format(self.folder, *version)
                + f', not {self.base}. Remove it to have it made anew.'
            )

    def make_venv(self):
        if venv_version(self.folder) is None or self.ask('import pip') is None:
            free = shutil.disk_usage(self.folder).free
            if free < 8 * GIB:
                raise EnvError(
                    f'{self.folder} needs 8 GB of disk (downloads '
                    f'included), {free / GIB:.1f} GB are free.'
                )
            base = self.base or find_python(self.stack)
            self.run(
                f'{self.folder.name} with {base}',
                base.path,
                '-m',
                'venv',
                str(self.folder),
            )

    def install_mmcv(self):
        """Installs mmcv: as it is, a kept wheel, a ready-made one, or a new one."""
        requirement = self.stack.mmcv_requirement.read_text().strip()
        probe = self.ask(PROBE_TORCH)
        if probe is None:
            raise EnvError(
                f'`import torch` fails in {self.folder}; see '
                f'{self.python} -c "import torch"'
            )
        torch = json.loads(probe.splitlines()[-1])
        self.mark(warning='')
        shelves = {}
        for cuda in (torch['cuda'], None):
            key = wheel_key(
                self.stack.name, torch['torch'], torch['tag'], torch['platform'], cuda
            )
            shelves['cuda' if cuda else 'cpu'] = cache_folder() / key
        devices = {'cpu', 'cuda'} if torch['gpu'] else {'cpu'}

        # An mmcv without a mark was put there by the user.
        known = {None, *(shelf.name for shelf in shelves.values())}
        if self.done.get('mmcv') in known and self.mmcv_serves(devices, requirement):
            return self.mark(mmcv=self.done.get('mmcv') or shelves['cpu'].name)
        # What is built for CUDA runs on a CPU too.
        kept = [shelves[name] for name in ('cuda', 'cpu') if name in shelves]
        shelf = (
            self.install_kept(kept[: 1 if torch['gpu'] else 2], devices, requirement)
            or self.install_ready(torch, kept[0], devices, requirement)
            or self.install_built(torch, shelves, requirement)
        )
        self.mark(mmcv=shelf.name)

    def mmcv_serves(self, devices, requirement):
        """Whether mmcv is installed and its operations work on some devices."""
        name, version = requirement.split('==')
        answer = self.ask(PROBE_MMCV, name)
        if answer is None:
            return False
        found = json.loads(answer.splitlines()[-1])
        return found['version'] == version and devices <= set(found['devices'])

    def install_wheel(self, title, wheel, devices, requirement):
        installed = self.pip(
            title, 'install', '--no-deps', '--force-reinstall', str(wheel), must=False
        )
        return installed and self.mmcv_serves(devices, requirement)

    def install_kept(self, shelves, devices, requirement):
        """Installs a wheel of an earlier run; its shelf, None if none works."""
        name, version = requirement.replace('-', '_').split('==')
        for shelf in shelves:
            for wheel in shelf.glob(f'{name}-{version}-*.whl'):
                title = f'mmcv, kept in {shelf}'
                if self.install_wheel(title, wheel, devices, requirement):
                    return shelf
        return None

    def keep(self, wheel, shelf):
        """Puts a wheel that works where later runs find it."""
        shelf.mkdir(parents=True, exist_ok=True)
        draft = shelf / f'.{wheel.name}.{os.getpid()}'
        shutil.copyfile(wheel, draft)
        draft.replace(shelf / wheel.name)
        return shelf

    def install_ready(self, torch, shelf, devices, requirement):
        """Installs a ready-made wheel and keeps it; ``shelf``, None if none works."""
        page = wheel_page(self.stack, torch['torch'], torch['cuda'])
        print(f'  mmcv as a ready-made wheel: asking {page}', flush=True)
        try:
            links = read_links(page)
        except OSError as error:
            print(f'  it can not be read: {error}')
            return None
        link = choose_wheel(links, requirement, torch['tag'], torch['platform'])
        if link is None:
            print(
                f'  it has no {requirement} for {torch["tag"]} on {torch["platform"]}'
            )
            return None
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            fetched = self.pip(
                'mmcv as a ready-made wheel',
                'download',
                '--no-deps',
                '--no-cache-dir',
                '--retries=1',
                f'--timeout={PATIENCE}',
                '-d',
                work,
                link,
                must=False,
            )
            wheels = list(Path(work).glob('*.whl')) if fetched else []
            for wheel in wheels:
                if self.install_wheel('mmcv, ready-made', wheel, devices, requirement):
                    return self.keep(wheel, shelf)
                print('  its operations do not work with this torch')
        return None

    def install_built(self, torch, shelves, requirement):
        """Builds mmcv from source where no wheel of it is kept; its shelf.

        Raises:
            EnvError: If it can't be built, or does not work.
        """
        cuda = torch['gpu'] and torch['nvcc']
        devices = {'cpu', 'cuda'} if cuda else {'cpu'}
        shelf = shelves['cuda' if cuda else 'cpu']
        if torch['gpu'] and not cuda:
            self.mark(
                warning=f'there is no nvcc of CUDA {torch["cuda"]}, so that mmcv was '
                'built for the CPU only: detectors will fail on the GPU, and all that '
                'needs operations of mmcv there. Install that CUDA toolkit, remove '
                f'{self.folder} and run the same command again.'
            )
            self.warn()
            if self.install_kept([shelf], devices, requirement):
                return shelf
        check_compiler(torch['include'])
        # One folder for all attempts: a build that was stopped goes on in it.
        work = self.folder / 'src' / shelf.name
        # pip's own cache doesn't know which torch a wheel was built for.
        options = '--no-deps', '--no-cache-dir', '--no-build-isolation'
        self.pip(
            'mmcv, its source',
            'download',
            *options,
            '--no-binary=:all:',
            '-d',
            str(work),
            requirement,
        )
        (archive,) = work.glob('*.tar.gz')
        shutil.unpack_archive(archive, work)
        build_env = dict(
            MAX_JOBS=os.environ.get('MAX_JOBS') or str(build_jobs()), MMCV_WITH_OPS='1'
        )
        if not cuda:
            build_env.update(CUDA_VISIBLE_DEVICES='', FORCE_CUDA='0')
        self.pip(
            f'mmcv, from source with {build_env["MAX_JOBS"]} compilers '
            '(minutes, this once)',
            'wheel',
            '-v',
            *options,
            '-w',
            str(work),
            './' + archive.name[: -len('.tar.gz')],
            cwd=work,
            **build_env,
        )
        (wheel,) = work.glob('*.whl')
        if not self.install_wheel('mmcv, just built', wheel, devices, requirement):
            raise EnvError(
                f'the mmcv built in {work} does not work; see '
                f'{self.python} -c "import mmcv.ops"'
            )
        self.keep(wheel, shelf)
        shutil.rmtree(work.parent)
        return shelf

    def install_package(self):
        """Installs mmlinattn as a wheel, since mim doesn't find a linked one."""
        # A copy: the build leaves nothing in the tree, nor picks anything up.
        with tempfile.TemporaryDirectory() as copy:
            for path in filter(Path.exists, (ROOT / name for name in SOURCES)):
                if path.is_dir():
                    shutil.copytree(path, Path(copy, path.name), ignore=NOT_SOURCES)
                else:
                    shutil.copy2(path, copy)
            # Without dependencies: the stack has them, some by another name.
            self.pip(
                'mmlinattn',
                'install',
                '--no-deps',
                '--force-reinstall',
                '--no-build-isolation',
                copy,
            )

    def ask(self, code, *arguments):
        """Runs Python code in the environment; None if it fails."""
        answer = subprocess.run(
            [self.python, '-c', code, *arguments],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return None if answer.returncode else answer.stdout.decode().strip()

    def pip(self, title, *arguments, **options):
        return self.run(title, self.python, '-m', 'pip', *arguments, **options)

    def run(self, title, *command, must=True, cwd=None, **env):
        """Runs a command into the log and shows that it goes on.

        Args:
            title (str): What the user reads.
            *command (str): The command.
            must (bool): Whether a failure is an error. Defaults to True.
            cwd (Path, optional): Where to run it.
            **env (str): Environment variables to add.

        Returns:
            bool: Whether the command succeeded.

        Raises:
            StepError: With the end of the log, if it fails and ``must``.
        """
        start = time.monotonic()
        tty = sys.stdout.isatty()
        print(f'  {title} ...', end='' if tty else '\n', flush=True)
        with open(self.log, 'a') as log:
            begin = log.tell()
            log.write(f'$ {shlex.join(command)}\n')
            log.flush()
            # The lock goes along: it holds for as long as anything still works.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd or self.folder,
                env={**self.env, **env},
                pass_fds=[self.lock_file.fileno()],
                start_new_session=True,
            )
        try:
            while process.poll() is None:
                try:
                    process.wait(1 if tty else HEARTBEAT)
                except subprocess.TimeoutExpired:
                    self.show_progress(begin, time.monotonic() - start, tty)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            raise
        good = process.returncode == 0
        outcome = 'done' if good else 'failed'
        print('\r\033[K' if tty else '', end='')
        print(
            f'  {title}: {outcome} in {duration(time.monotonic() - start)}', flush=True
        )
        if must and not good:
            tail = '\n'.join(self.log_since(begin)[-25:])
            raise StepError(f'{title} failed. {self.log} ends so:\n{tail}')
        return good

    def log_since(self, begin):
        with open(self.log, errors='replace') as log:
            log.seek(begin)
            return log.read().splitlines()

    def show_progress(self, begin, spent, tty):
        """Prints the last line of the log, or how far a compilation is."""
        lines = [
            line for line in self.log_since(begin) if not line.startswith('WARNING')
        ]
        news = lines[-1].strip()
        for line in reversed(lines[-500:]):
            match = re.match(r'\s*\[(\d+)/(\d+)\] ', line)
            if match:
                news = 'compiled {} of {} files'.format(*match.groups())
                break
        width = shutil.get_terminal_size().columns - 1
        line = f'    {duration(spent)}  {news}'[:width]
        print(f'\r\033[K{line}' if tty else line, end='' if tty else '\n', flush=True)


class Parser(argparse.ArgumentParser):
    """Reports an error in one line; the package's own parser needs mmengine."""

    def error(self, message):
        self.exit(2, f'make env: error: {message}\n')


def parse_args(argv=None):
    parser = Parser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        '--stack',
        choices=STACKS,
        help='openmmlab: the released mm libraries, Python '
        f'{STACKS["openmmlab"].python_range}; modern: the maintained onedl '
        f'ones, Python {STACKS["modern"].python_range}. Default: openmmlab '
        'where a Python for it is found, otherwise modern.',
    )
    parser.add_argument(
        '--python', help='the interpreter to use, instead of searching for one'
    )
    parser.add_argument(
        '--print-folder',
        action='store_true',
        help="only print the environment's folder and make nothing",
    )
    parser.add_argument(
        '--print-stacks',
        action='store_true',
        help='only print the stacks that have their Python here',
    )
    parser.add_argument(
        '--debug', action='store_true', help='show the traceback of an error'
    )
    return parser.parse_args(argv)


def main(argv=None):
    args = parse_args(argv)
    try:
        if args.print_stacks:
            print(*usable_stacks(args.python))
            return
        stack, python, reason = choose_stack(args.stack, args.python)
        if args.print_folder:
            print(stack.folder)
            return
        print(f'{stack.name} stack: {reason}', flush=True)
        Environment(stack, python).make()
    except (EnvError, OSError) as error:
        if args.debug:
            traceback.print_exc()
        print(f'make env: error: {error}', file=sys.stderr)
        # 2 as for a wrong argument: nothing was tried yet, or nothing can be
        sys.exit(1 if isinstance(error, StepError) else 2)
    except KeyboardInterrupt:
        sys.exit('\nmake env: stopped; run the same command again to go on')


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
