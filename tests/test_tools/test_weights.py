"""The list of public weights, and a download from this machine."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from mmlinattn.commands import weights as tool
from mmlinattn.hub import find_folder
from mmlinattn.public_weights import read_models


@pytest.fixture
def models(tmp_path, monkeypatch):
    """The first five, of which a server on this machine has the first."""
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'hub'))
    monkeypatch.setattr(SimpleHTTPRequestHandler, 'log_message', lambda *_: None)
    (tmp_path / 'x.pth').write_bytes(b'123')
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(('127.0.0.1', 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        address = f'http://127.0.0.1:{server.server_port}/x.pth#/mine.pth'
        models = read_models(find_folder())
        models[0] = models[0]._replace(address=address)
        monkeypatch.setattr(tool, 'read_models', lambda folder: models)
        yield models
        server.shutdown()
        thread.join()


def rows(capsys, *argv):
    tool.main(argv)
    return [line.split() for line in capsys.readouterr().out.splitlines()[1:]]


def test_list(models, capsys):
    names = {row[0] for row in rows(capsys)}
    assert names == {model.name for model in models}
    listed = rows(capsys, '--task', 'det', '--license', 'any')
    assert {row[1] for row in listed} == {'coco'}
    assert {row[-1] for row in listed} == {'MIT', 'Apache-2.0'}
    scores = [float(row[6].strip(',')) for row in listed]
    assert scores == sorted(scores, reverse=True) and len(scores) > 10
    listed = rows(capsys, '--sort', 'size', '--data', 'cityscapes')
    sizes = [float(row[2]) for row in listed]
    assert sizes == sorted(sizes) and sizes[0] < 1
    assert {row[-1] for row in rows(capsys, '--license', 'none')} == {'none'}


def test_fetch(models, tmp_path, capsys):
    tool.main(['--fetch', models[0].name])
    described, path = capsys.readouterr().out.splitlines()
    assert path == str(tmp_path / 'hub/checkpoints/mine.pth')
    assert models[0].name in described and 'license MIT' in described
    marked = [row[0] for row in rows(capsys) if row[1] == '*']
    assert marked == [models[0].name]


@pytest.mark.parametrize(
    'argv, message',
    [
        ('--license GPL', '--license GPL: there are any, none, Apache-2.0, MIT'),
        ('--fetch swin-s_in1', 'has weights: did you mean swin-s_in1k or '),
    ],
)
def test_bad_input(models, error_of, argv, message):
    assert message in error_of(tool.main, argv.split())


def test_without_a_network(models, error_of):
    models[0] = models[0]._replace(address='http://127.0.0.1:9/x.pth#/y.pth')
    error = error_of(tool.main, ['--fetch', models[0].name])
    assert 'put it at' in error and 'hub/checkpoints/y.pth or give its path' in error
