"""Words in the names of files and folders, and what they say.

Names are compared word by word, never by parts of words: ``washington`` is not ``gt``.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Optional

JPEG_ENDINGS = ('.jfif', '.jpe', '.jpeg', '.jpg')
PNM_ENDINGS = ('.pbm', '.pgm', '.pnm', '.ppm')
PHOTO_ENDINGS = ('.bmp', *JPEG_ENDINGS, '.png', *PNM_ENDINGS, '.tif', '.tiff', '.webp')
UNREAD_ENDINGS = (
    '.avif',
    '.cr2',
    '.dng',
    '.gif',
    '.heic',
    '.heif',
    '.jp2',
    '.nef',
    '.svg',
)
LABEL_ENDINGS = ('.json', '.txt', '.xml')
TABLE_ENDINGS = ('.csv', '.tsv')


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SPLIT_WORDS = {
    'train': 'train',
    'training': 'train',
    'val': 'val',
    'valid': 'val',
    'validation': 'val',
    'dev': 'val',
    'eval': 'val',
    'evaluation': 'val',
    'test': 'test',
    'testing': 'test',
}
# words beside a split that mean no class
NEUTRAL_WORDS = _words(
    """
    annot annotation annotations annots ann anns bbox bboxes box boxes coco data dir
    file files fine gt
    image images img imgs instance instances jpeg jpg label labels list lvis mask
    masks object objects panoptic photo photos picture pictures png segmentation set
    split stuff v voc x y yolo
    """
)
LABEL_MAP_WORDS = _words(
    """
    ann anno annos annot annotated annotation annotations annots anns groundtruth gt
    gts label labeled labelled labels mask masked masks seg segmentation segmentations
    segmented segs semantic semantics truth truths
    """
)
# at the begin or end of a file's name
LABEL_MAP_FILE_WORDS = _words(
    """
    anno annos annotation annotations groundtruth gt gts label labels mask masks seg
    segmentation segs truth
    """
)
PHOTO_WORDS = _words(
    """
    image images img imgs jpeg jpegs jpg photo photos picture pictures rgb sat
    """
)
OBJECT_WORDS = _words(
    """
    instance instances object objects
    """
)
COLOR_WORDS = _words(
    """
    color colors colour colours
    """
)
# of folders with a picture of the pixels of each photo
MAP_WORDS = (
    LABEL_MAP_WORDS
    | OBJECT_WORDS
    | COLOR_WORDS
    | _words('depth depths disparity panoptic scribble scribbles sem')
)
# of folders that hold those of classes
CONTAINER_WORDS = _words(
    """
    archive data demo demos example examples image images original
    originals photo photos preview raw sample samples set sets
    """
)
OTHER_WORDS = _words(
    """
    bit class classes ground id ids left map maps raw right sets
    """
)
# of cameras and programs, before the number of a photo
CAMERA_WORDS = _words(
    """
    capture dji dsc dscf dscn frame gopr imag image img mvi p pano pic pxl scan
    screenshot snap snapshot vid video vlcsnap wa whatsapp
    """
)
# words of which others are composed, such as "trainannot"
PARTS = NEUTRAL_WORDS | LABEL_MAP_WORDS | PHOTO_WORDS | OBJECT_WORDS | COLOR_WORDS
PARTS |= OTHER_WORDS | set(SPLIT_WORDS)

# names in tables of classes, in lower case, that mean no class
VOID_NAMES = frozenset(
    ('__ignore__', '_ignore_', 'ignore', 'ignored', 'unlabeled', 'unlabelled', 'void')
)
IGNORED = '__ignore__'  # labelme's name for what is neither learned nor background

LETTERS = re.compile(r'[^\W\d_]+')
HUMPS = re.compile(r'[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\WA-Z\d_]+|[A-Z]+')
# a split that stands alone between other characters than letters
LONE_SPLIT = re.compile(
    f'(?<![a-z])({"|".join(sorted(SPLIT_WORDS, key=len, reverse=True))})(?![a-z])'
)


def known_parts(word: str) -> list[str]:
    """Return the known words of which a word is composed; none if there are others in
    it."""
    if word in PARTS:
        return [word]
    for end in range(len(word) - 2, 1, -1):  # no part is a single letter
        rest = known_parts(word[end:]) if word[:end] in PARTS else []
        if rest:
            return [word[:end], *rest]
    return []


@lru_cache(maxsize=2**16)
def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, in their order.

    They are separated by digits and signs, by capitals (``gtFine``), or are composed of
    known words (``trainannot``).
    """
    words = []
    for letters in LETTERS.findall(name):
        parts = known_parts(letters.lower())
        if parts:
            words += parts
            continue
        for hump in HUMPS.findall(letters):
            words += known_parts(hump.lower()) or [hump.lower()]
    return tuple(words)


def has_word(name: str, words: frozenset[str]) -> bool:
    """Return whether one of these words is in a name."""
    return not words.isdisjoint(words_of(name))


def split_of_name(name: str) -> Optional[str]:
    """Return the split that a name says, alone or beside words that mean no class."""
    words = words_of(name)
    splits = [SPLIT_WORDS[word] for word in words if word in SPLIT_WORDS]
    others = {word for word in words if word not in SPLIT_WORDS}
    return splits[0] if len(splits) == 1 and others <= NEUTRAL_WORDS else None


def plain(name: object) -> str:
    """Return a name in the form that is compared."""
    return unicodedata.normalize('NFC', str(name)).lower()


def stem_of(name: str) -> str:
    """Return the plain name of a file without the ending of an image or of its
    labels."""
    stem, _, ending = plain(name).rpartition('.')
    endings = (*PHOTO_ENDINGS, *LABEL_ENDINGS, *TABLE_ENDINGS)
    return stem if f'.{ending}' in endings else plain(name)
