import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from loading import ROOT, load_module
from PIL import Image

from mmlinattn.cli import parser as cli
from mmlinattn.utils import faults
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.files import MARK

pytestmark = pytest.mark.openmmlab

TOOLS = ROOT / 'tools'
# make_env.py makes the environment, and needs none
SCRIPTS = [
    str(x.relative_to(TOOLS))
    for x in sorted(TOOLS.rglob('*.py'))
    if x.name != 'make_env.py'
]


@pytest.fixture
def parser():
    parser = cli.Parser(prog='tool.py', description='Two\nlines.')
    parser.add_argument('--number', type=int)
    parser.add_argument('--out', type=cli.output_file)
    parser.add_argument('--threads', type=cli.number(int, 1, 1024))
    parser.add_argument('--folder', type=cli.output_folder)
    return parser


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--number', 'x'], "argument --number: invalid int value: 'x'"),
        (['--num', '1'], 'unrecognized arguments: --num 1'),
        (['a\nb'], 'unrecognized arguments: a b'),
        (['--threads', '0'], 'argument --threads: must be 1 to 1024, got 0'),
    ],
)
def test_wrong_arguments_end_in_one_line(parser, error_of, argv, message):
    assert error_of(parser.parse_args, argv) == f'tool.py: error: {message}'
    assert 'Two\nlines.' in parser.format_help()


def test_options_keep_their_blanks(parser):
    """Those inside of words; MMEngine removes all."""
    cli.add_cfg_options(parser, 'a=1')
    words = ['a=my weights/b  c.pth', 'b=[traffic light, car]', 'c=1, 2', 'd=(1, a b)']
    words.append('e.f = small')  # blanks around the sign are no part of either
    options = parser.parse_args(['--cfg-options', *words]).cfg_options
    wanted = ['my weights/b  c.pth', ['traffic light', 'car'], [1, 2], (1, 'a b')]
    assert list(options.values()) == [*wanted, 'small'] and 'e.f' in options


@pytest.mark.parametrize(
    'error, message',
    [
        (ValueError('too\nlarge'), 'too large'),
        (KeyError("no 'x'"), "no 'x'"),
        (FileNotFoundError(2, 'No such file', 'x'), "[Errno 2] No such file: 'x'"),
        (ValueError(), 'ValueError'),
    ],
)
@pytest.mark.parametrize('debug', [False, True])
def test_error_ends_in_one_line(capsys, monkeypatch, error, message, debug):
    monkeypatch.setattr(sys, 'argv', ['/a/tool.py', *['--debug'] * debug])
    with pytest.raises(SystemExit) as stop, cli.errors_in_one_line(*cli.INPUT_ERRORS):
        raise error
    assert stop.value.code == 2
    *trace, last = capsys.readouterr().err.splitlines()
    assert last == f'tool.py: error: {message}'
    assert any('raise error' in line for line in trace) == debug


@pytest.mark.parametrize(
    'name, message',
    [
        ('new/x.json', None),
        ('empty', None),
        ('own.json', None),
        ('file', 'file exists: give --overwrite to replace it'),
        ('folder', 'folder is not empty: give --overwrite to replace files in it'),
    ],
)
def test_what_others_wrote_stays(tmp_path, monkeypatch, error_of, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'folder').mkdir()
    for path in ('folder/x', 'file', 'own.json'):
        (tmp_path / path).write_text(MARK * (path == 'own.json'))
    parser = cli.Parser()
    cli.add_overwrite(parser)
    cli.protect(parser.parse_args(['--overwrite']), Path(name))
    args = parser.parse_args([])
    if message is None:
        return cli.protect(args, Path(name))
    assert error_of(cli.protect, args, Path('new'), Path(name)).endswith(message)


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--out', 'new/x.json'], ''),
        (['--out', 'file'], ''),
        (['--out', 'folder'], "'folder' is a folder, not a file"),
        (['--out', 'file/x'], "'file/x' can not be written"),
        (['--out', 'closed/x'], "'closed/x' can not be written"),
        (['--folder', 'file'], "'file' is a file, not a folder"),
    ],
)
def test_output(parser, tmp_path, monkeypatch, error_of, argv, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'file').touch()
    (tmp_path / 'closed').mkdir(mode=0o500)
    if os.access(tmp_path / 'closed', os.W_OK):  # root may write everywhere
        monkeypatch.setattr(os, 'access', lambda path, mode: path.name != 'closed')
    if not message:
        assert parser.parse_args(argv).out == Path(argv[1])
        return
    assert message in error_of(parser.parse_args, argv)


MODULES = {
    ' train': ['mine.py'],
    ' predict': ['mine.onnx', 'photos'],
    ' run': ['mmlinattn'],
    '.ops': ['--status'],
    '.deployment.predictor': [],
}


@pytest.mark.parametrize('name', [*MODULES, *SCRIPTS])
def test_another_python_ends_in_one_line(name):
    """One without any library."""
    words = [TOOLS / name]
    if name in MODULES:
        words = ['-m', *f'mmlinattn{name}'.split(), *MODULES[name]]
    env = dict(PYTHONPATH=f'{TOOLS.parent}')
    process = subprocess.run(
        [sys.executable, '-S', *words], capture_output=True, text=True, cwd='/', env=env
    )
    assert process.returncode in (1, 2) and process.stderr.count('\n') == 1
    assert re.search('make env|pip install', process.stderr)


def check_and_fail(kind):
    """What a line of ours does: a check, a fault, and a fault inside of torch."""
    if kind == 'check':
        raise TypeError('head must be a dict, got 3')
    if kind == 'torch':
        return torch.nn.functional.linear(torch.ones(2, 2), None)
    return None.shape


@pytest.mark.parametrize('kind, is_fault', (('check', 0), ('fault', 1), ('torch', 1)))
def test_faults_are_not_told_as_wrong_input(kind, is_fault, monkeypatch):
    """They keep their traceback, below a line that asks for a report."""
    error = None
    try:
        check_and_fail(kind)
    except (AttributeError, TypeError) as caught:
        error = caught
    assert not is_own_fault(error)  # of the package
    monkeypatch.setattr(faults, '_PACKAGE', Path(__file__).parent)
    assert is_own_fault(error) == is_fault


@pytest.mark.parametrize(
    'tool, options',
    [
        ('analysis_tools/get_flops.py', ['--shape', '64']),
        ('deployment/export.py', ['none.pth']),
        ('analysis_tools/compare_predictions.py', ['--image', '{}']),
    ],
)
def test_a_fault_in_a_backbone(tool, options, monkeypatch, tmp_path, capsys):
    """An AttributeError in the package is no error in a config."""
    monkeypatch.setattr('mmlinattn.models.backbones.soft.per_stage', None)
    image = tmp_path / 'photo.png'
    Image.new('RGB', (64, 64)).save(image)
    config = 'configs/soft/softpp-t_in1k.py'
    argv = [str(ROOT / config), *(x.format(image) for x in options)]
    main = load_module(f'tools/{tool}').main
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        main(argv)
    assert 'this is a fault of mmlinattn: please report' in capsys.readouterr().err
