"""Downloads files once: a bar, an interrupted download that goes on, hashes, and one
download for all processes of a machine.

A file that is not whole has the ending `.part`, and beside it lies what the server said
of it, with the ending `.part.json`. A download goes on where it ended if the server
still has the same file, and begins again otherwise.
"""

import hashlib
import http.client
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional
from urllib.error import HTTPError
from urllib.parse import urldefrag, urlparse
from urllib.request import Request, urlopen

import torch

# names that files of many models have
COMMON = re.compile(
    r'(pytorch_)?model|weights|checkpoint|best|last|latest|(epoch|iter)_\d+'
)
# hashes at the end of names of torchvision, timm, OpenMMLab; digits may be a date
NAME_WITH_HASH = re.compile(r'-(?=\d*[a-f])([0-9a-f]{8,})\.')
CHUNK = 2**18  # bytes that are read at once
TIMEOUT = 60.0  # seconds without an answer
# what a server says of a file, to know it again
MARKS = ('ETag', 'Last-Modified')


def place_of(address: str) -> Path:
    """Return the path of the downloaded file of an address, in torch.hub's folder for
    checkpoints. A file that was put there by hand is not downloaded."""
    folder, parsed = Path(torch.hub.get_dir(), 'checkpoints'), urlparse(address)
    name = Path(parsed.fragment or parsed.path).name
    path = folder / name
    # many repositories have a model.safetensors; but one that the libraries would take
    # from this folder was put there by them, or by hand for a machine without a network
    named = parsed.fragment or NAME_WITH_HASH.search(name)
    if not named and (COMMON.fullmatch(path.stem) or not path.is_file()):
        return folder / hashlib.sha256(address.encode()).hexdigest()[:8] / name
    return path


def download(address: str, progress: bool = True) -> Path:
    """Download the file of a web address, unless it is there.

    Of several processes on a machine, one downloads and the others wait.

    Args:
        address: `http(s)://...`, perhaps with a file's name behind `#/`.
        progress: Show a bar on stderr, if it is a screen.

    Returns:
        Its path, see :func:`place_of`.

    Raises:
        OSError: If the server can't be reached, has no such file, or sends another one
            than a hash in the name says.
    """
    path = place_of(address)
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_name(f'{path.name}.lock')) as is_locked:
        if path.is_file():  # another process has downloaded it
            return path
        # without locks, each process has a file of its own
        ending = '.part' if is_locked else f'.{os.getpid()}.part'
        part = path.with_name(f'{path.name}{ending}')
        try:
            fetch(address, part, progress)
        except http.client.HTTPException as error:
            text = f'{type(error).__name__}: {error}'
            raise ConnectionError(text) from error
        check_hash(path.name, part)
        part.replace(path)
        record_of(part).unlink(missing_ok=True)
    return path


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Wait until no other process of this machine is in this context with the same
    path; yield False at once where the system or the file system has no locks. The
    system releases the lock of a killed process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    with path.open('a') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f'another process downloads {path.stem}: waiting', file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            yield False
            return
        yield True
        # whoever waits has opened the same file
        path.unlink(missing_ok=True)


def fetch(address: str, part: Path, progress: bool) -> None:
    """Download to a file that may have a beginning, and raise a ConnectionError if the
    connection ends before the file."""
    done, marks, total = beginning_of(part)
    if done and done == total:  # a process was killed before it named the file
        return
    url = urldefrag(address).url
    with open_from(url, done, marks) as answer:
        begin = done if answer.status == http.client.PARTIAL_CONTENT else 0
        total = total_of(answer, begin)
        if progress:
            announce(url, begin, total, part.parent)
        record = {name: answer.headers.get(name) for name in MARKS}
        record_of(part).write_text(json.dumps(dict(record, total=total)))
        bar = bar_of(part, total, begin, progress)
        with part.open('ab' if begin else 'wb') as file, bar:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    size = part.stat().st_size
    if total is not None and size != total:
        text = f'the connection ended after {size:,} of {total:,} bytes; the next try '
        raise ConnectionError(f'{text}goes on from there')


def total_of(answer: Any, begin: int) -> Optional[int]:
    """Return the bytes of a file whose part from byte ``begin`` on a server sends; None
    if it does not say."""
    left = answer.headers.get('Content-Length')
    return begin + int(left) if left else None


def announce(url: str, begin: int, total: Optional[int], folder: Path) -> None:
    """Say on stderr what is downloaded, and to which folder."""
    size = f', {total / 2**20:,.0f} MiB' if total else ''
    text = f'goes on with {url} at {begin:,} bytes' if begin else f'loads {url}'
    print(f'{text}{size}: {folder}', file=sys.stderr)


def open_from(url: str, done: int, marks: dict[str, str]) -> Any:
    """Return the answer of a server from byte ``done`` on, if it has the file of the
    marks, and otherwise from the beginning."""
    headers = {'User-Agent': 'mmlinattn'}
    mark = next(iter(marks.values()), '')
    if not done or not mark:
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    ranged = dict(headers, Range=f'bytes={done}-')
    ranged['If-Range'] = mark
    try:
        answer = urlopen(Request(url, headers=ranged), timeout=TIMEOUT)
    except HTTPError as error:
        # all of it is there, or the file is another one
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    same = all(answer.headers.get(name) == value for name, value in marks.items())
    starts = answer.headers.get('Content-Range', '').startswith(f'bytes {done}-')
    if answer.status == http.client.PARTIAL_CONTENT and not (same and starts):
        answer.close()  # a server that does not know If-Range
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    return answer


def beginning_of(part: Path) -> tuple[int, dict[str, str], Optional[int]]:
    """Return how many bytes of a file are there, and what its server said of it: its
    marks and its size."""
    with suppress(OSError, ValueError):
        record = json.loads(record_of(part).read_text())
        marks = {name: record[name] for name in MARKS if record.get(name)}
        if marks.get('ETag', '').startswith('W/'):  # of the content, not of its bytes
            marks = {}
        return part.stat().st_size, marks, record.get('total')
    return 0, {}, None


def record_of(part: Path) -> Path:
    """Return the file of what a server said."""
    return part.with_name(f'{part.name}.json')


def bar_of(part: Path, total: Optional[int], begin: int, progress: bool) -> Any:
    """Return a bar in bytes, which torch has."""
    is_shown = progress and sys.stderr is not None and sys.stderr.isatty()
    options: dict[str, Any] = dict(unit='B', unit_scale=True, unit_divisor=1024)
    options.update(desc=part.name.rpartition('.part')[0], initial=begin)
    return torch.hub.tqdm(total=total, disable=not is_shown, **options)


def check_hash(name: str, part: Path) -> None:
    """Raise a ValueError for a file that differs from the hash in its name, and remove
    it."""
    digits = NAME_WITH_HASH.search(name)
    if not digits:
        return
    digest = hashlib.sha256()
    with part.open('rb') as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    if not digest.hexdigest().startswith(digits[1]):
        part.unlink()
        record_of(part).unlink(missing_ok=True)
        text = f'invalid hash value (expected {digits[1]}, got {digest.hexdigest()})'
        raise ConnectionError(text)
