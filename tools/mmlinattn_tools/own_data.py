"""Reads folders of photos with annotations, and writes lists that configs take.

Legend: (W, H) size of a photo in pixels.
"""

import json
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from rich.progress import track

ENDINGS = {'.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp'}
SPLITS = ('train', 'val', 'test')
SPLIT = re.compile(r'(?<![a-z])(train|val|test)')  # instances_train2017, validation
LABELS = re.compile('annot|ann_|label|mask|seg|gt')  # in names of folders
HELD_BACK = 5  # where no photos are named for validation, every fifth one
UNLABELED = 255


@dataclass
class Photo:
    """A photo and what its annotations say."""

    path: Path
    split: Optional[str]
    target: Any  # objects: dicts with `name`, `bbox`, ...; a label map; or a class
    size: tuple[int, int] = (0, 0)


@dataclass
class OwnData:
    """A data set: its photos by split, classes in the order of labels, and remarks."""

    photos: dict[str, list[Photo]]
    classes: list[str]
    masks: bool = False  # every object has an outline
    notes: list[str] = field(default_factory=list)


def read_data(
    data: Path, task: str, names: Optional[list[str]], ignore: Iterable[int], out: Path
) -> OwnData:
    """Reads a folder, and writes ``train``, ``val`` and ``test`` lists for a config.

    Args:
        data (Path): COCO files or VOC files (det), photos and label maps (seg), or one
            folder per class (cls), in any arrangement of folders for the splits.
        task (str): 'det', 'seg' or 'cls'.
        names (list[str], optional): Classes in the order of labels. Default: those found.
        ignore (Iterable[int]): Ids in label maps of pixels without a label.
        out (Path): Folder for what is written: COCO files for det, and lists of photos
            otherwise, with label maps in `labels` for seg.

    Raises:
        FileNotFoundError: If a photo is missing, or there are no annotations.
        ValueError: If annotations contradict themselves or ``names``.
    """
    files = [x for x in sorted(data.rglob('*')) if x.suffix.lower() in ENDINGS]
    if not files:
        raise FileNotFoundError(f'--data {data}: there are no photos in it')
    found = OwnData({}, [])
    photos = dict(det=read_boxes, seg=read_label_maps, cls=read_folders)[task](
        data, Index(data, files), found.notes
    )
    found.photos = split_photos(data, photos, found.notes, task)
    chosen = [photo for part in found.photos.values() for photo in part]
    few = chosen if task != 'cls' else chosen[:: max(1, len(chosen) // 500)]
    for photo in track(few, 'photos', transient=True):
        photo.size = size_of(photo.path)
    for photo in chosen:
        photo.size = photo.size if any(photo.size) else few[0].size
    out.mkdir(parents=True, exist_ok=True)
    write = dict(det=write_boxes, seg=write_label_maps, cls=write_classes)[task]
    write(data, found, names, {*ignore}, out)
    return found


class Index:
    """The photos below a folder, by the stems of their names."""

    def __init__(self, data: Path, files: Sequence[Path]) -> None:
        self.data, self.files = data, files
        self.stems: dict[str, list[Path]] = defaultdict(list)
        for path in files:
            self.stems[path.stem].append(path)

    def split_of(self, path: Path) -> Optional[str]:
        """The split that a path below the folder names, if any."""
        found = SPLIT.findall(path.relative_to(self.data).as_posix().lower())
        return found[-1] if found else None

    def find(self, name: str, near: Path) -> Optional[Path]:
        """The photo of that name that is of the split of a file, and nearest to it."""
        split = self.split_of(near)
        return max(
            (x for x in self.stems[Path(name).stem] if f'/{x}'.endswith(f'/{name}')),
            key=lambda x: (
                self.split_of(x.parent) == split,
                len(os.path.commonpath([x, near])),
            ),
            default=None,
        )


def size_of(path: Path) -> tuple[int, int]:
    """(W, H) as a viewer shows the photo."""
    with Image.open(path) as image:
        turned = image.getexif().get(0x0112, 1) > 4
        return image.size[::-1] if turned else image.size


def refuse_missing(missing: Sequence[Any], of: int, what: str) -> None:
    """Raises an error if photos are missing."""
    if missing:
        raise FileNotFoundError(
            f'{len(missing)} of {of} photos that {what} are missing, such as '
            f'{str(missing[0])!r}'
        )


# --------------------------------------------------------------------- reading
def read_boxes(data: Path, index: Index, notes: list[str]) -> list[Photo]:
    """Objects of COCO files, or else of VOC files."""
    files: dict[Optional[str], list[Path]] = defaultdict(list)
    contents = {}
    for path in sorted(data.rglob('*.json')):
        content = json.loads(path.read_text('utf-8'))
        if isinstance(content, dict) and {'images', 'annotations'} <= content.keys():
            if 'categories' in content:
                contents[path] = content
                files[index.split_of(path)].append(path)
    photos = []
    for split, paths in files.items():
        named = [path for path in paths if 'instances' in path.name] or paths
        if len(named) > 1:
            shown = ', '.join(path.name for path in named)
            raise ValueError(f'several COCO files are for {split or "all"}: {shown}')
        photos += read_coco(named[0], contents[named[0]], split, index)
    return photos or read_voc(data, index)


def read_coco(
    path: Path, content: dict, split: Optional[str], index: Index
) -> list[Photo]:
    """Photos and objects of one COCO file."""
    names = {x['id']: x['name'] for x in content['categories']}
    objects: dict[Any, list] = {x['id']: [] for x in content['images']}
    for x in content['annotations']:
        if x['category_id'] not in names or x['image_id'] not in objects:
            raise ValueError(
                f'{path}: annotation {x.get("id")} has category_id={x["category_id"]} '
                f'and image_id={x["image_id"]}, of which one is not listed'
            )
        kept = {key: x[key] for key in ('bbox', 'segmentation', 'iscrowd') if key in x}
        objects[x['image_id']].append(dict(kept, name=names[x['category_id']]))
    photos = [
        Photo(index.find(x['file_name'], path), split, objects[x['id']])
        for x in content['images']
    ]
    missing = [x['file_name'] for x, y in zip(content['images'], photos) if not y.path]
    refuse_missing(missing, len(photos), f'{path} names')
    return photos


def read_voc(data: Path, index: Index) -> list[Photo]:
    """Photos and objects of VOC files, one for each photo."""
    photos, missing = [], []
    for path in sorted(data.rglob('*.xml')):
        root = ElementTree.parse(path).getroot()
        if root.tag != 'annotation':
            continue
        own = index.stems.get(path.stem) and index.stems[path.stem][0].name
        image = index.find(own or root.findtext('filename', ''), path)
        objects = []
        for x in root.iter('object'):
            box = [float(x.findtext(f'bndbox/{k}')) for k in BOX]
            box[2:] = box[2] - box[0], box[3] - box[1]
            objects.append(dict(name=x.findtext('name', '').strip(), bbox=box))
        if image is None:
            missing.append(path.stem)
        else:
            split = index.split_of(image.parent) or index.split_of(path.parent)
            photos.append(Photo(image, split, objects))
    refuse_missing(missing, len(photos) + len(missing), f'*.xml of {data} name')
    if not photos:
        raise FileNotFoundError(
            f'--data {data}: there are neither COCO files (*.json with images, '
            'annotations and categories) nor VOC files (*.xml)'
        )
    return photos


BOX = ('xmin', 'ymin', 'xmax', 'ymax')


def read_label_maps(data: Path, index: Index, notes: list[str]) -> list[Photo]:
    """Photos, and label maps of the same names in other folders."""
    maps = [
        x
        for x in index.files
        if LABELS.search(x.parent.relative_to(data).as_posix().lower())
    ]
    for path in maps:
        index.stems[path.stem].remove(path)
    photos, missing = [], []
    for path in maps:
        stem = path.stem  # or with an ending such as _mask
        while not index.stems.get(stem) and '_' in stem:
            stem = stem.rpartition('_')[0]
        names = {x.name for x in index.stems.get(stem, ())}
        image = index.find(min(names), path) if names else None
        if image is None:
            missing.append(path)
        else:
            photos.append(Photo(image, index.split_of(image.parent), path))
    refuse_missing(missing, len(maps), 'label maps are of')
    if not photos:
        raise FileNotFoundError(
            f'--data {data}: there is no folder of label maps, whose name would have '
            'annot, label, mask, seg or gt in it'
        )
    left = len(index.files) - len(maps) - len(photos)
    if left:
        notes.append(f'{left} photos have no label map: left out')
    return photos


def read_folders(data: Path, index: Index, notes: list[str]) -> list[Photo]:
    """Photos in folders that have the names of classes."""
    photos = []
    for path in index.files:
        folders = path.parent.relative_to(data).parts
        split = index.split_of(data / folders[0]) if folders[1:] else None
        if folders:
            photos.append(Photo(path, split, folders[1 if split else 0]))
    if not photos:
        raise FileNotFoundError(f'--data {data}: there are no folders of classes')
    return photos


# --------------------------------------------------------------------- splits
def split_photos(
    data: Path, photos: Iterable[Photo], notes: list[str], task: str
) -> dict[str, list[Photo]]:
    """Photos for training, validation and testing: by the names of folders and files,
    by lists such as VOC's ImageSets, or drawn."""
    kind = dict(seg='Segmentation').get(task, 'Main')
    lists = {}
    for split in SPLITS:
        paths = sorted(
            data.rglob(f'{split}.txt'), key=lambda x: (x.parent.name != kind, x)
        )
        for line in paths[0].read_text('utf-8').split('\n') if paths else ():
            if line.strip():
                lists[Path(line.split()[0]).stem] = split
    parts = defaultdict(list)
    for photo in photos:
        parts[photo.split or lists.get(photo.path.stem, 'none')].append(photo)
    left = parts.pop('none', [])
    if not parts:
        parts['train'] = left
    elif left:
        notes.append(f'{len(left)} photos are in no split: left out')
    if not parts['train']:
        raise ValueError(f'--data {data}: there are no photos for training')
    if not parts['val'] and parts['test']:
        parts['val'] = parts['test']
        notes.append('there is no validation set: the test set serves as one')
    if not parts['val']:
        drawn = random.Random(0).sample(parts['train'], len(parts['train']))
        if task == 'cls':
            drawn.sort(key=lambda photo: photo.target)
        parts['val'] = drawn[::HELD_BACK]
        parts['train'] = [x for i, x in enumerate(drawn) if i % HELD_BACK]
        notes.append(
            f'there is no validation set: every {HELD_BACK}th photo is drawn for it'
        )
    if not parts['train']:
        raise ValueError(f'--data {data}: one photo is too few')
    if not parts['test']:
        parts['test'] = parts['val']
    return {split: parts[split] for split in SPLITS}


def choose_classes(
    found: OwnData, counts: dict[str, Counter], names: Optional[list[str]]
) -> None:
    """Chooses the classes: the names that are given, or those of the training set."""
    everywhere = sum(counts.values(), Counter())
    unknown = [name for name in names or () if not everywhere[name]]
    if unknown:
        raise ValueError(
            f'--classes {" ".join(unknown)}: there are none, only '
            f'{", ".join(sorted(everywhere))}'
        )
    found.classes = names or sorted(counts['train'])
    left = sorted(everywhere.keys() - {*found.classes})
    if left:
        notes_of = ', '.join(f'{name} ({everywhere[name]})' for name in left)
        found.notes.append(f'left out, for they are not of the classes: {notes_of}')
    rare = [name for name in found.classes if not counts['train'][name]]
    if rare or not found.classes:
        raise ValueError(f'the training set has no {", ".join(rare) or "annotations"}')


# --------------------------------------------------------------------- writing
def write_boxes(
    data: Path, found: OwnData, names: Optional[list[str]], _: set, out: Path
) -> None:
    """Writes a COCO file for each split."""
    counts = {
        split: Counter(x['name'] for photo in photos for x in photo.target)
        for split, photos in found.photos.items()
    }
    choose_classes(found, counts, names)
    ids = {name: i + 1 for i, name in enumerate(found.classes)}
    every, empty = [], 0
    for split, photos in found.photos.items():
        images, objects = [], []
        for i, photo in enumerate(photos):
            width, height = photo.size
            name = photo.path.relative_to(data).as_posix()
            images.append(dict(id=i, file_name=name, width=width, height=height))
            for x in photo.target:
                left, top, w, h = x['bbox']
                inside = min(left + w, width) > left and min(top + h, height) > top
                if x['name'] not in ids:
                    continue
                if w < 1 or h < 1 or not inside:
                    empty += 1
                    continue
                extra = dict(iscrowd=x.get('iscrowd', 0), area=w * h)
                place = dict(id=len(objects), image_id=i, category_id=ids[x['name']])
                objects.append({**x, **extra, **place})
        every += objects
        categories = [dict(id=i, name=name) for name, i in ids.items()]
        content = dict(images=images, annotations=objects, categories=categories)
        (out / f'{split}.json').write_text(json.dumps(content), 'utf-8')
    if empty:
        found.notes.append(f'{empty} boxes are empty or outside of photos: left out')
    found.masks = all(x.get('segmentation') for x in every)


def write_label_maps(
    data: Path, found: OwnData, names: Optional[list[str]], ignore: set, out: Path
) -> None:
    """Writes label maps with ids from 0 on, 255 without a label, and lists."""
    counts, photos = np.zeros(2**16, int), {}
    for split, part in found.photos.items():
        photos.update({photo.path: photo for photo in part})
        text = ''.join(f'{x.path.relative_to(data).as_posix()}\n' for x in part)
        (out / f'{split}.txt').write_text(text, 'utf-8')
    for photo in track(photos.values(), 'label maps', transient=True):
        counts += np.bincount(read_ids(photo).ravel(), minlength=2**16)
    ids = {int(i) for i in counts.nonzero()[0]} - ignore
    if ids != {0, UNLABELED}:  # black and white
        ids -= {UNLABELED}
    if not names:
        ids = sorted(ids)
        names = [f'class {i}' for i in ids]
        found.notes.append(f'classes are named after their ids: {", ".join(names)}')
    elif max(ids) < len(names):
        ids = range(len(names))
    elif len(ids) != len(names):
        share = {i: f'{i} ({counts[i] / counts.sum():.1%})' for i in sorted(ids)}
        raise ValueError(
            f'--classes names {len(names)} classes, and label maps have the ids '
            f'{", ".join(share.values())}: give --ignore with those without a label'
        )
    found.classes = names
    table = np.full(2**16, UNLABELED, np.uint8)
    table[sorted(ids)] = range(len(names))
    for path, photo in track(photos.items(), 'label maps', transient=True):
        target = out / 'labels' / f'{path.relative_to(data)}.png'
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(table[read_ids(photo)]).save(target)


def read_ids(photo: Photo) -> np.ndarray:
    """A label map, (H, W)."""
    with Image.open(photo.target) as image:
        ids = np.array(image).astype(int)
    if ids.shape != photo.size[::-1]:
        what = 'has colors' if ids.ndim > 2 else f'has {ids.shape[::-1]} pixels'
        raise ValueError(
            f'{photo.target}: it {what}; a label map has one id for each of the '
            f'{photo.size} pixels of its photo'
        )
    return ids


def write_classes(
    data: Path, found: OwnData, names: Optional[list[str]], _: set, out: Path
) -> None:
    """Writes lists of photos and labels."""
    counts = {
        split: Counter(photo.target for photo in photos)
        for split, photos in found.photos.items()
    }
    choose_classes(found, counts, names)
    for split, photos in found.photos.items():
        photos[:] = [photo for photo in photos if photo.target in found.classes]
        lines = [
            f'{x.path.relative_to(data).as_posix()} {found.classes.index(x.target)}\n'
            for x in photos
        ]
        (out / f'{split}.txt').write_text(''.join(lines), 'utf-8')
