"""What new_config says of formats that it does not read, and how they become readable.

datumaro, a library, converts some of them; the tools of the others have another export.
"""

import codecs
import re
import shlex
from collections.abc import Collection, Iterable
from functools import lru_cache, partial
from pathlib import Path
from typing import Optional

from .folder import PHOTO, Folder
from .format_marks import FORMATS, NAMED, OTHERS, SCRIPT, Format
from .records import Note
from .words import PHOTO_ENDINGS, split_of_name, words_of

PART = 2**16  # bytes that are read at the begin, and at the end, of a file
SAMPLE = 100  # files of each ending that are looked at
INSTALL = "pip install 'datumaro[cli,protobuf]' in an environment of its own"
TARGETS = dict(  # what new_config reads of datumaro's exports, by task
    det='coco_instances', rot='coco_instances', seg='coco_instances', cls='imagenet'
)
FOLDERS = 'put the photos in a folder for each class, or name them in a table'
LABEL_ENDINGS = ('.json', '.jsonl', '.ndjson', '.xml', '.csv', '.tsv', '.txt')
NO_LABELS = {'classes', 'license', 'names', 'readme', 'requirements', 'submission'}


class NoData(ValueError):
    """A folder has nothing that a task learns from."""


class OtherFormat(NoData):
    """A file has a format that is not read."""


def refuse(folder: Folder, sources: Iterable[Path]) -> None:
    """Refuse files that were read for others.

    Raises:
        OtherFormat: It names their format, and what makes them readable.
    """
    certain = [each for each in FORMATS if each.is_certain]
    other = find_format(folder, sources, certain)
    if other:
        raise OtherFormat(describe(folder, *other))


def beside(folder: Folder, sources: Collection[Path]) -> list[Note]:
    """Return a note on a format that a file has, beside photos whose folders or names,
    and no files, are the sources of their classes."""
    is_read = folder.options.task != 'cls' or sources
    other = find_format(folder, sample(folder), () if is_read else NAMED)
    if not other:
        return []
    kind, path = other
    text = f'its {path.relative_to(folder.root)} is of {kind.name}, and is not read'
    return [Note(f'{text}: classes are those of folders or names of photos')]


def explain(error: ValueError, folder: Folder) -> ValueError:
    """Return an error of reading a folder, with the format that a file of it has."""
    text = str(error)
    if isinstance(error, OtherFormat) or text.startswith('--'):
        return error
    place = file_of(text)
    other = find_format(folder, [place] if place else sample(folder))
    if other:
        line = describe(folder, *other)
        is_reason = place or isinstance(error, NoData)
        return OtherFormat(line if is_reason else f'{text}; {line}')
    if isinstance(error, NoData) and folder.options.task == 'cls':
        return NoData(f'{text}; {FOLDERS}')
    unknown = next(filter(may_be_labels, sample(folder)), None)
    if unknown and isinstance(error, NoData):
        name = unknown.relative_to(folder.root)
        way = 'export COCO, YOLO or VOC from the tool that wrote it'
        return NoData(f'{text}; {name} has no labels that it knows: {way}')
    return error


def remedy(kind: Format, path: Path, data: Path, task: str) -> str:
    """Return what makes data of a format, which a file has, readable for a task."""
    ways = [] if task == 'cls' else [kind.advice.format(name=kind.name)]
    if reader_of(kind, task):
        hints = '; '.join(filter(None, [INSTALL, kind.remark]))
        source = path.parents[kind.levels - 1] if kind.levels else data
        words = command(kind, source, task, data)
        ways.append(f'convert it with `{words}` ({hints})')
    elif kind.importers:
        others = ' or '.join(f'--task {name}' for name in kind.importers)
        ways.append(f'{others} says how to convert it')
    text = ', or '.join(filter(None, ways))
    return text or (FOLDERS if task == 'cls' else SCRIPT)


def describe(folder: Folder, kind: Format, path: Path) -> str:
    """Return what a file is, and the remedy."""
    name, options = path.relative_to(folder.root), folder.options
    what = kind.name if kind in OTHERS else f'of {kind.name}'
    text = f'its {name} is {what}, which new_config does not read'
    return f'{text}: {remedy(kind, path, options.data, options.task)}'


def file_of(text: str) -> Optional[Path]:
    """Return the file of labels with whose path the text of an error begins."""
    for end in re.finditer(': ', text):
        path = Path(text[: end.start()])
        if path.is_file() and path.suffix.lower() not in PHOTO_ENDINGS:
            return path
    return None


def may_be_labels(path: Path) -> bool:
    """Return whether the name of a file is none of lists and explanations."""
    if path.suffix.lower() not in LABEL_ENDINGS or split_of_name(path.stem):
        return False
    return NO_LABELS.isdisjoint(words_of(path.stem))


def reader_of(kind: Format, task: str) -> Optional[str]:
    """Return the name in datumaro of a format, if it converts it for a task."""
    return kind.importers.get('det' if task == 'rot' else task)


def command(kind: Format, source: Path, task: str, data: Path) -> str:
    """Return the command of datumaro that writes a folder, beside all data, which
    new_config reads.

    Masks become outlines: those in COCO files are of crowds.
    """
    if data.name in ('', '..'):
        data = data.resolve()
    out = data.with_name(f'{data.name}_converted')
    words = ['datum', 'convert', '-i', str(source), '-if', str(reader_of(kind, task))]
    words += ['-f', TARGETS[task], '-o', str(out)]
    if kind.where:
        words += ['-e', kind.where, '--filter-mode', 'a']
    words += ['--', '--save-media']
    if task != 'cls':
        words += ['--segmentation-mode', 'polygons']
    return shlex.join(words)


def find_format(
    folder: Folder, paths: Iterable[Path], formats: Iterable[Format] = FORMATS
) -> Optional[tuple[Format, Path]]:
    """Return the first format that a file has, and the file; those come first that
    datumaro converts for the task."""
    names = {path: str(path.relative_to(folder.root)).lower() for path in paths}
    root, read = folder.root.resolve().name.lower(), lru_cache(None)(read_ends)
    task = folder.options.task
    for each in sorted(formats, key=lambda each: reader_of(each, task) is None):
        for path, name in names.items():
            text = partial(read, path)
            if any(mark.fits(f'/{root}/{name}', text) for mark in each.marks):
                return each, path
    return None


def sample(folder: Folder) -> list[Path]:
    """Return some files of each ending, of those that ``--labels`` names if there are
    any."""
    paths: list[Path] = []
    for ending, files in folder.files.items():
        chosen = [] if ending == PHOTO else folder.select(files, 'labels')
        chosen = chosen or files
        paths += chosen[:: -(-len(chosen) // SAMPLE) or 1]
    return paths


def read_ends(path: Path) -> str:
    """Return the text at the begin and the end of a file; nothing of what is no
    file."""
    if not path.is_file():
        return ''
    size = path.stat().st_size
    with path.open('rb') as file:
        content = file.read(PART)
        if size > PART:
            file.seek(max(PART, size - PART))
            content += b'\n' + file.read(PART)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode('utf-16' if wide else 'utf-8-sig', 'replace')
