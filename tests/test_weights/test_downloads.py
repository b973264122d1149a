"""Downloads from a server on this machine, which can end before a file does."""

import hashlib
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import torch

from mmlinattn.weights import downloads, read_checkpoint

CONTENT = bytes(range(256)) * 4000


class Served:
    """What a server has and does, and the ranges that it was asked for."""

    def __init__(self):
        self.content, self.etag, self.asked = CONTENT, '"1"', []
        self.ends_at, self.ranges, self.knows_if_range = None, True, True
        self.modified, self.wait = None, None


@pytest.fixture
def served():
    return Served()


@pytest.fixture
def address(served, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path / 'hub'))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if served.wait:
                served.wait()
            wish, condition = self.headers['Range'], self.headers['If-Range']
            served.asked.append(wish)
            known = condition in (served.etag, served.modified)
            begin = 0
            if wish and served.ranges and (known or not served.knows_if_range):
                begin = int(re.fullmatch(r'bytes=(\d+)-', wish)[1])
            size = len(served.content)
            if begin >= size:
                self.send_error(416)
                return
            self.send_response(206 if begin else 200)
            if begin:
                self.send_header('Content-Range', f'bytes {begin}-{size - 1}/{size}')
            for name, value in (
                *(('ETag', served.etag), ('Last-Modified', served.modified)),
                ('Content-Length', size - begin),
            ):
                if value is not None:
                    self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(served.content[begin : served.ends_at])
            self.close_connection = True

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(('127.0.0.1', 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}/x?dl=1#/model.pth'
        server.shutdown()
        thread.join()


def interrupt(served, address, at=500_000):
    served.ends_at = at
    with pytest.raises(OSError, match=f'ended after {at:,} of 1,024,000 bytes'):
        downloads.download(address)
    served.ends_at = None
    assert not downloads.place_of(address).exists()


@pytest.mark.parametrize('mark', ['etag', 'modified'])
def test_an_interrupted_download_goes_on(served, address, mark, capsys):
    if mark == 'modified':
        served.etag, served.modified = None, 'Sat, 28 Nov 2026 14:00:00 GMT'
    interrupt(served, address)
    path = downloads.download(address)
    assert served.asked == [None, 'bytes=500000-'] and path.read_bytes() == CONTENT
    assert [x.name for x in path.parent.iterdir()] == ['model.pth']
    assert downloads.download(address) == path and len(served.asked) == 2
    loads, goes_on = capsys.readouterr().err.splitlines()
    assert loads.startswith('loads http://127.0.0.1') and '#' not in loads
    assert 'at 500,000 bytes, 1 MiB: ' in goes_on


@pytest.mark.parametrize('change', ['etag', 'blind', 'ranges', 'weak', 'none'])
def test_a_download_begins_again(served, address, change):
    """If the server has another file, or can't go on, or does not say which it has."""
    if change in ('weak', 'none'):
        served.etag = 'W/"1"' if change == 'weak' else None
    interrupt(served, address)
    served.content = CONTENT[::-1]
    served.knows_if_range, served.ranges = change != 'blind', change != 'ranges'
    if change in ('etag', 'blind'):
        served.etag = '"2"'
    assert downloads.download(address).read_bytes() == CONTENT[::-1]


def test_a_file_that_has_become_shorter(served, address):
    interrupt(served, address)
    served.content, served.knows_if_range = CONTENT[:400_000], False
    assert downloads.download(address).read_bytes() == CONTENT[:400_000]


def test_a_whole_file_that_was_not_named(served, address):
    """A process was killed just before."""
    path = downloads.download(address)
    part = path.rename(path.with_name('model.pth.part'))
    record = '{"ETag": "\\"1\\"", "total": 1024000}'
    part.with_name('model.pth.part.json').write_text(record)
    assert downloads.download(address).read_bytes() == CONTENT
    assert len(served.asked) == 1 and not part.exists()


def test_a_damaged_file_is_removed(served, address):
    digits = hashlib.sha256(CONTENT).hexdigest()[:16]
    address = address.replace('model.pth', f'model-{digits}.pth')
    interrupt(served, address)
    part = next(downloads.place_of(address).parent.glob('*.part'))
    part.write_bytes(b'\1' + part.read_bytes()[1:])
    with pytest.raises(OSError, match=f'invalid hash value .expected {digits}, got'):
        downloads.download(address)
    assert not part.exists()
    assert downloads.download(address).read_bytes() == CONTENT


def test_one_of_several_downloads(served, address, capsys):
    """They open the file of the lock anew, as other processes do."""
    begun, go_on, paths = threading.Event(), threading.Event(), []

    def wait():
        begun.set()
        go_on.wait(60)

    served.wait, said = wait, ''
    threads = [
        threading.Thread(target=lambda: paths.append(downloads.download(address)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        assert begun.wait(60)
    while 'waiting' not in said:
        said += capsys.readouterr().err
    go_on.set()
    for thread in threads:
        thread.join()
    assert said.endswith('another process downloads model.pth: waiting\n')
    assert paths == [downloads.place_of(address)] * 2 and len(served.asked) == 1


@pytest.mark.parametrize('name', ['model.pth', 'swin_tiny.pth', 'a-9d6b7cfa.pth'])
@pytest.mark.parametrize('fragment', ['', '#/b.pth'])
def test_the_line_says_where_a_file_belongs(name, fragment, tmp_path, monkeypatch):
    """A file that is put there is read without a network."""
    monkeypatch.setattr(torch.hub, '_hub_dir', str(tmp_path))
    address = f'http://127.0.0.1:9/{name}{fragment}'
    with pytest.raises(ConnectionError) as error:
        read_checkpoint(address)
    place = downloads.place_of(address)
    assert f': fetch it on another machine, put it at {place} or give its path' in str(
        error.value
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    torch.save(dict(a=torch.ones(1)), place)
    assert read_checkpoint(address)['a'] == 1
