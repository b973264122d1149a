import argparse
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
from mmengine.config import Config

from mmlinattn.utils import distributed, files
from mmlinattn.utils.config_keys import misspelled_keys, unknown_options
from mmlinattn_tools import cli

pytestmark = pytest.mark.modern


@pytest.fixture
def parser():
    parser = cli.Parser(prog='tool.py', description='Two\nlines.')
    parser.add_argument('--number', type=int)
    parser.add_argument('--out', type=cli.output_file)
    parser.add_argument('--threads', type=cli.threads)
    parser.add_argument('--folder', type=cli.output_folder)
    yield parser
    parser.parse_args([])  # leaves no --debug behind


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--number', 'x'], "argument --number: invalid int value: 'x'"),
        (['--number'], 'argument --number: expected one argument'),
        (['--num', '1'], 'unrecognized arguments: --num 1'),
        (['--nunber', '1'], 'unrecognized arguments: --nunber 1'),
        (['a\nb'], 'unrecognized arguments: a b'),
        *(
            (['--threads', x], f'argument --threads: must be 1 to 1024, got {x!r}')
            for x in ('0', '-1', 'x', '1000000000000')
        ),
    ],
)
def test_wrong_arguments_end_in_one_line(parser, capsys, argv, message):
    with pytest.raises(SystemExit) as stop:
        parser.parse_args(argv)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f'tool.py: error: {message}\n'


def test_description_is_printed_as_it_is(parser):
    assert 'Two\nlines.' in parser.format_help()
    assert '--debug' in parser.format_help()


def fail(error):
    raise error


@pytest.mark.parametrize(
    'error, message',
    [
        (ValueError('too\nlarge'), 'too large'),
        (KeyError("no 'x'"), "no 'x'"),
        (KeyError(3), '3'),
        (FileNotFoundError(2, 'No such file', 'x'), "[Errno 2] No such file: 'x'"),
        (ValueError(), 'ValueError'),
    ],
)
@pytest.mark.parametrize('debug', [False, True])
def test_error_ends_in_one_line(parser, capsys, monkeypatch, error, message, debug):
    monkeypatch.setattr(sys, 'argv', ['/a/tool.py'])
    parser.parse_args(['--debug'] if debug else [])
    kinds = ValueError, KeyError, OSError
    with pytest.raises(SystemExit) as stop, cli.errors_in_one_line(*kinds):
        fail(error)
    assert stop.value.code == 2
    *trace, last = capsys.readouterr().err.splitlines()
    assert last == f'tool.py: error: {message}'
    assert bool(trace) == debug
    if debug:
        assert trace[0].startswith('Traceback') and any(
            'fail(error)' in x for x in trace
        )


def test_other_errors_are_not_the_users(parser):
    with pytest.raises(RuntimeError), cli.errors_in_one_line(ValueError):
        raise RuntimeError


@pytest.mark.parametrize('text', ['new/x.json', 'x.json', './there.json'])
def test_output_file(parser, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'there.json').touch()
    assert os.fspath(parser.parse_args(['--out', text]).out) == os.path.normpath(text)
    assert [path.name for path in tmp_path.iterdir()] == ['there.json']


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
def test_what_others_wrote_stays(tmp_path, monkeypatch, capsys, name, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'folder').mkdir()
    for path in ('folder/x', 'file', 'own.json'):
        (tmp_path / path).write_text(files.MARK * (path == 'own.json'))
    parser = cli.Parser()
    cli.add_overwrite(parser)
    cli.protect(parser.parse_args(['--overwrite']), Path(name))
    args = parser.parse_args([])
    if message is None:
        return cli.protect(args, Path(name))
    with pytest.raises(SystemExit) as stop:
        cli.protect(args, Path('new'), Path(name))
    assert stop.value.code == 2 and capsys.readouterr().err.endswith(f'{message}\n')


@pytest.mark.parametrize(
    'argv, message',
    [
        (['--out', 'folder'], "'folder' is a folder, not a file"),
        (['--out', ''], "'' is not a path"),
        (['--out', 'file/x'], "'file/x' can not be written"),
        (['--out', 'file/x/y'], "'file/x/y' can not be written"),
        (['--out', 'closed/x'], "'closed/x' can not be written: no permission"),
        (['--out', 'x' * 300], 'File name too long'),
        (['--folder', 'file'], "'file' is a file, not a folder"),
        (['--folder', 'file/x'], "'file/x' can not be written"),
        (['--folder', 'closed'], "'closed' can not be written: no permission"),
        (['--folder', ' '], "' ' is not a path"),
    ],
)
def test_output_that_can_not_be_written(
    parser, tmp_path, monkeypatch, capsys, argv, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'file').touch()
    (tmp_path / 'closed').mkdir(mode=0o500)
    if os.access(tmp_path / 'closed', os.W_OK):  # root may write everywhere
        monkeypatch.setattr(os, 'access', lambda path, mode: path.name != 'closed')
    with pytest.raises(SystemExit) as stop:
        parser.parse_args(argv)
    line = capsys.readouterr().err
    assert stop.value.code == 2 and message in line and line.count('\n') == 1


@pytest.mark.parametrize(
    'key, right',
    [('modell.backbone.arch', 'model'), ('train_dataloder.x', 'train_dataloader')],
)
def test_misspelled_option(key, right):
    cfg = Config(dict(model=dict(type='SOFT')))
    with pytest.raises(KeyError, match=key) as error:
        unknown_options(cfg, {key: 1})
    assert f'did you mean {right!r}?' in error.value.args[0]


def test_options():
    cfg = Config(dict(model=dict(type='SOFT'), mine=1))
    assert unknown_options(cfg, None) == []
    known = {'mine': 2, 'model.x.y': 1, 'randomness.seed': 1, 'compile': True}
    assert unknown_options(cfg, {**known, 'something.x': 1}) == ['something.x']


@pytest.mark.parametrize(
    'key, right',
    [
        ('pretraned', 'pretrained'),
        ('train_dataloadr', 'train_dataloader'),
        ('load_form', 'load_from'),
        ('optim_wraper', 'optim_wrapper'),
    ],
)
def test_misspelled_key_of_a_config(key, right):
    assert misspelled_keys(['model', key]) == {key: f'; did you mean {right!r}?'}


def test_variables_of_a_config():
    """Configs have variables of their own, as those of the libraries do."""
    names = 'train_pipeline', 'val_pipeline', 'test_pipeline', 'models', 'norm_cfg'
    others = 'val_evaluator_abs', 'train_dataloader2', 'gallery_dataloader', 'num_gpus'
    own = 'my_train_dataloader', 'visualizers', 'my_custom_hooks'
    assert not misspelled_keys([*names, *others, *own])


@pytest.mark.parametrize('library', ['mmdet', 'mmseg', 'mmpretrain'])
def test_no_key_of_the_libraries_is_misspelled(library):
    package = pytest.importorskip(library)
    folder = Path(package.__file__).parent / '.mim' / 'configs'
    paths = list(folder.rglob('*.py'))
    assert paths
    names = set()
    for path in paths:
        names.update(re.findall(r'^(\w+) *=(?!=)', path.read_text(), re.M))
    assert not misspelled_keys(names)


@pytest.mark.parametrize(
    'ranks, first',
    [
        ({}, True),
        (dict(RANK='0', SLURM_PROCID='3'), True),
        (dict(SLURM_PROCID='1'), False),
        (dict(OMPI_COMM_WORLD_RANK='1'), False),
    ],
)
def test_first_process(monkeypatch, ranks, first):
    for name in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'):
        monkeypatch.delenv(name, raising=False)
    for name, rank in ranks.items():
        monkeypatch.setenv(name, rank)
    assert cli.is_first_process() == first


# ------------------------------------------------------------ processes on CPUs
@pytest.fixture
def group(monkeypatch):
    """A machine without accelerators, and the groups that were joined there."""
    joined = []
    monkeypatch.setattr(distributed, 'get_device', lambda: 'cpu')
    fake = Namespace(
        is_initialized=lambda: bool(joined),
        init_process_group=lambda backend, **options: joined.append((backend, options)),
        get_rank=lambda: 0,
        get_world_size=lambda: 3,
    )
    monkeypatch.setattr(distributed, 'dist', fake)
    for name in ('RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'):
        monkeypatch.setenv(name, '0')
    return joined


def test_processes_join_over_gloo(group, capsys):
    cfg = Config(dict(launcher='pytorch', find_unused_parameters=True))
    distributed.run_on_cpus(cfg)
    distributed.run_on_cpus(cfg)
    assert [backend for backend, _ in group] == ['gloo']
    assert cfg.model_wrapper_cfg == dict(
        type='mmlinattn.AnyDeviceDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=True,
    )
    assert '3 processes run on CPUs, over gloo' in capsys.readouterr().out


def test_config_of_the_group_is_kept(group):
    theirs = dict(type='MMSeparateDistributedDataParallel')
    cfg = Config(
        dict(
            launcher='pytorch',
            model_wrapper_cfg=theirs,
            env_cfg=dict(dist_cfg=dict(backend='nccl', timeout=60)),
        )
    )
    distributed.run_on_cpus(cfg)
    assert cfg.model_wrapper_cfg == theirs
    ((_, options),) = group
    assert options['timeout'].total_seconds() == 60


@pytest.mark.parametrize('launcher, device', [('none', 'cpu'), ('pytorch', 'cuda')])
def test_nothing_is_done_without_need(group, monkeypatch, launcher, device):
    monkeypatch.setattr(distributed, 'get_device', lambda: device)
    cfg = Config(dict(launcher=launcher))
    distributed.run_on_cpus(cfg)
    assert not group and 'model_wrapper_cfg' not in cfg


def test_launcher_that_needs_gpus(group):
    with pytest.raises(ValueError, match="launcher='slurm' needs a GPU"):
        distributed.run_on_cpus(Config(dict(launcher='slurm')))


def test_process_that_was_not_launched(group, monkeypatch):
    monkeypatch.delenv('RANK')
    with pytest.raises(ValueError, match=r'RANK are not set.*dist_train\.sh'):
        distributed.run_on_cpus(Config(dict(launcher='pytorch')))


def test_type_of_an_argument_says_what_is_wrong():
    with pytest.raises(argparse.ArgumentTypeError, match='is not a path'):
        cli.output_folder('')


def test_tools_need_no_torch_to_refuse_arguments():
    code = 'import sys; import mmlinattn_tools.cli; sys.exit("torch" in sys.modules)'
    folder = Path(cli.__file__).parents[1]
    assert subprocess.run([sys.executable, '-c', code], cwd=folder).returncode == 0
