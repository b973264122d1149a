"""Reads folders of photos with annotations, and writes lists for configs.

A photo is a dict: `path`, `split` (or None), `size` (W, H) in pixels, `names` of the
classes in it, and its labels: `objects` in COCO's form (det), or `map`, the path of
its label map (seg).
"""

import hashlib
import json
import os
import random
import re
import unicodedata
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote

import cv2
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from . import own_formats as formats
from .label_maps import JPEG, LabelMaps, read_colors

IMAGES = ('.bmp', *JPEG, '.png', '.tif', '.tiff', '.webp')
UNREAD = ('.avif', '.cr2', '.dng', '.gif', '.heic', '.heif', '.jp2', '.nef', '.svg')
LABELS, TABLES = ('.json', '.txt', '.xml'), ('.csv', '.tsv')
# a split in the name of a folder or file, alone or beside words that mean no class
SPLITS = dict(train='train', training='train', test='test', testing='test')
SPLITS.update(dict.fromkeys(('val', 'valid', 'validation'), 'val'))
SPLITS.update(dict.fromkeys(('dev', 'eval', 'evaluation'), 'val'))
NAMES = '|'.join(sorted(SPLITS, key=len, reverse=True))
WORD = re.compile(f'(?<![a-z])({NAMES})(?![a-z])')
OTHER = r"""(?:[\W\d_]|annotations?|annots?|anns?|coco|data|dir|files?|fine|gt|images?|
imgs?|instances?|jpe?g|labels?|list|lvis|masks?|objects?|panoptic|photos?|pictures?|png|
segmentation|set|split|stuff|v|voc|x|y|yolo)*""".replace('\n', '')
SPLIT = re.compile(f'{OTHER}({NAMES}){OTHER}')
PHOTOS = re.compile('image|img|photo|picture|rgb|jpeg')  # in names of folders
MAPS = re.compile('annot|ann_|label|mask|seg|gt')
KINDS = '(?:mask|label|seg|gt|annotation)s?'  # of files
MAP = re.compile(f'^{KINDS}[_.-]|[_.-]{KINDS}$')
OF_OBJECTS = re.compile('object|instance')  # VOC's numbers, not classes
ENDS = {b'\xff\xd8': b'\xff\xd9', b'\x89P': b'IEND'}  # of JPEG and PNG, by their begin
SMALL = 'left out {} boxes of less than a pixel in their photo'
OVER = '{} boxes reach far over the edge of their photo (corners instead of sides?)'
RESIZED = '{} photos have another size than in annotations, it resizes the labels'
BACKGROUND = ('background', '_background_')  # names of no class
HELD_BACK = 5  # without a validation set: every fifth photo


class OwnData:
    """A user's data set: ``photos`` by split, ``classes`` in the order of labels,
    ``masks``, True if all objects have outlines, and ``notes``, lines about the
    decisions.

    The arguments are the options of new_config.py; others of its options are ignored.

    Raises:
        OSError: If photos or annotations can't be read.
        ValueError: If they are missing, or contradict each other, or ``classes``.
    """

    def __init__(self, data, task, classes=None, ignore=(), **options):
        self.data, self.task, self.notes, self.lost = data, task, [], Counter()
        self.names, self.options = classes, options
        self.labels = set()  # files that have them
        self.damaged = []  # errors of files that annotate one photo each
        self.collect()
        photos = self.measure(self.read())
        objects = [*chain(*(x.get('objects', ()) for x in photos))]
        lacking = sum('segmentation' not in x for x in objects)
        self.masks = task == 'det' and not lacking
        text = f'{lacking} of {len(objects)} objects have boxes without outlines'
        if lacking and task == 'seg':
            raise ValueError(f'{text}: they are for --task det')
        if 0 < lacking < len(objects):
            self.notes.append(f'{text}: it takes the boxes of all')
        self.notes += [f'left out {n} shapes: {x}' for x, n in self.lost.items()]
        self.split(photos)
        if len({*(classes or ())}) < len(classes or ()):
            raise ValueError(f'--classes {" ".join(classes)}: a name is given twice')
        if task != 'seg' or objects:
            self.classes = self.choose()
        if task == 'seg':
            drawn = None
            if objects:
                drawn = ['background', *self.classes]
                self.notes.append('label maps are drawn from outlines, on class 0')
            paths = self.files['.txt'] + self.files['.csv']
            colors = read_colors(options.get('colors'), paths)
            chosen = classes, ignore, colors, drawn, options.get('resize_masks')
            self.maps = LabelMaps(self.photos, self.notes, *chosen)
            self.classes = self.maps.classes
        self.check_splits()
        if task != 'det' and len(self.classes) < 2:
            text = f'one class only, {self.classes[0]}: there is nothing to tell apart'
            raise ValueError(f'{text}; {self.content()}')

    def collect(self):
        """Finds the files of the folder by kind, and photos by their names."""
        self.files, self.stems = defaultdict(list), defaultdict(list)
        self.twins = defaultdict(set)  # splits by the rest of a name
        for path in sorted(walk(self.data)):
            ending, parts = path.suffix.lower(), path.relative_to(self.data).parts
            if any(x.startswith('.') or x == '__MACOSX' for x in parts):
                continue
            self.files['photo' if ending in IMAGES else ending].append(path)
            for x in map(str.lower, parts):
                for found in WORD.finditer(x):
                    self.twins[WORD.sub('*', x)].add(SPLITS[found[1]])
        if self.task != 'seg':
            self.files['photo'] = self.within(self.files['photo'], 'images')
        # folders that all photos have in common say nothing about one of them
        folders = [str(path.parent) for path in self.files['photo']]
        self.base = Path(os.path.commonpath(folders)) if folders else self.data
        for path in self.files['photo']:
            self.stems[stem_of(path.name)].append(path)

    def read(self):
        """Photos with their labels, each once; what is left out is noted."""
        photos = [*getattr(self, f'read_{self.task}')()]
        if len(self.damaged) > max(1, len(photos) // 10):
            raise self.damaged[0]
        self.note('left out {} annotation files that are damaged', self.damaged)
        missing = [x['name'] for x in photos if x['path'] is None]
        if missing:
            text = f'of {len(photos)} photos with annotations are missing in the folder'
            raise ValueError(f'{len(missing)} {text}, such as {missing[0]}')
        if not photos:
            text = f'it has no data for --task {self.task}, see --help'
            raise ValueError(f'{text}; {self.content()}')
        counts = Counter(x['path'] for x in photos)
        several = [(x['path'], x['split']) for x in photos if counts[x['path']] > 1]
        if len({pair for pair in several if pair[1]}) < len(several):
            raise ValueError(
                'several files annotate the same photos: --labels or --masks names a '
                'folder, a file, or a pattern such as *.xml'
            )
        for ending in UNREAD:
            text = f'left out {{}} {ending} files, to be converted to JPEG or PNG'
            self.note(text, self.files[ending])
        used = {x['path'] for x in photos} | {x.get('map') for x in photos}
        unused = sorted({*self.files['photo']} - used)
        self.note('left out {} photos without annotations', unused)
        return photos

    def note(self, text, some):
        """Notes how many files or photos there are, and the first."""
        self.notes += formats.counted(text, some)

    def within(self, paths, option):
        """Paths in the folder, or of the pattern, that an option names, if any."""
        name = self.options.get(option)
        if not name:
            return paths
        folder = self.data / name
        if not folder.exists() and '*' not in name:
            raise ValueError(f'--{option} {folder}: there is no such place')
        return [x for x in paths if folder in (x, *x.parents) or x.match(name)]

    def content(self):
        """The files of the folder, and options, for an error."""
        kinds = {kind: len(x) for kind, x in sorted(self.files.items()) if x}
        told = ', '.join(f'{n} {kind}' for kind, n in kinds.items())
        if {*kinds} == {'photo'}:
            told += ' files: compare_predictions.py predicts photos without labels'
        places = '--images, --labels and --masks name the folders of each'
        return f'it has {told or "nothing"}; {places}'

    def measure(self, photos):
        """Photos that OpenCV reads, with their sizes, and objects that fit them."""
        found, noted = [], defaultdict(list)  # photos by what is noted of them
        for photo, header in zip(photos, read_headers([x['path'] for x in photos])):
            path = photo['path']
            if header is None:
                noted['left out {} photos that OpenCV does not read'].append(path)
                continue
            photo.update(header)
            found.append(photo)
            if header['early']:
                noted['{} photos end early, their last rows are missing'].append(path)
            for text, count in fit(photo) if 'objects' in photo else ():
                noted[text] += [path] * count
        for text, paths in noted.items():
            self.note(text, paths)
        if noted[SMALL] and not any(x['names'] for x in found):
            raise ValueError(
                f'all {len(noted[SMALL])} boxes have less than a pixel in their photo: '
                'are they in pixels, as (x, y, width, height)?'
            )
        return found

    def split_of(self, path):
        """The split in a path below the folder, if any."""
        for part in reversed(path.relative_to(self.data).parts):
            name = stem_of(part)
            found = SPLIT.fullmatch(name)
            # beside other words only if there is the same name with another split
            if not found and len(self.twins[WORD.sub('*', part.lower())]) > 1:
                found = WORD.search(name)
            if found:
                return SPLITS[found[1]]
        return None

    def has_photo(self, name):
        """True if there are photos of this name, whatever their folder and ending."""
        return stem_of(PureWindowsPath(name).name) in self.stems

    def folder_of(self, path):
        """The folder of a photo below the one that all have in common."""
        return path.parent.as_posix()[len(str(self.base)) :].lower()

    def find(self, name, near):
        """The photo that a file names, by the longest common end of their paths; of
        several, the one in the split of the file, or the one nearest to it."""
        if not self.has_photo(name):
            name = unquote(name)  # "a%20b.jpg"
        *folders, name = PureWindowsPath(name).parts or ['']  # or of another system
        root = near if near.is_dir() else near.parent
        parts = *root.relative_to(self.data).parts, *folders
        wanted = [stem_of(name), *map(plain, parts[::-1]), '']
        split = self.split_of(near)

        def rank(path):
            *parts, last = path.relative_to(self.data).parts
            have = [stem_of(last), *map(plain, parts[::-1]), '']
            same = [a == b for a, b in zip(wanted, have)]
            return (
                [*same, False].index(False),
                path.name == name,
                self.split_of(path.parent) == split,
                bool(PHOTOS.search(self.folder_of(path))),
                len(Path(os.path.commonpath([path, near])).parts),
            )

        paths = self.stems.get(wanted[0], ())
        if len(paths) < 2:
            return paths[0] if paths else None
        paths = sorted(paths, key=rank, reverse=True)
        if rank(paths[0]) == rank(paths[1]):
            raise ValueError(
                f'{near}: {name} is the name of several photos, such as {paths[0]} and '
                f'{paths[1]}: --images names the folder of the photos'
            )
        return paths[0]

    def photo(self, name, near, **labels):
        """A photo by its name in an annotation."""
        path = self.find(name, near)
        split = self.split_of(near) or (path and self.split_of(path.parent))
        return dict(labels, path=path, name=str(name), split=split, names=[])

    def read_det(self):
        """Photos and objects of the files of labelling tools."""
        files = {x: self.within(self.files[x], 'labels') for x in LABELS}
        for path in files['.json']:
            # COCO has people's keypoints in further files
            if 'keypoints' not in path.name:
                yield from self.read_file(path, formats.read_json)
        for path in files['.xml']:
            yield from self.read_file(path, formats.read_xml)
        texts = [x for x in files['.txt'] if self.has_photo(x.name)]
        names, keypoints = formats.yolo_names(self.files) if texts else ({}, False)
        names = names or dict(enumerate(self.names or ()))
        read = partial(formats.read_yolo, names, keypoints)
        faults = len(self.damaged)
        photos = [*chain(*(self.read_file(x, read) for x in texts))]
        if self.labels and not photos:  # beside labels, these texts are something else
            del self.damaged[faults:]
        yield from photos
        if not self.labels:  # beside labels, they repeat these
            for path, rows in self.tables():
                column = self.options.get('column')
                boxes = formats.read_boxes(rows, path, column)
                yield from self.read_file(path, lambda *_, boxes=boxes: boxes)

    def read_file(self, path, read):
        """Photos of one file."""
        try:
            photos = [*read(path, self.lost)]
            self.labels |= {path} if photos else set()
            stem, xml = stem_of(path.name), path.suffix.lower() == '.xml'
            near = path.parent if xml or stem in self.stems else path
            for name, stated, objects in photos:
                objects = [formats.to_coco(x, path) for x in objects]
                # the file of one photo has its name; what it says may be older
                own = stem in self.stems or (xml and not self.has_photo(name))
                if len(photos) == 1 and own:
                    name = name if stem_of(name) == stem else path.name
                yield self.photo(name, near, stated=stated, objects=objects)
        except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
            kind = '' if isinstance(error, ValueError) else f'{type(error).__name__} '
            text = str(error).removeprefix(f'{path}: ')
            fault = ValueError(f'{path}: {kind}{text}')
            of_one = self.has_photo(path.name) or path.suffix.lower() == '.xml'
            if len(self.files[path.suffix.lower()]) == 1 or not of_one:
                raise fault from error
            self.damaged.append(fault)

    def read_seg(self):
        """Photos, and the label maps with their names: in folders of label maps, or
        beside the photos."""
        files = self.files['photo']
        if self.options.get('masks'):
            maps = self.within(files, 'masks')
        else:
            maps = [x for x in files if MAPS.search(self.folder_of(x))]
            maps = maps or [x for x in files if MAP.search(x.stem.lower())]
            jpeg = {x.stem for x in files if x.suffix.lower() in JPEG}
            if not maps:  # photos in JPEG, and label maps beside them
                png = [x for x in files if x.suffix.lower() == '.png']
                maps = [x for x in png if x.stem in jpeg]
                text = 'it takes {} PNG files beside JPEG files for their label maps'
                self.note(text, maps)
        labels, masks = map(self.options.get, ('labels', 'masks'))
        if not maps or (labels and not masks):  # they are drawn from outlines
            yield from (dict(photo, map=photo['path']) for photo in self.read_det())
            return
        photos = {*self.within(files, 'images')} - {*maps}
        for stem, paths in self.stems.items():
            self.stems[stem] = [x for x in paths if x in photos]
        for path in maps:
            if OF_OBJECTS.search(path.parent.name.lower()):
                continue
            words = re.split('[_.-]', path.stem)  # a map may be called x_mask
            ends = (len('_'.join(words[:i])) for i in range(len(words), 0, -1))
            stems = [path.stem[:end] for end in ends]
            if MAP.match(path.stem.lower()):
                rest = path.stem[len(words[0]) + 1 :]
                stems += [rest, *(f'{x}_{rest}' for x in ('image', 'img', 'photo'))]
            found = (x for x in stems if self.stems.get(plain(x)))
            yield self.photo(next(found, path.stem), path.parent, map=path)

    def tables(self):
        """Tables of photos, each with its rows."""
        for path in chain(*(self.within(self.files[x], 'labels') for x in TABLES)):
            if 'submission' not in path.name.lower():  # its labels are to be filled in
                rows = formats.read_table(path, self.has_photo)
                if rows and len(rows[0]) > 1:
                    yield path, rows

    def read_cls(self):
        """Photos in folders that are named after classes, or in a table."""
        tables, wanted = [*self.tables()], self.options.get('labels')
        folders = [] if tables and wanted else [*self.read_folders()]
        if len({split_in(x['names'][0]) for x in folders} - {None}) > 1:
            folders = []  # photos lie in splits, which have no folders of classes
        told, listed = {x['path']: x['names'] for x in folders}, []
        enough = len({*map(tuple, told.values())}) > 1
        for path, rows in tables:
            try:
                kind = formats.class_column(rows, path, self.options.get('column'))
            except ValueError:
                if enough:  # it may be of anything
                    continue
                raise
            self.labels |= set() if enough else {path}
            for row in rows:
                photo = self.photo(row['photo'], path)
                split = split_in(row.get('split') or row.get('subset') or '')
                photo.update(split=split or photo['split'])
                if row[kind]:
                    listed.append(dict(photo, names=[' '.join(row[kind].split())]))
        if not enough:
            return listed or folders
        if any(told.get(x['path'], x['names']) != x['names'] for x in listed):
            raise ValueError(
                'folders and a table tell other classes: --labels names the table, or '
                'remove it'
            )
        return folders

    def read_folders(self):
        """Photos in folders that are named after classes."""
        parts = {x: x.parent.relative_to(self.base).parts for x in self.files['photo']}
        inner = defaultdict(set)  # folders by the one that has them
        for first, second, *_ in (x for x in parts.values() if x[1:]):
            inner[first].add(second)
        splits = {x: split_in(x) for x in inner if split_in(x)}
        # "train" is a class beside other ones, unless they have its folders
        if len({*splits.values()}) < 2 and len(splits) < len(inner):
            same = [x for x in inner if x not in splits and len(inner[x]) > 1]
            same = [x for x in same if any(inner[x] <= inner[y] for y in splits)]
            if same:
                raise ValueError(
                    f'are {", ".join(sorted([*splits, *same]))} splits? Call these '
                    'folders train, val and test'
                )
            splits = {}
        inner = [Path('.', *y[1:]) for y in parts.values() if y and y[0] in splits]
        start = len(Path(os.path.commonpath(inner)).parts) if inner else 0
        for path, folders in parts.items():
            split = splits.get(folders[0]) if folders else None
            if splits:
                folders = folders[1 + start :] if split else ()
            if folders:
                yield dict(path=path, split=split, names=[folders[0]])

    def read_lists(self):
        """The split of photos in lists such as train.txt, by their paths."""
        kind = 'Segmentation' if self.task == 'seg' else 'Main'  # folder of VOC's lists
        found = {}
        paths = {*chain(*(self.files[x] for x in ('.txt', *TABLES)))} - self.labels
        for path in sorted(paths, key=lambda x: (x.parent.name == kind, x)):
            split = split_in(path.stem)
            text = formats.read_text(path) if split else ''
            if path.suffix.lower() in TABLES:
                text = re.sub('[,;\t"]', ' ', text)
            absent = 0
            for words in filter(None, map(str.split, text.splitlines())):
                # a class may stand behind the name
                names = (' '.join(words[:i]) for i in range(len(words), 0, -1))
                name = next(filter(self.has_photo, names), None)
                absent += name is None
                if name is not None:
                    found[self.find(name, path.parent)] = split
            if absent and path.suffix.lower() not in TABLES:
                self.notes.append(f'{path}: it has no photos of {absent} names')
        return found

    def split(self, photos):
        """Photos by split: by names of folders and files, by lists, or drawn."""
        parts, drawn = dict(train=[], val=[], test=[]), []
        named = {photo['split'] for photo in photos}
        if len(named) == 1 or named == {'train', None}:  # it tells nothing apart
            for photo in photos:
                photo['split'] = None
        lists = self.read_lists()
        for photo in photos:
            split = photo['split'] or lists.get(photo['path'])
            parts.get(split, drawn).append(photo)
        if not parts['train']:
            parts['train'], drawn = drawn, []
        self.note('left out {} photos in no split', [x['path'] for x in drawn])
        if not parts['val'] and parts['test']:
            self.notes.append('no photos for validation: it uses those for testing')
            parts['val'] = parts['test']
        elif not parts['val']:
            self.notes.append(f'no photos for validation: it uses every {HELD_BACK}th')
            last = min(HELD_BACK, len(parts['train'])) - 1  # of fewer, one
            order = random.Random(0).sample(parts['train'], len(parts['train']))
            order.sort(key=lambda photo: photo['names'])
            parts['val'] = order[last::HELD_BACK]
            parts['train'] = [x for i, x in enumerate(order) if i % HELD_BACK != last]
        if not parts['test']:
            self.notes.append('no photos for testing: it uses those for validation')
            parts['test'] = parts['val']
        self.photos = parts
        self.check_splits()
        digests = {x['digest'] for x in parts['train']}
        held = [*parts['val'], *parts['test']]
        twice = sorted({x['path'] for x in held if x['digest'] in digests})
        self.note('{} photos for validation or testing are for training, too', twice)

    def check_splits(self):
        """Raises an error if a split has no photos."""
        if not all(self.photos.values()):
            counts = (f'{len(x)} for {split}' for split, x in self.photos.items())
            raise ValueError(f'too few photos, {", ".join(counts)}')

    def choose(self):
        """Classes: the given ones, or those of the training set."""
        seen = Counter(chain(*(photo['names'] for photo in self.photos['train'])))
        classes = self.names or sorted(seen)
        if self.task == 'seg':
            classes = [name for name in classes if name not in BACKGROUND]
        lacking = [name for name in classes if not seen[name]]
        if lacking or not classes:
            raise ValueError(
                f'no photo for training has {", ".join(lacking) or "an object"}; '
                f'their classes: {", ".join(sorted(seen)) or "none"}'
            )
        objects = [*chain(*(x.get('objects', ()) for x in self.photos['train']))]
        if objects and all(x['iscrowd'] for x in objects):
            raise ValueError('all objects are crowds or difficult, and not learned')
        alike = Counter(x.lower() for x in seen)
        alike = sorted(x for x in seen if alike[x.lower()] > 1)
        if alike:
            self.notes.append(f'classes differ in upper case alone: {", ".join(alike)}')
        every = chain(*(x['names'] for x in chain(*self.photos.values())))
        left = {*every} - {*classes}
        if left:
            self.notes.append(f'left out other classes: {", ".join(sorted(left))}')
        for photos in self.photos.values():
            for x in photos:
                x['names'] = [name for name in x['names'] if name in classes]
            if self.task == 'cls':
                photos[:] = [x for x in photos if x['names']]
        return classes

    def overview(self):
        """Lines of a table: the first has the splits, the others a name and a value for
        each split: photos, their sizes in pixels, and objects, photos or the share of
        pixels of each class."""
        parts = [*self.photos.values()]
        yield ['', *self.photos]
        yield ['photos', *(str(len(x)) for x in parts)]
        sizes = [sorted((x['size'] for x in y), key=np.prod) for y in parts]
        for name, i in (('smallest', 0), ('median', None), ('largest', -1)):
            picked = (x[len(x) // 2 if i is None else i] for x in sizes)
            yield [name, *(f'{width} x {height}' for width, height in picked)]
        counts = [Counter(chain(*(x['names'] for x in y))) for y in parts]
        rows = ([name, *(str(x[name]) for x in counts)] for name in self.classes)
        yield from self.maps.overview() if self.task == 'seg' else rows

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
                        ids = dict(image_id=i, category_id=label[x['name']])
                        objects.append({**x, **ids, 'id': len(objects)})
                if self.task == 'seg':
                    path = out / 'labels' / f'{name}.png'
                    path.parent.mkdir(parents=True, exist_ok=True)
                    Image.fromarray(self.maps.labels(photo)).save(path)
                names = photo['names'] if self.task == 'cls' else ()
                lines.append(' '.join([name, *(str(label[x]) for x in names)]))
            coco = dict(images=images, annotations=objects, categories=categories)
            if self.task == 'det':
                (out / f'{split}.json').write_text(json.dumps(coco))
            else:
                (out / f'{split}.txt').write_text('\n'.join(lines), 'utf-8')


def fit(photo):
    """Brings the objects of a photo into its pixels, without those that the libraries
    would drop silently; yields lines to note, each with a number."""
    size, objects = photo['size'], photo['objects']
    stated = formats.as_numbers(photo['stated'] or ())
    if stated and all(stated) and tuple(stated) != size:
        factors = [a / b for a, b in zip(size, stated)]
        if photo['stated'] is not formats.PARTS_OF_SIDES:
            yield RESIZED, 1
            runs = any(isinstance(x.get('segmentation'), dict) for x in objects)
            if runs or not 0.98 < factors[0] / factors[1] < 1.02:
                raise ValueError(
                    f'{photo["path"]} has {size[0]} x {size[1]} pixels, and its '
                    f'annotation says {stated[0]:g} x {stated[1]:g}: the photo was '
                    'turned or cut after it was labelled, or resized with masks in runs'
                )
        objects = [formats.scaled(x, factors) for x in objects]
    once = {(x['name'], x['iscrowd'], *map(round, x['bbox'])): x for x in objects}
    box = np.reshape([x['bbox'] for x in once.values()], (-1, 2, 2))
    ends = box.sum(1)
    inside = (np.minimum(ends, size) - np.maximum(box[:, 0], 0) >= 1).all(1)
    photo['objects'] = [x for x, kept in zip(once.values(), inside) if kept]
    photo['names'] = [x['name'] for x in photo['objects']]
    if photo['turn'] > 1:
        yield '{} photos are turned by their orientation in EXIF: so must be labels', 1
    yield ('left out {} objects that are there twice', len(objects) - len(once))
    yield SMALL, len(inside) - len(photo['objects'])
    yield OVER, (inside & (ends > 1.1 * np.array(size)).any(1)).sum()


def walk(data):
    """Files of a folder; links to folders that hold them are left out."""
    for folder, below, names in os.walk(data, followlinks=True):
        here = os.path.realpath(folder)
        inside = (os.path.realpath(os.path.join(folder, x)) for x in below)
        below[:] = [
            x for x, y in zip(below, inside) if os.path.commonpath([y, here]) != y
        ]
        yield from (Path(folder, name) for name in names)


def read_headers(paths):
    """What :func:`read_header` tells of photos, with progress for many."""
    Image.MAX_IMAGE_PIXELS = None  # large photos are no attacks
    with ThreadPoolExecutor() as pool:
        found = pool.map(read_header, paths)
        if len(paths) > 1000:
            found = track(found, 'photos', len(paths), console=Console(stderr=True))
        return list(found)


def read_header(path):
    """The `size` (W, H) of a photo as OpenCV reads it from memory, as trainings do, its
    orientation in EXIF, if it ends `early`, without the mark at the end of a JPEG or
    PNG file, and a `digest` of its file; None if OpenCV does not read it."""
    content, size, turn = path.read_bytes(), None, 1
    with suppress(OSError, SyntaxError, ValueError), Image.open(path) as image:
        # PNG files without it would be read to their end
        turn = image.getexif().get(0x0112, 1) if 'exif' in image.info else 1
        size = image.size if turn < 5 else None  # it turns some formats only
    pixels = None
    if content:  # a part of the pixels where the size is known
        flags = cv2.IMREAD_REDUCED_COLOR_8 if size else cv2.IMREAD_COLOR
        pixels = cv2.imdecode(np.frombuffer(content, np.uint8), flags)
    if pixels is None:
        return None
    early = ENDS.get(content[:2], b'') not in content[-4096:]
    size = size or pixels.shape[1::-1]
    return dict(size=size, turn=turn, early=early, digest=hashlib.md5(content).digest())


def split_in(name):
    """The split that the name of a folder or file says, or None."""
    found = SPLIT.fullmatch(name.lower())
    return SPLITS[found[1]] if found else None


def plain(name):
    """A name in the form that is compared."""
    return unicodedata.normalize('NFC', str(name)).lower()


def stem_of(name):
    """The plain name of a file without the ending of an image or of its labels."""
    stem, _, ending = plain(name).rpartition('.')
    return stem if f'.{ending}' in (*IMAGES, *LABELS, *TABLES) else plain(name)
