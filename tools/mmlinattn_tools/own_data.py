"""Reads folders of photos with annotations, and writes lists for configs.

A photo is a dict: `path`, `split` (or None), `size` (W, H) in pixels, `names` of the
classes in it, and its labels: `objects` in COCO's form (det), or `map`, the path of
its label map (seg).
"""

import json
import os
import random
import re
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

IMAGES = ('.bmp', '.jpeg', '.jpg', '.png', '.tif', '.tiff', '.webp')
SPLIT = re.compile(r'(?<![a-z])(train|val|test)')  # instances_train2017, validation
MAPS = re.compile('annot|ann_|label|mask|seg|gt')  # in names of folders
OF_OBJECTS = re.compile('object|instance')  # VOC's numbers, not classes
COCO = {'images', 'annotations', 'categories'}
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')
HELD_BACK = 5  # without a validation set: every fifth photo
UNLABELED = 255
ENDING = dict(det='json', seg='txt', cls='txt')  # of the lists


class OwnData:
    """A user's data set: ``photos`` by split, ``classes`` in the order of labels,
    ``masks``, True if all objects have outlines, and ``notes``, lines about the
    decisions.

    Raises:
        OSError: If photos or annotations are missing, or can't be read.
        ValueError: If annotations contradict each other, or ``names``.
    """

    def __init__(self, data, task, names=None, ignore=()):
        self.data, self.task, self.notes = data, task, []
        walk = os.walk(data, followlinks=True)
        files = sorted(
            Path(folder, name) for folder, _, names in walk for name in names
        )
        self.files, self.stems = defaultdict(list), defaultdict(list)
        for path in files:
            ending = path.suffix.lower()
            if not any(x.startswith('.') for x in path.relative_to(data).parts):
                self.files['photo' if ending in IMAGES else ending].append(path)
        for path in self.files['photo']:
            self.stems[path.stem].append(path)
        photos = list(getattr(self, f'read_{task}')())
        missing = [x['name'] for x in photos if x['path'] is None]
        if missing or not photos:
            text = f'--data {data}: it has no data for --task {task}, see --help'
            if missing:
                text = f'{len(missing)} of {len(photos)} photos with annotations are '
                text += f'missing in {data}, such as {missing[0]}'
            raise FileNotFoundError(text)
        if len({(x['path'], x['split']) for x in photos}) < len(photos):
            raise ValueError(f'--data {data}: several files annotate the same photos')
        used = {x['path'] for x in photos} | {x.get('map') for x in photos}
        unused = len({*self.files['photo']} - used)
        if unused:
            self.notes.append(f'left out {unused} photos without annotations')
        self.photos = self.split(photos)
        lost = 0
        for photo in chain(*self.photos.values()):
            with Image.open(photo['path']) as image:
                # cameras' orientation; PNG files would be read to their end
                turned = 'exif' in image.info and image.getexif().get(0x0112, 1) > 4
                photo['size'] = image.size[::-1] if turned else image.size
            if task == 'det':  # the libraries drop such boxes silently
                found = [x for x in photo['objects'] if is_inside(x, photo['size'])]
                lost += len(photo['objects']) - len(found)
                photo.update(objects=found, names=[x['name'] for x in found])
        if lost:
            self.notes.append(f'left out {lost} boxes outside their photo')
        self.classes = (self.find_ids if task == 'seg' else self.choose)(names, ignore)
        labels = chain(*(x.get('objects', ()) for x in chain(*self.photos.values())))
        self.masks = task == 'det' and all(x.get('segmentation') for x in labels)

    def split_of(self, path):
        """The split in a path below the folder, if any."""
        found = SPLIT.findall(path.relative_to(self.data).as_posix().lower())
        return found[-1] if found else None

    def photo(self, name, near, **labels):
        """A photo by its name; of several, the one in the split of its annotation, or
        the one nearest to it."""
        split = self.split_of(near)
        path = max(
            self.stems.get(Path(name).stem, ()),
            key=lambda x: (
                x.as_posix().endswith(f'/{name}'),
                self.split_of(x.parent) == split,
                len(os.path.commonpath([x, near])),
            ),
            default=None,
        )
        split = split or (path and self.split_of(path.parent))
        names = [x['name'] for x in labels.get('objects', ())]
        return dict(labels, path=path, name=name, split=split, names=names)

    def read_det(self):
        """Photos and objects of COCO files and of VOC files."""
        for path in self.files['.json']:
            content = parsed(path, json.load)
            # COCO has people's keypoints in further files
            if 'keypoints' in path.name or not isinstance(content, dict):
                continue
            if content.keys() >= COCO:
                yield from self.read_coco(path, content)
        for path in self.files['.xml']:
            objects = parsed(path, voc_objects)
            if objects is not None:
                yield self.photo(f'{path.stem}.jpg', path.parent, objects=objects)

    def read_coco(self, path, content):
        names = {x['id']: x['name'] for x in content['categories']}
        objects = {x['id']: [] for x in content['images']}
        for x in content['annotations']:
            image, category = x.get('image_id'), x.get('category_id')
            if category not in names or image not in objects or 'bbox' not in x:
                raise ValueError(
                    f'{path}: annotation {x.get("id")} has no box, or its image '
                    f'({image}) or category ({category}) is not in the file'
                )
            objects[image].append(dict(x, name=names[category]))
        for x in content['images']:
            yield self.photo(x['file_name'], path, objects=objects[x['id']])

    def read_seg(self):
        """Photos, and the label maps with their names in folders of label maps."""
        folders = [x.parent.relative_to(self.data) for x in self.files['photo']]
        named = [MAPS.search(x.as_posix().lower()) for x in folders]
        maps = [x for x, found in zip(self.files['photo'], named) if found]
        for path in maps:
            self.stems[path.stem].remove(path)
        for path in maps:
            if OF_OBJECTS.search(path.parent.name.lower()):
                continue
            words = path.stem.split('_')  # a map may be called x_mask
            stems = ('_'.join(words[:i]) for i in range(len(words), 0, -1))
            stem = next(filter(self.stems.get, stems), path.stem)
            yield self.photo(f'{stem}{path.suffix}', path.parent, map=path)

    def read_cls(self):
        """Photos in folders that are named after classes."""
        for path in self.files['photo']:
            folders = path.parent.relative_to(self.data).parts
            split = self.split_of(self.data / folders[0]) if folders[1:] else None
            if folders:
                yield dict(path=path, split=split, names=[folders[split is not None]])

    def split(self, photos):
        """Photos by split: by names of folders and files, by lists, or drawn."""
        parts, lists = dict(train=[], val=[], test=[]), {}
        kind = 'Segmentation' if self.task == 'seg' else 'Main'  # folder of VOC's lists
        for path in sorted(self.files['.txt'], key=lambda x: x.parent.name == kind):
            lines = path.read_text('utf-8').splitlines() if path.stem in parts else ()
            found = [Path(line.split()[0]).stem for line in lines if line.strip()]
            lists.update(dict.fromkeys(found, path.stem))
        drawn = []
        for photo in photos:
            split = photo['split'] or lists.get(photo['path'].stem)
            parts.get(split, drawn).append(photo)
        if not any(parts.values()):
            parts['train'], drawn = drawn, []
        if drawn:
            self.notes.append(f'left out {len(drawn)} photos in no split')
        if not parts['val'] and parts['test']:
            self.notes.append('no photos for validation: it uses those for testing')
            parts['val'] = parts['test']
        elif not parts['val']:
            self.notes.append(f'no photos for validation: it uses every {HELD_BACK}th')
            order = random.Random(0).sample(parts['train'], len(parts['train']))
            order.sort(key=lambda photo: photo['names'])
            parts['val'] = order[HELD_BACK - 1 :: HELD_BACK]
            parts['train'] = [x for i, x in enumerate(order, 1) if i % HELD_BACK]
        parts['test'] = parts['test'] or parts['val']
        if not all(parts.values()):
            found = ', '.join(f'{len(x)} for {split}' for split, x in parts.items())
            raise ValueError(f'--data {self.data}: too few photos, {found}')
        return parts

    def choose(self, names, _):
        """Classes: the given ones, or those of the training set."""
        seen = Counter(chain(*(photo['names'] for photo in self.photos['train'])))
        classes = names or sorted(seen)
        lacking = [name for name in classes if not seen[name]]
        if lacking or not classes:
            raise ValueError(
                f'no photo for training has {", ".join(lacking) or "an object"}; '
                f'their classes: {", ".join(sorted(seen)) or "none"}'
            )
        every = chain(*self.photos.values())
        left = {*chain(*(photo['names'] for photo in every))} - {*classes}
        if left:
            text = ', '.join(sorted(left))
            self.notes.append(f'left out objects of other classes: {text}')
        for photos in self.photos.values():
            for x in photos:
                x['names'] = [name for name in x['names'] if name in classes]
            if self.task == 'cls':
                photos[:] = [x for x in photos if x['names']]
        return classes

    def find_ids(self, names, ignore):
        """Classes of label maps; sets `table`, the label of each id."""
        photos = {x['map']: x for x in chain(*self.photos.values())}.values()
        counts = np.zeros(2**16, int)
        for photo in photos:
            counts += np.bincount(read_ids(photo).ravel(), minlength=2**16)
        ids = {*counts.nonzero()[0].tolist()} - {*ignore}
        if ids != {0, UNLABELED}:  # black and white, which are two classes
            ids -= {UNLABELED}
        if names and max(ids, default=0) < len(names):
            ids = range(len(names))
        if not ids or len(ids) != len(names or ids) or len(ids) > UNLABELED:
            shares = [f'{i} ({counts[i] / counts.sum():.1%})' for i in sorted(ids)]
            raise ValueError(
                f'label maps have the ids {", ".join(shares[:50])}, and --classes '
                f'{len(names or ())} names: --ignore takes ids that are no label'
            )
        if not names:
            self.notes.append('label maps have no names: give them with --classes')
        self.table = np.full(2**16, UNLABELED, np.uint8)
        self.table[sorted(ids)] = range(len(ids))
        return names or [f'class {i}' for i in sorted(ids)]

    def write(self, out):
        """Writes the files of a config to a folder: a COCO file for each split, or a
        list of photos with their labels, or beside their label maps."""
        out.mkdir(parents=True, exist_ok=True)
        label = {name: i for i, name in enumerate(self.classes)}
        categories = [dict(id=i, name=name) for name, i in label.items()]
        for split, photos in self.photos.items():
            images, objects, lines = [], [], []
            for photo in photos:
                name = photo['path'].relative_to(self.data).as_posix()
                i, (width, height) = len(images), photo['size']
                images.append(dict(id=i, file_name=name, width=width, height=height))
                for x in photo.get('objects', ()):
                    if x['name'] in label:
                        x = {'area': x['bbox'][2] * x['bbox'][3], 'iscrowd': 0, **x}
                        ids = dict(image_id=i, category_id=label[x['name']])
                        objects.append({**x, **ids, 'id': len(objects)})
                if self.task == 'seg':
                    path = out / 'labels' / f'{name}.png'
                    path.parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(self.table[read_ids(photo)]).save(path)
                lines.append(' '.join([name, *(str(label[x]) for x in photo['names'])]))
            coco = dict(images=images, annotations=objects, categories=categories)
            text = json.dumps(coco) if self.task == 'det' else '\n'.join(lines)
            (out / f'{split}.{ENDING[self.task]}').write_text(text, 'utf-8')


def voc_objects(file):
    """Objects of a VOC file in COCO's form, or None for another file."""
    root = ElementTree.parse(file).getroot()
    if root.tag != 'annotation':
        return None
    objects = []
    for x in root.iter('object'):
        x1, y1, x2, y2 = (float(x.findtext(f'bndbox/{key}', '')) for key in CORNERS)
        objects.append(
            dict(bbox=[x1, y1, x2 - x1, y2 - y1], name=x.findtext('name', ''))
        )
    return objects


def is_inside(x, size):
    """True if the box of an object has a pixel of its photo, of a size (W, H)."""
    pairs = zip(x['bbox'], x['bbox'][2:], size)
    return all(min(a + length, side) - max(a, 0) >= 1 for a, length, side in pairs)


def parsed(path, parse):
    """The content of a file."""
    try:
        with path.open('rb') as file:
            return parse(file)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f'{path}: {error}') from error


def read_ids(photo):
    """The label map of a photo, (H, W)."""
    with Image.open(photo['map']) as image:
        ids = np.array(image).astype(int)
    if ids.shape != photo['size'][::-1]:
        raise ValueError(
            f'{photo["map"]} is of shape {ids.shape}: a label map has one number for '
            f'each pixel of its photo, {photo["size"][::-1]}'
        )
    return ids
