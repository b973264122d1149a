"""The package as it is built and installed, and what an import of it costs."""

import importlib
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import mmlinattn
import mmlinattn.models

pytestmark = pytest.mark.modern

ROOT = Path(__file__).resolve().parents[1]
MIM_FILES = [
    name
    for name in ('tools', 'configs', 'model-index.yml', 'dataset-index.yml')
    if (ROOT / name).exists()
]


def run(*command, cwd=None, **env):
    """Runs a command without the caller's PYTHONPATH."""
    clean = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**clean, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def pip(python, *args):
    done = run(
        python,
        '-m',
        'pip',
        *args,
        '--quiet',
        '--no-deps',
        '--no-build-isolation',
        '--disable-pip-version-check',
    )
    assert done.returncode == 0, done.stdout


def copy_tree(to):
    """Copies what a checkout has, so that no build leaves a trace in it."""
    ignore = shutil.ignore_patterns('__pycache__', '.mim', '*.egg-info')
    to.mkdir()
    for name in (
        'mmlinattn',
        'tests',
        *MIM_FILES,
        'setup.py',
        'pyproject.toml',
        'MANIFEST.in',
        'LICENSE',
        'README.md',
    ):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name, ignore=ignore)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, to)
    return to


def files_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info for info in archive.infolist()}


def read(wheel, name):
    folder = f'mmlinattn-{mmlinattn.__version__}.dist-info'
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f'{folder}/{name}').decode()


@pytest.fixture(scope='module')
def built(tmp_path_factory):
    """A wheel from a tree in which others were built before, and its sdist."""
    folder = tmp_path_factory.mktemp('built')
    tree = copy_tree(folder / 'tree')
    stale = tree / 'build' / 'lib' / 'mmlinattn' / 'stale.py'
    stale.parent.mkdir(parents=True)
    stale.touch()
    links = tree / 'mmlinattn' / '.mim'
    links.mkdir()
    (links / 'tests').symlink_to('../../tests')
    pip(sys.executable, 'wheel', '-w', folder, tree)
    done = run(sys.executable, 'setup.py', '-q', 'sdist', '-d', folder, cwd=tree)
    assert done.returncode == 0, done.stdout
    (wheel,), (sdist,) = folder.glob('*.whl'), folder.glob('*.tar.gz')
    return wheel, sdist


def test_wheel_carries_what_mim_needs(built):
    names = set(files_of(built[0]))
    for name in MIM_FILES:
        path = ROOT / name
        for file in path.rglob('*') if path.is_dir() else [path]:
            if file.is_file() and '__pycache__' not in file.parts:
                assert f'mmlinattn/.mim/{file.relative_to(ROOT)}' in names
    assert read(built[0], 'top_level.txt') == 'mmlinattn\n'


def test_wheel_carries_nothing_else(built):
    names = files_of(built[0])
    info = f'mmlinattn-{mmlinattn.__version__}.dist-info'
    assert {name.split('/')[0] for name in names} == {'mmlinattn', info}
    assert not [n for n in names if 'stale' in n or 'tests' in n.split('/')]
    assert not [n for n in names if n.endswith('.pyc')]


def test_wheel_has_every_package(built):
    names = set(files_of(built[0]))
    for file in (ROOT / 'mmlinattn').rglob('*.py'):
        if '.mim' not in file.parts:
            assert str(file.relative_to(ROOT)) in names


def test_wheel_keeps_tools_executable(built):
    mode = (
        files_of(built[0])['mmlinattn/.mim/tools/misc/make_env.py'].external_attr >> 16
    )
    assert mode & 0o100


def test_metadata(built):
    metadata = Parser().parsestr(read(built[0], 'METADATA'))
    assert metadata['Name'] == 'mmlinattn'
    assert metadata['Version'] == mmlinattn.__version__
    assert metadata['Home-page'].startswith('https://')
    assert 'Apache' in metadata['License']
    assert {'det', 'seg', 'pretrain', 'all', 'cam', 'demo', 'deploy', 'tests'} == set(
        metadata.get_all('Provides-Extra')
    )
    license_files = [n for n in files_of(built[0]) if n.endswith('/LICENSE')]
    assert len(license_files) == 1


def test_install_leaves_mm_libraries_alone(built):
    metadata = Parser().parsestr(read(built[0], 'METADATA'))
    always = [req for req in metadata.get_all('Requires-Dist') if 'extra' not in req]
    assert always == ['torch>=2.1']
    assert 'mmcv' not in ' '.join(metadata.get_all('Requires-Dist'))


def test_wheel_from_sdist_is_the_same(built, tmp_path):
    wheel, sdist = built
    pip(sys.executable, 'wheel', '-w', tmp_path, sdist)
    (again,) = tmp_path.glob('*.whl')
    assert set(files_of(again)) == set(files_of(wheel))


@pytest.mark.parametrize('links', [True, False], ids=['links', 'copies'])
def test_editable_install(tmp_path, links):
    tree = copy_tree(tmp_path / 'tree')
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    site = Path(
        run(
            python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'
        ).stdout.strip()
    )
    # pip and setuptools come from the environment of the tests.
    base = site / 'base.pth'
    base.write_text(sysconfig.get_path('purelib'))
    if not links:
        (site / 'sitecustomize.py').write_text(
            'import os\n'
            'def symlink(*args, **kwargs):\n'
            '    raise OSError("no links here")\n'
            'os.symlink = symlink\n'
        )
    pip(python, 'install', '-e', tree)

    for name in MIM_FILES:
        made = tree / 'mmlinattn' / '.mim' / name
        assert made.is_symlink() == links
        if links:
            assert os.readlink(made) == os.path.join('..', '..', name)
        assert made.exists()
    base.unlink()
    fake_distribution(site, 'mmengine', '0.10.7')
    done = run(python, '-c', 'import mmlinattn; print(mmlinattn.__file__)', cwd='/')
    assert done.stdout.strip() == str(tree / 'mmlinattn' / '__init__.py')


def test_import_is_cheap():
    code = (
        'import sys, mmlinattn; print(sorted({"torch", "mmcv", "mmengine", '
        '"numpy"} & set(sys.modules)))'
    )
    assert run(sys.executable, '-c', code, cwd='/').stdout.strip() == '[]'


def test_version():
    assert '.'.join(map(str, mmlinattn.version_info)) == mmlinattn.__version__


def fake_distribution(folder, name, version):
    info = folder / f'{name.replace("-", "_")}-{version}.dist-info'
    info.mkdir(parents=True)
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
    )


@pytest.fixture
def installed(monkeypatch):
    """The only versions of libraries that there are, by distribution."""
    versions = {}

    def version(name):
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(mmlinattn.metadata, 'version', version)
    monkeypatch.setattr(mmlinattn, 'find_spec', lambda name: None)
    return versions


@pytest.mark.parametrize(
    'name, version, fits, hint',
    [
        ('mmengine', '0.9.1', 'mmengine>=0.10.0,<1.0.0', 'pip install'),
        ('onedl-mmengine', '1.0.0', 'mmengine>=0.10.0,<1.0.0', 'onedl-mmengine'),
        ('mmcv', '1.7.2', 'mmcv>=2.0.0,<3.0.0', 'mim install'),
        ('mmcv-lite', '3.0.0', 'mmcv>=2.0.0,<3.0.0', 'mim install'),
        ('onedl-mmcv', '1.99', 'mmcv>=2.0.0,<3.0.0', 'onedl-mmcv'),
    ],
)
def test_versions_that_do_not_fit_are_named(installed, name, version, fits, hint):
    installed.update({'mmengine': '0.10.7', name: version})
    with pytest.raises(ImportError, match=f'{name} {version} is installed') as caught:
        mmlinattn.check_versions()
    assert fits in str(caught.value) and hint in str(caught.value)


def test_missing_mmengine_is_named(installed):
    with pytest.raises(ImportError, match='none of mmengine, onedl-mmengine is'):
        mmlinattn.check_versions()


@pytest.mark.parametrize('mmengine', ['mmengine', 'onedl-mmengine'])
def test_mmcv_is_not_asked_for(installed, mmengine):
    installed[mmengine] = '0.10.12'
    mmlinattn.check_versions()


def test_the_registry_checks_versions(tmp_path):
    fake_distribution(tmp_path, 'mmengine', '0.9.1')
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    command = sys.executable, '-S', '-c', 'import mmlinattn; import mmlinattn.registry'
    done = run(*command, cwd='/', PYTHONPATH=path)
    assert 'mmengine 0.9.1 is installed' in done.stdout.splitlines()[-1]


def test_models_name_missing_mmcv(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mmcv', None)
    with pytest.raises(ImportError, match='needs mmcv 2, .* mmcv-lite is enough: pip'):
        importlib.reload(mmlinattn.models)


def test_command_names_missing_openmim(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, 'mim.cli', None)
    with pytest.raises(SystemExit) as stop:
        runpy.run_module('mmlinattn', run_name='__main__')
    (line,) = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and line.endswith('pip install openmim')
