"""The built and installed package, and the cost of importing it."""

import os
import re
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from contextlib import nullcontext
from email.parser import Parser
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from loading import ROOT, run_command

import mmlinattn

pytestmark = pytest.mark.modern_full

MIM_FILES = ('tools', 'configs', 'model-index.yml', 'dataset-index.yml')
BUILT_FROM = (
    *MIM_FILES,
    *('mmlinattn', 'setup.py', 'pyproject.toml', 'MANIFEST.in', 'LICENSE', 'README.md'),
)


def run(*command, cwd=None):
    """Output of a command, without the caller's PYTHONPATH."""
    return run_command(*command, cwd=cwd, env={**os.environ, 'PYTHONPATH': ''}).strip()


def pip(python, *args):
    options = ['--quiet', '--no-deps', '--no-build-isolation']
    run(python, '-m', 'pip', *args, *options, '--disable-pip-version-check')


def copy_tree(to):
    """Copies the files of a checkout, so that no build leaves a trace in it."""
    to.mkdir()
    ignore = shutil.ignore_patterns('__pycache__', '.mim', '*.egg-info')
    for path in (ROOT / name for name in BUILT_FROM):
        if path.is_dir():
            shutil.copytree(path, to / path.name, ignore=ignore)
        else:
            shutil.copy2(path, to)
    (to / 'tests').mkdir()  # which setuptools takes into sdists by its name
    (to / 'tests' / 'test_x.py').touch()
    return to


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """A wheel, made from an sdist."""
    folder = tmp_path_factory.mktemp('wheel')
    tree = copy_tree(folder / 'tree')
    run(sys.executable, 'setup.py', '-q', 'sdist', '-d', folder, cwd=tree)
    pip(sys.executable, 'wheel', '-w', folder, *folder.glob('*.tar.gz'))
    (path,) = folder.glob('*.whl')
    with tarfile.open(*folder.glob('*.tar.gz')) as sdist:
        names = [name.partition('/')[2] for name in sdist.getnames()]
    assert not [name for name in names if name.startswith('tests')]
    return zipfile.ZipFile(path)


def test_wheel_carries_the_package_and_what_mim_needs(wheel):
    info = f'mmlinattn-{mmlinattn.__version__}.dist-info/'
    expected = {'mmlinattn/py.typed'}
    for kind in ('py', 'template'):
        for path in (ROOT / 'mmlinattn').rglob(f'*.{kind}'):
            if '.mim' not in path.parts:
                expected.add(str(path.relative_to(ROOT)))
    for path in (ROOT / name for name in MIM_FILES):
        for file in path.rglob('*') if path.is_dir() else [path]:
            if file.is_file() and '__pycache__' not in file.parts:
                expected.add(f'mmlinattn/.mim/{file.relative_to(ROOT)}')
    assert {name for name in wheel.namelist() if not name.startswith(info)} == expected
    assert wheel.read(f'{info}top_level.txt') == b'mmlinattn\n'
    script = wheel.getinfo('mmlinattn/.mim/tools/dist_train.sh')
    assert script.external_attr >> 16 & 0o100  # it can be executed


def test_install_leaves_torch_and_mm_libraries_alone(wheel):
    text = wheel.read(f'mmlinattn-{mmlinattn.__version__}.dist-info/METADATA')
    metadata = Parser().parsestr(text.decode())
    needs = metadata.get_all('Requires-Dist')
    assert [x for x in needs if 'extra' not in x] == ['torch>=2.1']
    extras = {'all', 'data', 'deploy', 'det', 'mm', 'onedl', 'pretrain', 'seg', 'tests'}
    assert set(metadata.get_all('Provides-Extra')) == {*extras, 'timm'}
    # distributions of one stack never come over those of the other
    for extra in ('mm', 'det', 'seg', 'pretrain', 'onedl', 'all'):
        marked = [x for x in needs if re.search(rf'\W{extra}\W', x.partition(';')[2])]
        current = [x for x in marked if not re.search(r'< .3\.10', x)]
        names = [x for x in current if re.match('(onedl-)?mm', x)]
        is_onedl = extra in ('onedl', 'all')
        assert names and {x.startswith('onedl-') for x in names} == {is_onedl}
        assert any('mmcv' in x for x in names) == is_onedl


@pytest.mark.parametrize('links', [True, pytest.param(False, marks=pytest.mark.full)])
def test_editable_install(tmp_path, links):
    tree = copy_tree(tmp_path / 'tree')
    run(sys.executable, '-m', 'venv', '--without-pip', tmp_path / 'venv')
    python = tmp_path / 'venv' / 'bin' / 'python'
    code = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    site = Path(run(python, '-c', code))
    # pip and setuptools come from the environment of the tests
    base = site / 'base.pth'
    base.write_text(sysconfig.get_path('purelib'))
    if not links:
        code = 'import os\ndef symlink(*args, **kwargs): raise OSError\n'
        (site / 'sitecustomize.py').write_text(f'{code}os.symlink = symlink\n')
    pip(python, 'install', '-e', tree)
    for name in MIM_FILES:
        made = tree / 'mmlinattn' / '.mim' / name
        assert made.is_symlink() == links and made.exists()
    base.unlink()
    path = run(python, '-c', 'import mmlinattn; print(mmlinattn.__file__)', cwd='/')
    assert path == str(tree / 'mmlinattn' / '__init__.py')


def test_import_is_cheap():
    code = 'import sys, mmlinattn; print({"torch", "mmengine"} & set(sys.modules))'
    assert run(sys.executable, '-c', code, cwd='/') == 'set()'


@pytest.fixture
def installed(monkeypatch):
    """The only installed versions of libraries, by distribution."""
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
        ('onedl-mmcv', '1.99', 'mmcv>=2.0.0,<3.0.0', 'onedl-mmcv'),
    ],
)
def test_versions_that_do_not_fit_are_named(installed, name, version, fits, hint):
    installed.update({'mmengine': '0.10.7', name: version})
    with pytest.raises(ImportError, match=f'{name} {version} is installed') as caught:
        mmlinattn.check_versions()
    assert fits in str(caught.value) and hint in str(caught.value)


def test_mmengine_has_two_names(installed):
    with pytest.raises(ImportError, match='none of mmengine, onedl-mmengine is'):
        mmlinattn.check_versions()
    installed['onedl-mmengine'] = '0.10.12'
    mmlinattn.check_versions()


@pytest.mark.parametrize(
    'numpy, torch, fits',
    [
        ('1.26.4', '2.1.2', True),
        ('2.0.0', '2.1.2+cpu', False),
        ('2.2.6', '2.2.2', False),
        ('2.5.5', '2.3.0', True),
        ('1.26.4', '2.12.1', True),
    ],
)
def test_numpy_beside_torch(installed, numpy, torch, fits):
    installed.update(numpy=numpy, torch=torch)
    refusal = pytest.raises(ImportError, match=f'numpy {numpy} .*torch {torch[:5]}')
    with nullcontext() if fits else refusal:
        mmlinattn.check_numpy()


def test_the_address_of_the_code_is_one():
    """Whoever publishes it elsewhere changes it everywhere."""
    setup = (ROOT / 'setup.py').read_text('utf-8')
    (address,) = re.findall(r"^URL = '(.+)'", setup, re.M)
    owner = address.rsplit('/', 2)[1]
    # coverage's files, which begin with a point, are no text
    pages = [*ROOT.glob('docs/**/*.md'), *ROOT.glob('[!.]*.*')]
    pages += ROOT.glob('.github/**/*')
    texts = [x.read_text('utf-8') for x in pages if x.is_file() and x.suffix != '.png']
    seen = re.findall(rf'https://github\.com/{owner}/[\w-]+', ''.join(texts))
    assert len(seen) > 6 and set(seen) == {address}
    clone = f'git clone {address}'
    for page in ('README.md', 'docs/start.md', 'docs/use/own_data.md'):
        assert clone in (ROOT / page).read_text('utf-8')


def test_badges_are_true():
    """They say what setup.py does, in the page and in their files."""
    readme, setup = ((ROOT / x).read_text('utf-8') for x in ('README.md', 'setup.py'))
    badges = re.findall(r'!\[(.+)\]\((docs/images/badges/.+)\)', readme)
    (license,) = re.findall(r"license='(.+)'", setup)
    (torch,) = re.findall(r"'torch>=(.+)'", setup)
    ((first, behind),) = re.findall(r'for minor in range\((\d+), (\d+)\)', setup)
    last = int(behind) - 1
    assert [text for text, _ in badges] == [
        f'License: {license}',
        f'Python 3.{first} - 3.{last}',
        f'torch {torch} or newer',
        'No compiler needed',
    ]
    labels = [(ROOT / path).read_text('utf-8') for _, path in badges]
    words = license, f'3.{first} to 3.{last}', f'{torch} or newer', 'not needed'
    assert all(f'>{word}</text>' in label for word, label in zip(words, labels))


@pytest.mark.full
def test_all_in_an_empty_environment(wheel, tmp_path):
    """From photos to predictions in an empty folder, with what pip installs, by the
    commands that are printed."""
    run(sys.executable, '-m', 'venv', tmp_path / 'venv')
    bin, folder = tmp_path / 'venv' / 'bin', tmp_path / 'my folder'
    folder.mkdir()
    options = '--quiet', '--disable-pip-version-check'
    run(bin / 'python', '-m', 'pip', 'install', *options, f'{wheel.filename}[all]')
    path = os.pathsep.join([str(bin), os.environ['PATH']])
    env = dict(os.environ, PATH=path, PYTHONPATH='', CUDA_VISIBLE_DEVICES='')

    def use(line):
        return run_command('bash', '-c', line, cwd=folder, env=env).splitlines()

    numbers = '--num-train 24 --num-val 8 --size 96 96'
    use(f'mmlinattn shapes --layout shapes --out photos {numbers}')
    model = '--backbone softpp-micro-linear --detector retinanet --epochs 2'
    *_, train = use(f'mmlinattn new-config --data photos --task det {model} --out a.py')
    assert train == 'mmlinattn train a.py'
    summary = dict(line.split(': ', 1) for line in use(train) if ': ' in line)
    commands = {name: summary[name].strip() for name in ('test', 'predict', 'export')}
    assert all(line.startswith('mmlinattn ') for line in commands.values())
    assert any('bbox_mAP' in line for line in use(commands['test']))
    use(commands['predict'].replace('PHOTOS', 'photos/val2017'))
    assert [*folder.rglob('work_dirs/**/*_predictions.png')]
    checkpoint = summary['checkpoint'].strip()
    both = f'a.py a.py --checkpoint {checkpoint} {checkpoint}'
    use(f'mmlinattn compare {both} --image photos/val2017 --out both')
    assert len([*(folder / 'both').glob('*_predictions.json')]) == 8
    assert any('gives the model' in line for line in use(commands['export']))
    use('mmlinattn predict a.onnx photos/val2017 --out found')
    assert (folder / 'found' / 'predictions.json').is_file()
