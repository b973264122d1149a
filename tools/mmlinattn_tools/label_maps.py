"""Label maps of photos: an id or a color for each pixel, or outlines to draw.

A photo is a dict as in own_data.py: `map` is the path of its label map, unless it has
`objects`, from whose outlines one is drawn.
"""

import re

import cv2
import numpy as np
from PIL import Image

from . import own_formats as formats

UNLABELED = 255
IDS = 2**24  # label maps have smaller numbers, or colors
INDEX = r'(?:^\s*\d+[\s,;]+(?=(?:\d+[\s,;]+){3}\D))?'  # before a color and a name
COLOR = re.compile(INDEX + r'(\d{1,3})[\s,;]+(\d{1,3})[\s,;]+(\d{1,3})(?!\d)')
JPEG = ('.jfif', '.jpe', '.jpeg', '.jpg')


class LabelMaps:
    """The label maps of photos, by split; photos whose map can't be read are taken out.

    It has ``classes``, names in the order of labels, and ``table``, the label of each
    id or color; ``notes`` gets lines about decisions. ``names`` may be None, for
    'class' and the id. ``ignore`` are ids that are no label, besides 255, ``colors``
    names by color, as of :func:`read_colors`, and ``drawn`` names of the classes of
    outlines; ``resize`` takes maps of another size than their photo.

    Raises:
        ValueError: If ids and names do not fit each other, colors have no names, or
            maps have another size than their photos.
    """

    def __init__(self, photos, notes, names, ignore, colors, drawn, resize):
        self.photos, self.notes, self.colors = photos, notes, colors
        self.drawn, self.resize = drawn, resize
        self.are_colors, self.palette = False, {}
        counts = self._count()
        if counts is None:  # colors, or palettes of different colors
            self.are_colors = True
            counts = self._count()
        self.table = np.full(IDS, UNLABELED, np.uint8)
        choose = self._choose_colors if self.are_colors else self._choose_ids
        self.classes = choose(counts, drawn or names, {*ignore})

    def _choose_ids(self, counts, names, ignore):
        ids, total = {*counts.nonzero()[0].tolist()} - ignore, counts.sum()
        # black and white, with borders that JPEG or a resizing has blurred
        ends = (counts[:64].sum() + counts[192:256].sum()) / total
        smooth = (counts[193:255] > 0).sum() > 10 and not counts[256:].any()
        if smooth and ends > 0.9 and not names:
            self.notes.append(
                f'label maps have {len(ids)} grays, as of JPEG or of smoothed masks: '
                'up to 127 they are class 0, above class 255'
            )
            self.table[:128], self.table[128:256] = 0, 1
            return ['class 0', 'class 255']
        lossy = [x for x in sorted(self.pixels) if x.suffix.lower() in JPEG]
        if lossy and not self.drawn:
            raise ValueError(f'{lossy[0]}: a label map in JPEG has no exact ids')
        if ids != {0, UNLABELED}:  # black and white, which are two classes
            ids -= {UNLABELED}
        else:
            self.notes.append(
                'label maps have only 0 and 255, which are two classes; with --ignore '
                '255, 255 has no label'
            )
        if names and max(ids, default=0) < len(names):
            ids = range(len(names))
        if not ids or len(ids) != len(names or ids) or len(ids) > UNLABELED:
            shares = [f'{i} ({counts[i] / total:.1%})' for i in sorted(ids)][:50]
            raise ValueError(
                f'label maps have the ids {", ".join(shares)}, and --classes '
                f'{len(names or ())} names: --ignore takes ids that are no label'
            )
        if not names:
            self.notes.append('label maps have no names: give them with --classes')
        self.table[sorted(ids)] = range(len(ids))
        return names or [f'class {i}' for i in sorted(ids)]

    def _choose_colors(self, counts, names, _):
        found = counts.nonzero()[0]
        found = found[np.argsort(-counts[found], kind='stable')].tolist()
        total = counts.sum()
        if not self.colors:
            shares = [f'{color_of(x)} ({counts[x] / total:.1%})' for x in found[:30]]
            raise ValueError(
                f'label maps have colors, {"; ".join(shares)}: name them in the order '
                'of labels, --colors road=128,64,128 sky=70,130,180, or put a table '
                'with such lines into the folder, colors.txt'
            )
        other = sum(counts[x] for x in found if x not in self.colors) / total
        text = f'{other:.1%} of label maps have colors of no class'
        if other > 0.5:
            raise ValueError(f'{text}, such as {color_of(found[0])}')
        if other:
            self.notes.append(f'{text}, and no label')
        classes = names or [*dict.fromkeys(self.colors.values())]
        for code, name in self.colors.items():
            if name in classes:
                self.table[code] = classes.index(name)
        return classes

    def _count(self):
        """Pixels of each id or color; None if ids turn out to be colors."""
        counts, bad, other, self.pixels = np.zeros(IDS, int), [], [], {}
        unique = {x['map']: x for photos in self.photos.values() for x in photos}
        for path, photo in unique.items():
            try:
                ids = self._read(photo)
            except (OSError, SyntaxError):
                bad.append(path)
                continue
            if ids is None:
                return None
            if ids.shape != photo['size'][::-1]:
                other.append(f'{path}, {ids.shape} instead of {photo["size"][::-1]}')
            numbers = np.bincount(ids.ravel())
            counts[: len(numbers)] += numbers
            found = numbers.nonzero()[0]
            self.pixels[path] = found, numbers[found]
        sizes = formats.counted(
            '{} label maps have another size than their photo', other
        )
        if other and not self.resize:
            raise ValueError(f'{sizes[0]}: --resize-masks takes the nearest pixels')
        self.notes += [f'{x}: it resizes them' for x in sizes]
        self.notes += formats.counted(
            'left out {} label maps that can not be read', bad
        )
        if bad:
            for photos in self.photos.values():
                photos[:] = [x for x in photos if x['map'] not in bad]
            if not all(self.photos.values()):
                raise ValueError(self.notes[-1])
        return counts

    def _read(self, photo):
        """Ids or colors of a photo, (H, W); None if ids turn out to be colors."""
        if 'objects' in photo:
            return self._draw(photo)
        with Image.open(photo['map']) as image:
            gray, is_palette = len(image.getbands()) == 1, image.mode == 'P'
            palette = image.getpalette('RGB') if is_palette else ()
            as_ids = gray and not self.are_colors
            ids = np.array(image if as_ids else image.convert('RGB')).astype(int)
        if self.are_colors:
            return ids @ [2**16, 2**8, 1]
        if not gray:
            if (ids != ids[..., :1]).any():
                return None
            ids = ids[..., 0]
        for i in np.unique(ids).tolist() if is_palette else ():
            color = palette[3 * i : 3 * i + 3]  # those that differ stand for classes
            if self.colors or self.palette.setdefault(i, color) != color:
                return None
        ids[(ids < 0) | (ids == 2**16 - 1)] = UNLABELED
        if ids.max(initial=0) >= IDS:
            raise ValueError(f'{photo["map"]}: ids of {IDS} or more are no labels')
        return ids

    def _draw(self, photo):
        """Ids by outlines, small objects above large ones."""
        ids = np.zeros(photo['size'][::-1], int)
        for x in sorted(photo['objects'], key=lambda x: -x['area']):
            name = x['name'] if x['name'] in self.drawn else 'background'
            label = UNLABELED if x['iscrowd'] else self.drawn.index(name)
            ids[formats.mask_of(x, photo['size']) > 0] = label
        return ids

    def labels(self, photo):
        """The label of each pixel of a photo, (H, W), uint8."""
        labels = self.table[self._read(photo)]
        return cv2.resize(labels, photo['size'], interpolation=cv2.INTER_NEAREST_EXACT)

    def overview(self):
        """Rows of a table: a class with its ids, and its share of each split."""
        shares = np.zeros((len(self.photos), UNLABELED + 1))
        for row, photos in zip(shares, self.photos.values()):
            for photo in photos:
                found, numbers = self.pixels[photo['map']]
                np.add.at(row, self.table[found], numbers)
        shares /= shares.sum(1, keepdims=True)
        seen = np.unique(np.concatenate([found for found, _ in self.pixels.values()]))
        for i, name in [*enumerate(self.classes), (UNLABELED, 'no label')]:
            if i < UNLABELED or shares[:, i].any():
                ids = seen[self.table[seen] == i][:3].tolist()
                told = ' '.join(map(color_of if self.are_colors else str, ids))
                yield [f'{name} ({told})', *(f'{x:.1%}' for x in shares[:, i])]


def read_colors(given, paths):
    """Names of classes by color: of lines such as those of --colors, or of a table
    among files, whose name says so."""
    named = re.compile('colou?r|class|label|palette')
    texts = (formats.read_text(x) for x in paths if named.search(x.name.lower()))
    for lines in (given or (), *(text.splitlines() for text in texts)):
        table = {}
        for line in lines:
            found = COLOR.search(line)
            if found:
                parts = line[: found.start()], line[found.end() :]
                names = [x.strip(' \t\'",;:=#') for x in parts]
                r, g, b = map(int, found.groups())
                table[(r << 16) + (g << 8) + b] = names[0] or names[1]
        if len(table) > 1 and all(table.values()):
            return table
    return {}


def color_of(code):
    """A color in words."""
    return f'{code >> 16},{code >> 8 & 255},{code & 255}'
