"""Weights from a path, file://, http://, timm:// and elsewhere."""

import hashlib
import sys
import threading
from fractions import Fraction
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import antioversmoothing_fixture as antioversmoothing
import pytest
import torch
from mmengine.runner import CheckpointLoader, load_checkpoint

from mmlinattn.weights import add_file_scheme, load_safely, loaders, read_checkpoint

WEIGHTS = {'a': torch.arange(6.0)}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'hub'))
    return tmp_path / 'hub' / 'checkpoints'


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / 'with space'
    folder.mkdir()
    torch.save(WEIGHTS, folder / 'x.pth')
    return folder / 'x.pth'


@pytest.fixture
def server(path):
    """Address of a server that has the file's folder."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(
        ('127.0.0.1', 0), partial(Handler, directory=path.parent)
    ) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


def test_paths(path, monkeypatch):
    monkeypatch.setenv('HOME', str(path.parent))
    for address in (str(path), '~/x.pth', path.as_uri(), f'file://{path}'):
        assert read_checkpoint(address)['a'].equal(WEIGHTS['a'])
    with pytest.raises(FileNotFoundError, match="pretrained='.*y.pth'"):
        read_checkpoint(f'file://{path.parent}/y.pth', 'pretrained')


def test_download_happens_once(path, server, cache):
    assert read_checkpoint(f'{server}/x.pth')['a'].equal(WEIGHTS['a'])
    path.unlink()
    assert read_checkpoint(f'{server}/x.pth')['a'].equal(WEIGHTS['a'])
    assert [file.name for file in cache.rglob('*.pth')] == ['x.pth']


def test_one_name_at_two_addresses(path, server):
    """As model.safetensors is in many repositories."""
    other = path.parent / 'other'
    other.mkdir()
    torch.save({'b': torch.ones(1)}, other / 'x.pth')
    contents = [read_checkpoint(f'{server}/{x}x.pth').keys() for x in ('', 'other/')]
    assert contents == [{'a'}, {'b'}]


def test_file_that_the_libraries_have_downloaded(path, server, cache):
    """It is taken from torch.hub's folder, unless many models' files have its name."""
    cache.mkdir(parents=True)
    for name in ('swin_tiny_224.pth', 'model.pth', 'epoch_12.pth'):
        torch.save({'there': torch.ones(1)}, cache / name)
        path.with_name(name).write_bytes(path.read_bytes())
    contents = [
        read_checkpoint(f'{server}/{name}.pth').keys()
        for name in ('swin_tiny_224', 'model', 'epoch_12')
    ]
    assert contents == [{'there'}, {'a'}, {'a'}]


def test_name_behind_the_address(path, server, cache):
    """Files of a web page have addresses that end in /?dl=1."""
    for name, expected in (('?dl=1#/y.pth', 'y.pth'), ('?dl=1', 'x.pth')):
        assert 'a' in read_checkpoint(f'{server}/x.pth{name}')
        assert [*cache.rglob(expected)]
    model = torch.nn.Module()
    model.a = torch.nn.Parameter(torch.zeros(6))
    add_file_scheme()
    load_checkpoint(model, f'{server}/x.pth?dl=1#/z.pth', strict=True)
    assert model.a.equal(WEIGHTS['a']) and (cache / 'z.pth').is_file()


def test_hash_in_the_name(path, server, cache):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    digits = next(x for x in (digest[:8], digest[:12], digest) if not x.isdigit())
    path.with_name(f'y-{digits}.pth').write_bytes(path.read_bytes())
    assert 'a' in read_checkpoint(f'{server}/y-{digits}.pth')
    for wrong in ('y-0123abcd.pth', 'y-20220218.pth'):
        path.with_name(wrong).write_bytes(path.read_bytes())
    with pytest.raises(ConnectionError, match='invalid hash value'):
        read_checkpoint(f'{server}/y-0123abcd.pth')
    assert not (cache / 'y-0123abcd.pth').exists()
    # a date is no hash
    assert 'a' in read_checkpoint(f'{server}/y-20220218.pth')


def test_no_network_says_both_ways_out(server):
    with pytest.raises(ConnectionError) as error:
        read_checkpoint(f'{server}/none.pth', 'pretrained')
    message = str(error.value)
    assert '(File not found)' in message and '\n' not in message
    assert error.value.address == f'{server}/none.pth'
    assert 'give its path, or set pretrained=None to train from scratch' in message
    with pytest.raises(ConnectionError, match='cannot be downloaded'):
        read_checkpoint('http://127.0.0.1:9/x.pth')


def test_unknown_file_system():
    with pytest.raises(ValueError, match=r'give a path, file://PATH, http\(s\)'):
        read_checkpoint('gopher://somewhere/x.pth')


def test_timm(monkeypatch):
    with pytest.raises(ValueError, match='timm has no weights of such a model'):
        read_checkpoint('timm://vit_tiny_patch16_384.none')
    monkeypatch.setitem(sys.modules, 'timm', None)
    with pytest.raises(ImportError, match="'timm://cait_s24_224' needs timm: pip inst"):
        read_checkpoint('timm://cait_s24_224', 'pretrained')


@pytest.fixture
def safe():
    load_safely()


@pytest.mark.parametrize('scheme', ['torchvision', 'open-mmlab', 'openmmlab', 'mmcls'])
def test_models_by_name_are_loaded_safely(safe, path, server, monkeypatch, scheme):
    monkeypatch.setitem(
        loaders.TABLES, f'{scheme}://', lambda: dict(model=f'{server}/x.pth')
    )
    model = torch.nn.Linear(1, 1)
    prefix = 'backbone.' if scheme == 'mmcls' else ''
    weights = {f'{prefix}{key}': value for key, value in model.state_dict().items()}
    torch.save(dict(state_dict=weights), path)
    load_checkpoint(model, f'{scheme}://model', strict=True)
    with pytest.raises(ValueError, match=f"'{scheme}://other': .* no such model"):
        load_checkpoint(model, f'{scheme}://other')


def test_load_safely(safe, path, server):
    schemes = CheckpointLoader._schemes.values()
    assert {loader.__module__ for loader in schemes} == {'mmlinattn.weights.loaders'}
    torch.save(dict(WEIGHTS, hidden=Fraction(1, 3)), path)
    for address in (str(path), path.as_uri(), f'{server}/x.pth'):
        with pytest.raises(ValueError, match='a fractions.Fraction'):
            load_checkpoint(torch.nn.Linear(1, 1), address)


def test_loaders_only_read(safe, path, server, tmp_path):
    """All that a file holds arrives, under its own names, though they are DeiT's."""
    weights = antioversmoothing.weights('deit_timm')
    content = dict(state_dict=weights, meta=dict(epoch=3), optimizer=dict(state={}))
    content.update(message_hub={}, ema_state_dict={}, param_schedulers=[])
    torch.save(content, path)
    web = f'{server}/x.pth'
    for address in (str(path), path.as_uri(), web, f'{web}#/y.pth'):
        loaded = CheckpointLoader.load_checkpoint(address)
        assert list(loaded) == list(content) and loaded['meta'] == content['meta']
        assert list(loaded['state_dict']) == list(weights)
        assert all(x.equal(loaded['state_dict'][key]) for key, x in weights.items())


def test_what_was_read_is_handed_on_once(path):
    known = dict(WEIGHTS, b=torch.ones(1))
    load_safely({str(path): known})
    contents = [CheckpointLoader.load_checkpoint(str(path)) for _ in range(2)]
    assert contents[0] is known and contents[1].keys() == WEIGHTS.keys()
