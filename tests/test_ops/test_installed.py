"""mmcv as people have it: what the command says of it, does, and leaves alone."""

import shutil
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest
from loading import BLOCK, ROOT, run_command

from mmlinattn.ops import __main__ as command
from mmlinattn.ops import check, installed

SOURCE = installed.SOURCE.read_text()
LITE = 'pip install mmcv-lite==2.1.0 && python -m mmlinattn.ops --install'
MMDET = "mmcv_minimum_version = '2.0.0rc4'\nmmcv_maximum_version = '2.2.0'\n"
MMSEG = "MMCV_MIN = '2.0.0rc4'\nMMCV_MAX = '2.2.0'\n"
# no library for any Python, and one for another Python
BROKEN, FOREIGN = f'_ext{EXTENSION_SUFFIXES[0]}', '_ext.cpython-36m-x86_64-other.so'


def distribution(site, name, version):
    folder = site / f'{name.replace("-", "_")}-{version}.dist-info'
    folder.mkdir(parents=True)
    text = f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n'
    (folder / 'METADATA').write_text(text)


def package(site, name, text='', **files):
    folder = site / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / '__init__.py').write_text(text)
    for file, content in files.items():
        (folder / f'{file}.py').write_text(content)
    return folder


def mmcv(site, version, *names, file=None):
    """A package mmcv, its distributions, and a file in it that has no meaning."""
    for name in names:
        distribution(site, name, version)
    folder = package(site, 'mmcv', version=f"__version__ = '{version}'\n")
    if file:
        (folder / file).write_bytes(b'no library')
    return folder


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The only folder where packages and distributions are found."""
    site = tmp_path / 'site'
    site.mkdir()
    monkeypatch.setattr(sys, 'path', [str(site)])
    for name in ('mmcv', 'mmcv._ext', *installed.LIBRARIES):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return site


@pytest.fixture
def call(monkeypatch, capsys):
    """Calls the command in this process; its only line, and its exit code."""

    def call(action):
        monkeypatch.setattr(sys, 'argv', ['ops', action])
        code = 0
        try:
            command.main()
        except SystemExit as stop:
            code = stop.code
        output, error = capsys.readouterr()
        assert (output + error).count('\n') == 1 and code == (2 if error else 0)
        return output or error

    return call


# what is installed; what is said of it, and the one command; whether --install helps
CASES = {
    'no mmcv': (lambda site: None, ['there is no mmcv: ', LITE], False),
    'mmcv-lite': (
        lambda site: mmcv(site, '2.1.0', 'mmcv-lite'),
        ['mmcv-lite 2.1.0 in ', 'has no operators', ': python -m mmlinattn.ops --in'],
        True,
    ),
    'without operators': (
        lambda site: mmcv(site, '2.1.0', 'mmcv'),
        ['mmcv 2.1.0 in ', 'has no operators', ': python -m mmlinattn.ops --install'],
        True,
    ),
    'a source tree': (
        lambda site: mmcv(site, '2.1.0'),
        ['mmcv 2.1.0 in ', 'has no operators'],
        True,
    ),
    'for another Python': (
        lambda site: mmcv(site, '2.1.0', 'mmcv', file=FOREIGN),
        ['mmcv 2.1.0 in ', 'has no operators'],
        True,
    ),
    'does not load': (
        lambda site: mmcv(site, '2.1.0', 'mmcv', file=BROKEN),
        ['does not load', BROKEN, f': pip uninstall -y mmcv && {LITE}'],
        False,
    ),
    'mmcv 2.2 beside mmdet': (
        lambda site: (mmcv(site, '2.2.0', 'mmcv'), package(site, 'mmdet', MMDET)),
        ['mmcv 2.2.0', 'too new for mmdet, which needs <2.2.0', '-y mmcv &&', LITE],
        False,
    ),
    'mmcv-lite 2.2 beside mmseg': (
        lambda site: (mmcv(site, '2.2.0', 'mmcv-lite'), package(site, 'mmseg', MMSEG)),
        ['too new for mmseg, which needs <2.2.0', '-y mmcv-lite &&', LITE],
        False,
    ),
    'onedl-mmcv beside mmdet': (
        lambda site: (
            mmcv(site, '2.3.6', 'onedl-mmcv'),
            package(site, 'mmdet', MMDET),
            distribution(site, 'onedl-mmengine', '0.10.8'),
        ),
        ['onedl-mmcv 2.3.6', 'too new for mmdet', '-y onedl-mmcv &&', LITE],
        False,
    ),
    'onedl-mmcv': (
        lambda site: (
            mmcv(site, '2.3.6', 'onedl-mmcv'),
            package(site, 'mmdet', "__version__ = '3.5.1'\n"),
        ),
        ['onedl-mmcv 2.3.6 in ', 'has no operators'],
        True,
    ),
    'onedl-mmcv that does not load': (
        lambda site: (
            mmcv(site, '2.3.6', 'onedl-mmcv', file=BROKEN),
            distribution(site, 'onedl-mmengine', '0.10.8'),
        ),
        ['does not load', '-y onedl-mmcv && pip install onedl-mmcv && python -m'],
        False,
    ),
    'mmcv-full': (
        lambda site: mmcv(site, '1.7.2', 'mmcv-full', file=BROKEN),
        ['mmcv-full 1.7.2 in', 'of OpenMMLab 1', '-y mmcv-full &&', LITE],
        False,
    ),
    'mmcv and mmcv-lite': (
        lambda site: mmcv(site, '2.1.0', 'mmcv', 'mmcv-lite'),
        ['mmcv and mmcv-lite 2.1.0', '2 distributions', '-y mmcv mmcv-lite &&', LITE],
        True,
    ),
}


@pytest.mark.parametrize('name', CASES)
def test_what_there_is(site, call, name):
    build, parts, helps = CASES[name]
    build(site)
    before = {x: x.read_bytes() for x in site.rglob('*') if x.is_file()}
    text = call('--status')
    assert all(part in text for part in parts), text
    done = call('--install')
    file = site / 'mmcv' / '_ext.py'
    assert file.exists() == helps
    if helps:
        assert 'has the operators of mmlinattn' in done
        assert file.read_text() == SOURCE
    else:
        assert done == text
    call('--remove')
    assert {x: x.read_bytes() for x in site.rglob('*') if x.is_file()} == before


def test_an_older_copy_is_replaced(site, call):
    file = mmcv(site, '2.1.0', 'mmcv-lite') / '_ext.py'
    file.write_text(f'{SOURCE.splitlines()[0]}\n"""')
    assert 'has the operators of mmlinattn' in call('--status')
    call('--install')
    assert file.read_text() == SOURCE


def test_a_compiled_part_wins(site, call, monkeypatch):
    monkeypatch.setattr(installed, '_load_error', lambda file: '')
    folder = mmcv(site, '2.1.0', 'mmcv', file=BROKEN)
    for action in ('--status', '--install', '--remove'):
        assert 'has its compiled part, and uses it' in call(action)
    assert not (folder / '_ext.py').exists()
    shutil.copy(installed.SOURCE, folder)
    # Python prefers it to a .py of the same name
    spec = PathFinder.find_spec('mmcv._ext', [str(folder)])
    assert spec.origin == str(folder / BROKEN)


def test_a_library_without_operators(site):
    """Such as one of another name; a real one is loaded by Python itself."""
    folder = mmcv(site, '2.1.0', 'mmcv')
    pytest.importorskip('_bisect')
    origin = sys.modules['_bisect'].__spec__.origin
    if not origin or not Path(origin).is_file():
        pytest.skip('this Python has it built in')
    shutil.copy(origin, folder / BROKEN)
    assert 'PyInit__ext' in installed.find().error


@pytest.mark.parametrize('action', ['--install', '--remove', '--status'])
def test_a_file_of_others_stays(site, call, action):
    file = mmcv(site, '2.1.0', 'mmcv-lite') / '_ext.py'
    file.write_text('# mine')
    assert 'error: ' in call(action) and 'is not of mmlinattn' in call(action)
    assert file.read_text() == '# mine'


def test_a_folder_that_cannot_be_written(site, call):
    file = mmcv(site, '2.1.0', 'mmcv-lite') / '_ext.py'
    (file / 'file').mkdir(parents=True)  # root may write anywhere else
    assert '_ext.py' in call('--install') and 'error: ' in call('--install')


def test_only_what_is_needed_is_asked_for(site):
    """A classifier needs no operators, and no mmdet."""
    mmcv(site, '2.1.0', 'mmcv', file=BROKEN)
    for libraries in ((), ('mmpretrain',), ('mmengine',)):
        check(*libraries)
    for library in installed.NEED_OPERATORS:
        with pytest.raises(ImportError, match='does not load'):
            check(library)
    shutil.rmtree(site / 'mmcv')
    mmcv(site, '2.2.0', 'mmcv-lite')
    package(site, 'mmdet', MMDET)
    check('mmpretrain')
    with pytest.raises(ImportError, match='too new for mmdet'):
        check('mmdet')


RUN = """
import runpy, sys
sys.argv = [{tool!r}, *{words!r}]
sys.path.insert(0, {folder!r})
import mmlinattn, mmlinattn.ops
runpy.run_path(sys.argv[0], run_name='__main__')
"""
CONFIG = 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py'
TOOLS = {
    'train.py': [CONFIG],
    'test.py': [CONFIG, 'none.pth'],
    'analysis_tools/get_flops.py': [CONFIG],
    'analysis_tools/compare_predictions.py': [CONFIG, '--image', 'none.jpg'],
    'deployment/export.py': [CONFIG, 'none.pth'],
}
FEW = ('train.py', 'deployment/export.py')


@pytest.mark.openmmlab
@pytest.mark.parametrize(
    'tool', [pytest.param(x, marks=() if x in FEW else pytest.mark.full) for x in TOOLS]
)
@pytest.mark.parametrize('case', ['no mmcv', 'mmcv-full'])
def test_tools_end_in_a_line(tmp_path, tool, case):
    words = [x if x != CONFIG else str(ROOT / CONFIG) for x in TOOLS[tool]]
    tool = ROOT / 'tools' / tool
    code = RUN.format(tool=str(tool), words=words, folder=str(tool.parent))
    if case == 'no mmcv':
        code = BLOCK.format(blocked=('mmcv',)) + code
    else:
        mmcv(tmp_path, '1.7.2', 'mmcv-full')
        code = f'import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}'
    error = run_command(sys.executable, '-W', 'ignore', '-c', code, fails=True)
    (line,) = error.strip().splitlines()
    known = {'no mmcv': f'there is no mmcv: {LITE}', 'mmcv-full': 'mmcv-full 1.7.2'}
    assert known[case] in line


@pytest.mark.openmmlab
def test_a_detector_and_operators_that_do_not_load(tmp_path):
    """The libraries' own error would be a traceback on a symbol."""
    import mmcv as real

    ignored = shutil.ignore_patterns('_ext*', '__pycache__')
    folder = tmp_path / 'mmcv'
    shutil.copytree(Path(real.__file__).parent, folder, ignore=ignored)
    (folder / BROKEN).write_bytes(b'no library')
    tools = ROOT / 'tools'
    words = [str(ROOT / CONFIG)]
    code = RUN.format(tool=str(tools / 'train.py'), words=words, folder=str(tools))
    code = f'import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}'
    error = run_command(sys.executable, '-W', 'ignore', '-c', code, fails=True)
    (line,) = error.strip().splitlines()
    assert 'has a compiled part that does not load' in line and LITE in line
