"""Write a small dataset of geometric shapes in the layout of a real one.

Folders, class list and file formats are those of the real dataset, so that its
configs train and test on the shapes with only data_root and the image scale
overridden; 'shapes' has three classes of its own in COCO's files. --out is the folder
for data_root.

layout      data_root of the configs       circle       square  triangle  background
coco        data/coco/                     sports ball  book    kite      -
shapes      yours; COCO's files            circle       square  triangle  -
ade20k      data/ade/ADEChallengeData2016  ball         box     tent      sky, grass
cityscapes  data/cityscapes/               bicycle      car     person    sky, road
imagenet    data/imagenet                  soccer ball  crate   volcano   -

Each image has 1 to 4 shapes (imagenet: one) that may hide parts of each other, on
noise, lines and small blobs; every annotation describes the visible part. --texture,
--clutter, --scale, --occlusion and --occluders make them harder to tell. Blobs are
unlabeled where the dataset knows that (ade20k: 0, cityscapes: static). Image i of a
split depends only on --seed, --size, the split, i and what makes it harder; the same
command writes the same bytes as long as numpy, OpenCV and Pillow stay the same.
make_shapes.json, next to the data, keeps the arguments and the list of files: a
finished set is not written again, except for files that are missing.
"""

import argparse
import colorsys
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple, Optional

import cv2
import numpy as np
from PIL import Image, ImageDraw
from rich.progress import track

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, errors_in_one_line, output_folder
from mmlinattn_tools.own_folder import OwnFolder

Size = tuple[int, int]
Color = tuple[int, int, int]
Polygon = list[tuple[int, int]]

SPLITS = ('train', 'val')
MIN_SIDE = 32  # mmdet's base configs drop smaller images
MAX_SIDE = 8192  # 4 bytes a pixel, in several copies
RECORD = 'make_shapes.json'
DRAFT = '.make_shapes-'
MAX_SHADE = 70  # of 255, of a texture's stripes
MAX_TURN = np.pi / 12  # either way from upright
MIN_SCALE, MAX_SCALE = 0.08, 0.62  # every shape up to the latter fits
MAX_OCCLUDERS = 20


# --------------------------------------------------------------------- scenes
class Shape(NamedTuple):
    """A regular polygon of unit area: its corners and circumscribed radius."""

    corners: int
    radius: float


SHAPES = {
    'circle': Shape(36, 0.567),
    'square': Shape(4, 0.707),
    'triangle': Shape(3, 0.877),
}


@dataclass(frozen=True)
class Difficulty:
    """What makes shapes harder to tell; the defaults are the easy set.

    Attributes:
        texture: Strength of the stripes on every region, 0 to 1. With 1 they are up
            to MAX_SHADE lighter and darker than the region's color. 0 draws none.
        clutter: Factor on the number of lines and blobs in the background.
        occlusion: Largest share of a shape's area that others may hide.
        occluders: Blobs painted in front of the shapes, where ``occlusion`` allows it.
        scale: Least and greatest square root of a shape's area, relative to the
            image's shorter side; None for those of the layout.
    """

    texture: float = 0.0
    clutter: float = 1.0
    occlusion: float = 0.2
    occluders: int = 0
    scale: Optional[tuple[float, float]] = None

    def __post_init__(self) -> None:
        for name, most in (('texture', 1), ('clutter', 20), ('occlusion', 0.8)):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise ValueError(f'{name} must be in [0, {most}], got {value}')
        if not 0 <= self.occluders <= MAX_OCCLUDERS:
            raise ValueError(
                f'occluders must be 0 to {MAX_OCCLUDERS}, got {self.occluders}'
            )
        if self.scale is not None and not (
            MIN_SCALE <= self.scale[0] <= self.scale[1] <= MAX_SCALE
        ):
            raise ValueError(
                f'scale must be two increasing numbers in [{MIN_SCALE}, {MAX_SCALE}], '
                f'got {self.scale[0]} {self.scale[1]}'
            )


EASY = Difficulty()


class Region(NamedTuple):
    """What one polygon of a scene shows: a key of SHAPES, or sky, ground, clutter."""

    kind: str
    polygon: Polygon


def fill(canvas: np.ndarray, polygon: Polygon, value) -> np.ndarray:
    """A copy of the (H, W) or (H, W, 3) uint8 canvas with the polygon filled."""
    # Pillow's rule for border pixels is the one of cityscapesscripts.
    image = Image.fromarray(canvas)
    ImageDraw.Draw(image).polygon(polygon, fill=value)
    return np.array(image)


@dataclass
class Scene:
    """An image and the polygons it was painted from.

    Attributes:
        image: (H, W, 3) uint8, RGB.
        index: (H, W) uint8, for each pixel the position in ``regions`` of the
            region seen there.
        regions: Painted in this order, so that later ones hide earlier ones.
    """

    image: np.ndarray
    index: np.ndarray
    regions: list[Region]

    @property
    def size(self) -> Size:
        """Width and height in pixels."""
        return self.index.shape[1], self.index.shape[0]

    def paint(self, region: Region, color: Color) -> None:
        """Add a region on top."""
        self.image = fill(self.image, region.polygon, color)
        self.index = fill(self.index, region.polygon, len(self.regions))
        self.regions.append(region)

    def label_map(self, values: dict[str, object]) -> np.ndarray:
        """(H, W) or (H, W, C) uint8: the value of the kind seen at each pixel."""
        return np.array([values[r.kind] for r in self.regions], np.uint8)[self.index]

    def shapes(self) -> Iterator[tuple[str, np.ndarray]]:
        """Kind and visible mask, (H, W) uint8 of 0 and 1, of each shape."""
        for i, region in enumerate(self.regions):
            if region.kind in SHAPES:
                yield region.kind, (self.index == i).astype(np.uint8)


def vivid_color(rng: np.random.Generator, others: Sequence[Color]) -> Color:
    """A saturated color: of a few random ones the one farthest from the others."""

    def distance(color):
        return min(np.linalg.norm(np.subtract(color, other)) for other in others)

    candidates = [
        colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.6, 1), rng.uniform(0.5, 1))
        for _ in range(3)
    ]
    return max((tuple(round(255 * c) for c in rgb) for rgb in candidates), key=distance)


def ring(radii: np.ndarray, turn: float = 0.0, stretch: float = 1.0) -> np.ndarray:
    """(n, 2) corners at equal angles around the origin, stretched in x, then turned."""
    # One side lies at the bottom: stretched, a square is an upright rectangle.
    angles = np.pi / 2 + (np.arange(len(radii)) + 0.5) * 2 * np.pi / len(radii)
    x, y = stretch * radii * np.cos(angles), radii * np.sin(angles)
    cos, sin = np.cos(turn), np.sin(turn)
    return np.stack([cos * x - sin * y, sin * x + cos * y], axis=1)


def place(rng: np.random.Generator, corners: np.ndarray, size: Size) -> Polygon:
    """Move the corners to a random place inside the image and round them."""
    corners = corners - corners.min(axis=0)
    free = np.subtract(size, 1) - corners.max(axis=0)
    corners = corners + rng.uniform(0, np.maximum(free, 0))
    return [tuple(c) for c in np.round(corners).astype(int).tolist()]


def is_solid(mask: np.ndarray) -> bool:
    """Whether a mask is one piece without holes, hence a single polygon."""
    contours, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    return len(contours) == 1


def still_visible(index: np.ndarray, areas: dict[int, int], occlusion: float) -> bool:
    """Whether each shape shows enough of its area, in one piece."""
    masks = {i: (index == i).astype(np.uint8) for i in areas}
    return all(
        mask.sum() >= (1 - occlusion) * areas[i] and is_solid(mask)
        for i, mask in masks.items()
    )


def draw_background(
    rng: np.random.Generator, size: Size, clutter: float
) -> tuple[Scene, list[Color]]:
    """A sky over the ground, with lines and small blobs; the colors of the two."""
    (width, height), side = size, min(size)
    right, bottom = width - 1, height - 1
    scene = Scene(
        np.zeros((height, width, 3), np.uint8), np.zeros((height, width), np.uint8), []
    )
    ground = tuple(rng.integers((70, 70, 40), (140, 130, 90)).tolist())
    sky = tuple(rng.integers((120, 150, 180), (190, 205, 240)).tolist())
    left_y, right_y = np.round(rng.uniform(0.35, 0.65, 2) * bottom).astype(int).tolist()
    whole = [(0, 0), (right, 0), (right, bottom), (0, bottom)]
    scene.paint(Region('ground', whole), ground)
    scene.paint(Region('sky', [(0, 0), (right, 0), (right, right_y), (0, left_y)]), sky)

    for _ in range(round(clutter * rng.integers(4, 9))):
        ends = rng.integers(0, size, (2, 2)).tolist()
        color = rng.integers(0, 256, 3).tolist()
        cv2.line(scene.image, *ends, color, thickness=int(rng.integers(1, 3)))
    for _ in range(round(clutter * rng.integers(5, 13))):
        radii = rng.uniform(0.02, 0.06) * rng.uniform(0.5, 1, rng.integers(5, 10))
        blob = Region('clutter', place(rng, ring(side * radii), size))
        scene.paint(blob, vivid_color(rng, [sky, ground]))
    return scene, [sky, ground]


def draw_occluders(
    rng: np.random.Generator,
    scene: Scene,
    areas: dict[int, int],
    colors: Sequence[Color],
    difficulty: Difficulty,
) -> None:
    """Paint blobs over the shapes, each where it leaves enough of them visible."""
    for _ in range(difficulty.occluders):
        for _ in range(10):
            radii = rng.uniform(0.04, 0.12) * rng.uniform(0.5, 1, rng.integers(5, 10))
            places = np.argwhere(np.isin(scene.index, list(areas)))[:, ::-1]
            corners = rng.choice(places) + ring(min(scene.size) * radii)
            corners = np.clip(np.round(corners), 0, np.subtract(scene.size, 1))
            polygon = [tuple(c) for c in corners.astype(int).tolist()]
            index = fill(scene.index, polygon, len(scene.regions))
            if still_visible(index, areas, difficulty.occlusion):
                scene.paint(Region('clutter', polygon), vivid_color(rng, colors))
                break


def stripes(rng: np.random.Generator, scene: Scene, texture: float) -> np.ndarray:
    """(H, W, 3) to add to the image: stripes of their own on every region."""
    width, height = scene.size
    num = len(scene.regions)
    period = min(scene.size) * rng.uniform(0.03, 0.12, num)
    angle, phase = rng.uniform(0, np.pi, num), rng.uniform(0, 2 * np.pi, num)
    tint = MAX_SHADE * texture * rng.uniform(0.4, 1, (num, 3))
    y, x = np.mgrid[:height, :width]
    at = scene.index
    across = (x * np.cos(angle)[at] + y * np.sin(angle)[at]) / period[at]
    return np.sin(2 * np.pi * across + phase[at])[..., None] * tint[at]


def draw_scene(
    rng: np.random.Generator,
    size: Size,
    kinds: Sequence[str],
    scale: tuple[float, float],
    difficulty: Difficulty = EASY,
) -> Scene:
    """Draw shapes on a cluttered background.

    Args:
        rng: The only source of chance.
        size: Width and height in pixels.
        kinds: Keys of SHAPES, back to front. The first is always drawn, others
            are left out where they would hide too much.
        scale: Least and greatest square root of a shape's area, relative to the
            image's shorter side. Up to 0.62 every shape fits.
        difficulty: What else makes shapes harder to tell.
    """
    scene, colors = draw_background(rng, size, difficulty.clutter)
    areas = {}
    for kind in kinds:
        corners, unit = SHAPES[kind]
        for _ in range(50):
            radii = np.full(corners, rng.uniform(*scale) * min(size) * unit)
            outer = ring(radii, rng.uniform(-MAX_TURN, MAX_TURN), rng.uniform(0.8, 1))
            shape, position = Region(kind, place(rng, outer, size)), len(scene.regions)
            index = fill(scene.index, shape.polygon, position)
            if still_visible(index, areas, difficulty.occlusion):
                break
        else:
            continue
        colors.append(vivid_color(rng, colors))
        scene.paint(shape, colors[-1])
        mask = (index == position).astype(np.uint8)
        areas[position] = int(mask.sum())
        # A dark rim keeps shapes of like colors apart where they overlap.
        scene.image[mask > cv2.erode(mask, np.ones((3, 3)), borderValue=0)] //= 2

    draw_occluders(rng, scene, areas, colors, difficulty)
    width, height = size
    noise = rng.normal(0, 12, (height // 16 + 2, width // 16 + 2, 3))
    noise = cv2.resize(noise, size, interpolation=cv2.INTER_CUBIC)
    noise += rng.normal(0, 8, noise.shape)
    if difficulty.texture:  # 0 must leave the random numbers as they are
        noise += stripes(rng, scene, difficulty.texture)
    scene.image = np.clip(scene.image + noise, 0, 255).astype(np.uint8)
    return scene


# -------------------------------------------------------------------- writers
Splits = dict[str, Iterable[Scene]]

COCO_CATEGORIES = {
    'person': '1 person',
    'vehicle': '2 bicycle, 3 car, 4 motorcycle, 5 airplane, 6 bus, 7 train, 8 truck, '
    '9 boat',
    'outdoor': '10 traffic light, 11 fire hydrant, 13 stop sign, 14 parking meter, '
    '15 bench',
    'animal': '16 bird, 17 cat, 18 dog, 19 horse, 20 sheep, 21 cow, 22 elephant, '
    '23 bear, 24 zebra, 25 giraffe',
    'accessory': '27 backpack, 28 umbrella, 31 handbag, 32 tie, 33 suitcase',
    'sports': '34 frisbee, 35 skis, 36 snowboard, 37 sports ball, 38 kite, '
    '39 baseball bat, 40 baseball glove, 41 skateboard, 42 surfboard, '
    '43 tennis racket',
    'kitchen': '44 bottle, 46 wine glass, 47 cup, 48 fork, 49 knife, 50 spoon, 51 bowl',
    'food': '52 banana, 53 apple, 54 sandwich, 55 orange, 56 broccoli, 57 carrot, '
    '58 hot dog, 59 pizza, 60 donut, 61 cake',
    'furniture': '62 chair, 63 couch, 64 potted plant, 65 bed, 67 dining table, '
    '70 toilet',
    'electronic': '72 tv, 73 laptop, 74 mouse, 75 remote, 76 keyboard, 77 cell phone',
    'appliance': '78 microwave, 79 oven, 80 toaster, 81 sink, 82 refrigerator',
    'indoor': '84 book, 85 clock, 86 vase, 87 scissors, 88 teddy bear, '
    '89 hair drier, 90 toothbrush',
}
COCO_IDS = dict(circle=37, square=84, triangle=38)

ADE20K_NAMES = """
wall, building, sky, floor, tree, ceiling, road, bed, windowpane, grass, cabinet,
sidewalk, person, earth, door, table, mountain, plant, curtain, chair, car, water,
painting, sofa, shelf, house, sea, mirror, rug, field, armchair, seat, fence, desk,
rock, wardrobe, lamp, bathtub, railing, cushion, base, box, column, signboard,
chest of drawers, counter, sand, sink, skyscraper, fireplace, refrigerator,
grandstand, path, stairs, runway, case, pool table, pillow, screen door, stairway,
river, bridge, bookcase, blind, coffee table, toilet, flower, book, hill, bench,
countertop, stove, palm, kitchen island, computer, swivel chair, boat, bar,
arcade machine, hovel, bus, towel, light, truck, tower, chandelier, awning,
streetlight, booth, television receiver, airplane, dirt track, apparel, pole, land,
bannister, escalator, ottoman, bottle, buffet, poster, stage, van, ship, fountain,
conveyer belt, canopy, washer, plaything, swimming pool, stool, barrel, basket,
waterfall, tent, bag, minibike, cradle, oven, ball, food, step, tank, trade name,
microwave, pot, animal, bicycle, lake, dishwasher, screen, blanket, sculpture, hood,
sconce, vase, traffic light, tray, ashcan, fan, pier, crt screen, plate, monitor,
bulletin board, shower, radiator, glass, clock, flag
"""
ADE20K_LABELS = dict(clutter=0, sky=3, ground=10, circle=120, square=42, triangle=115)


class CityscapesLabel(NamedTuple):
    """One class of Cityscapes as its label files encode it."""

    name: str
    id: int
    train_id: int
    color: Color


CITYSCAPES_LABELS = dict(
    clutter=CityscapesLabel('static', 4, 255, (0, 0, 0)),
    ground=CityscapesLabel('road', 7, 0, (128, 64, 128)),
    sky=CityscapesLabel('sky', 23, 10, (70, 130, 180)),
    triangle=CityscapesLabel('person', 24, 11, (220, 20, 60)),
    square=CityscapesLabel('car', 26, 13, (0, 0, 142)),
    circle=CityscapesLabel('bicycle', 33, 18, (119, 11, 32)),
)
CITYSCAPES_THINGS = dict(
    person=24, rider=25, car=26, truck=27, bus=28, train=31, motorcycle=32, bicycle=33
)
CITYSCAPES_CITIES = dict(train='aachen', val='frankfurt')

IMAGENET_CLASSES = dict(
    circle=('n04254680', 805), square=('n03127925', 519), triangle=('n09472597', 980)
)


def save_image(array: np.ndarray, path: Path) -> None:
    """Save an (H, W[, C]) array; the ending of the path decides the format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path, quality=90)


def save_json(content: dict, path: Path) -> None:
    """Save JSON, made byte for byte the same for the same content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def outline(mask: np.ndarray) -> list[float]:
    """Polygon x1, y1, x2, ... in pixels along the edge of a solid mask."""
    # OpenCV joins pixel centers; at three times the size that is 1/6 pixel inside.
    large = mask.repeat(3, axis=0).repeat(3, axis=1)
    (contour,), _ = cv2.findContours(large, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    points = cv2.approxPolyDP(contour, 1.0, closed=True).reshape(-1)
    return np.round((points + 0.5) / 3, 2).tolist()


def annotation(mask: np.ndarray, **fields) -> dict:
    """A COCO annotation of a mask, its segmentation and ids given in fields."""
    return dict(
        **fields,
        area=int(mask.sum()),
        bbox=list(map(float, cv2.boundingRect(mask))),
        iscrowd=0,
    )


def write_coco(root: Path, splits: Splits, own_classes: bool = False) -> None:
    """Write {train,val}2017/*.jpg and annotations/instances_{train,val}2017.json."""
    if own_classes:
        ids = {kind: i for i, kind in enumerate(SHAPES, 1)}
        categories = [
            dict(supercategory='shape', id=i, name=kind) for kind, i in ids.items()
        ]
    else:
        ids = COCO_IDS
        categories = [
            dict(supercategory=supercategory, id=int(number), name=name)
            for supercategory, entries in COCO_CATEGORIES.items()
            for number, name in (x.split(' ', 1) for x in entries.split(', '))
        ]
    for split, scenes in splits.items():
        images, annotations = [], []
        for image_id, scene in enumerate(scenes, 1):
            name = f'{image_id:012d}.jpg'
            save_image(scene.image, root / f'{split}2017' / name)
            width, height = scene.size
            images.append(
                dict(
                    id=image_id,
                    file_name=name,
                    width=width,
                    height=height,
                    license=1,
                    date_captured='2017-01-01 00:00:00',
                )
            )
            for kind, mask in scene.shapes():
                annotations.append(
                    annotation(
                        mask,
                        segmentation=[outline(mask)],
                        image_id=image_id,
                        category_id=ids[kind],
                        id=len(annotations) + 1,
                    )
                )
        save_json(
            dict(
                info=dict(description=f'Shapes in the layout of COCO {split}2017'),
                licenses=[dict(id=1, name='Apache License 2.0', url='')],
                images=images,
                annotations=annotations,
                categories=categories,
            ),
            root / 'annotations' / f'instances_{split}2017.json',
        )


def write_ade20k(root: Path, splits: Splits) -> None:
    """Write images, annotations, objectInfo150.txt and sceneCategories.txt."""
    names = ADE20K_NAMES.replace('\n', ' ').strip().split(', ')
    folders = dict(train='training', val='validation')
    image_counts = {split: np.zeros(151, int) for split in splits}
    pixel_counts = np.zeros(151, int)
    stems = []
    for split, scenes in splits.items():
        for number, scene in enumerate(scenes, 1):
            stems.append(f'ADE_{split}_{number:08d}')
            labels = scene.label_map(ADE20K_LABELS)
            file = f'{folders[split]}/{stems[-1]}'
            save_image(scene.image, root / 'images' / f'{file}.jpg')
            save_image(labels, root / 'annotations' / f'{file}.png')
            counts = np.bincount(labels.ravel(), minlength=151)
            image_counts[split] += counts > 0
            pixel_counts += counts
    ratios = pixel_counts / pixel_counts.sum()
    rows = ['Idx\tRatio\tTrain\tVal\tName'] + [
        f'{i}\t{ratios[i]:.4f}\t{image_counts["train"][i]}\t{image_counts["val"][i]}'
        f'\t{name}'
        for i, name in enumerate(names, 1)
    ]
    (root / 'objectInfo150.txt').write_text('\n'.join(rows) + '\n')
    scene_rows = ''.join(f'{stem} misc\n' for stem in stems)
    (root / 'sceneCategories.txt').write_text(scene_rows)


def write_cityscapes(root: Path, splits: Splits) -> None:
    """Write leftImg8bit, gtFine and annotations/instancesonly_*_{train,val}.json."""
    from pycocotools import mask as mask_utils  # the other layouts do without

    ids = {kind: label.id for kind, label in CITYSCAPES_LABELS.items()}
    train_ids = {kind: label.train_id for kind, label in CITYSCAPES_LABELS.items()}
    colors = {kind: (*label.color, 255) for kind, label in CITYSCAPES_LABELS.items()}
    for split, scenes in splits.items():
        city = CITYSCAPES_CITIES[split]
        images, annotations = [], []
        for image_id, scene in enumerate(scenes, 1):
            stem = f'{city}/{city}_{image_id:06d}_000019'
            truth = f'{root}/gtFine/{split}/{stem}_gtFine_'
            label_ids = scene.label_map(ids)
            instance_ids = label_ids.astype(np.uint16)
            seen = dict.fromkeys(SHAPES, 0)
            for kind, mask in scene.shapes():
                instance_ids[mask > 0] = ids[kind] * 1000 + seen[kind]
                seen[kind] += 1
                rle = mask_utils.encode(np.asfortranarray(mask))
                rle['counts'] = rle['counts'].decode()
                annotations.append(
                    annotation(
                        mask,
                        segmentation=rle,
                        image_id=image_id,
                        category_id=ids[kind],
                        id=len(annotations) + 1,
                    )
                )
            width, height = scene.size
            images.append(
                dict(
                    id=image_id,
                    file_name=f'{stem}_leftImg8bit.png',
                    height=height,
                    width=width,
                    segm_file=f'{stem}_gtFine_labelIds.png',
                )
            )
            polygons = [
                dict(label=CITYSCAPES_LABELS[region.kind].name, polygon=region.polygon)
                for region in scene.regions
            ]
            save_image(
                scene.image, root / 'leftImg8bit' / split / f'{stem}_leftImg8bit.png'
            )
            save_image(label_ids, Path(f'{truth}labelIds.png'))
            save_image(scene.label_map(train_ids), Path(f'{truth}labelTrainIds.png'))
            save_image(instance_ids, Path(f'{truth}instanceIds.png'))
            save_image(scene.label_map(colors), Path(f'{truth}color.png'))
            save_json(
                dict(imgHeight=height, imgWidth=width, objects=polygons),
                Path(f'{truth}polygons.json'),
            )
        categories = [dict(id=i, name=name) for name, i in CITYSCAPES_THINGS.items()]
        save_json(
            dict(images=images, categories=categories, annotations=annotations),
            root / 'annotations' / f'instancesonly_filtered_gtFine_{split}.json',
        )


def write_imagenet(root: Path, splits: Splits) -> None:
    """Write train/<wnid>/*.JPEG, val/*.JPEG and meta/{train,val}.txt."""
    (root / 'meta').mkdir(parents=True)
    for split, scenes in splits.items():
        rows = []
        for number, scene in enumerate(scenes, 1):
            ((kind, _),) = scene.shapes()
            wnid, label = IMAGENET_CLASSES[kind]
            name = (
                f'{wnid}/{wnid}_{number}.JPEG'
                if split == 'train'
                else f'ILSVRC2012_val_{number:08d}.JPEG'
            )
            save_image(scene.image, root / split / name)
            rows.append(f'{name} {label}\n')
        (root / 'meta' / f'{split}.txt').write_text(''.join(rows))


class Layout(NamedTuple):
    """How the scenes of a layout are drawn and written.

    ``paths`` are what ``write`` puts into the root; ``max_shapes`` bounds their
    number in an image; ``size`` and ``scale`` go to :func:`draw_scene`.
    """

    write: Callable[[Path, Splits], None]
    paths: tuple[str, ...]
    size: Size = (192, 192)
    max_shapes: int = 4
    scale: tuple[float, float] = (0.25, 0.42)


COCO_PATHS = ('annotations', 'train2017', 'val2017')
LAYOUTS = dict(
    coco=Layout(write_coco, COCO_PATHS),
    shapes=Layout(partial(write_coco, own_classes=True), COCO_PATHS),
    ade20k=Layout(
        write_ade20k,
        ('annotations', 'images', 'objectInfo150.txt', 'sceneCategories.txt'),
    ),
    cityscapes=Layout(
        write_cityscapes, ('annotations', 'gtFine', 'leftImg8bit'), size=(256, 128)
    ),
    imagenet=Layout(
        write_imagenet, ('meta', 'train', 'val'), max_shapes=1, scale=(0.45, 0.62)
    ),
)


# --------------------------------------------------------------- command line
def draw_split(
    layout: Layout,
    split: str,
    num_images: int,
    seed: int,
    difficulty: Difficulty = EASY,
) -> Iterator[Scene]:
    """Draw the scenes of one split one by one, with a progress bar."""
    scale = difficulty.scale or layout.scale
    for i in track(range(num_images), description=split):
        # A stream of its own for each image: the counts change nothing else.
        rng = np.random.default_rng([seed, SPLITS.index(split), i])
        names = list(SHAPES)
        num_shapes = rng.integers(1, layout.max_shapes + 1)
        # The first shapes take turns, so that even a tiny set has every class.
        kinds = [names[i % len(names)]] + rng.choice(names, num_shapes - 1).tolist()
        yield draw_scene(rng, layout.size, kinds, scale, difficulty)


@dataclass(frozen=True)
class Request:
    """What was asked for, and by which version of this file it is answered."""

    layout: str
    num_train: int
    num_val: int
    seed: int
    size: Size
    difficulty: Difficulty = EASY
    generator: str = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]

    def __post_init__(self) -> None:
        for name in ('num_train', 'num_val'):
            if getattr(self, name) < 1:
                raise ValueError(
                    f'{name.replace("_", "-")} must be at least 1, got '
                    f'{getattr(self, name)}'
                )
        if self.seed < 0:
            raise ValueError(f'seed must not be negative, got {self.seed}')
        if min(self.size) < MIN_SIDE or max(self.size) > MAX_SIDE:
            raise ValueError(
                f'size must be at least {MIN_SIDE} {MIN_SIDE} and at most {MAX_SIDE} '
                f'{MAX_SIDE}, got {self.size[0]} {self.size[1]}'
            )

    def record(self, complete: bool) -> dict:
        """The content of make_shapes.json; what is at its default is left out."""
        content = dict(asdict(self), complete=complete)
        chosen = content.pop('difficulty')
        easy = asdict(EASY)
        content.update({key: x for key, x in chosen.items() if x != easy[key]})
        return json.loads(json.dumps(content))


def make_shapes(root: Path, request: Request, overwrite: bool = False) -> int:
    """Write the dataset. A killed run starts again, a finished one is left alone.

    Files that are missing from a finished one are written again.

    Args:
        root: Folder to write to, made if need be.
        request: What to write.
        overwrite: Replace a finished set that was written for another request.

    Returns:
        How many files had to be written.

    Raises:
        FileExistsError: If ``root`` holds anything else, or a finished set that
            was written for another request and ``overwrite`` is not set.
    """
    folder = OwnFolder(root, RECORD)
    record = folder.read()
    files = None
    if record is not None:
        if record.get('layout') not in LAYOUTS:
            raise FileExistsError(
                f'{folder.file} is not a record of this tool: give another --out'
            )
        folder.remove([path.name for path in root.glob(f'{DRAFT}*')])
        # earlier versions kept no list
        files = record.pop('files', LAYOUTS[record['layout']].paths)
        if record == request.record(complete=True):
            files = folder.missing(files)
            if not files:
                return 0
        elif record.get('complete') and not overwrite:
            raise FileExistsError(
                f'{root} holds shapes made with other arguments or another version: '
                'give --overwrite to replace them, or another --out'
            )
        else:
            folder.remove(files)
            files = None
    if files is None:
        folder.write(dict(request.record(complete=False), files=[]))
    return write_files(folder, request, files)


def write_files(folder: OwnFolder, request: Request, names: Optional[list[str]]) -> int:
    """Draw the whole set beside its place, and move files there.

    Args:
        folder: Where they belong.
        request: The set.
        names: The files to move, None for all of them.

    Returns:
        How many files were moved.
    """
    layout = LAYOUTS[request.layout]._replace(size=request.size)
    counts = dict(train=request.num_train, val=request.num_val)
    with tempfile.TemporaryDirectory(dir=folder.path, prefix=DRAFT) as draft:
        layout.write(
            Path(draft),
            {
                split: draw_split(
                    layout, split, count, request.seed, request.difficulty
                )
                for split, count in counts.items()
            },
        )
        paths = (path for path in Path(draft).rglob('*') if path.is_file())
        files = sorted(path.relative_to(draft).as_posix() for path in paths)
        if names is None:
            folder.write(dict(request.record(complete=False), files=files))
        for name in files if names is None else names:
            (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
            Path(draft, name).replace(folder.path / name)
    folder.write(dict(request.record(complete=True), files=files))
    return len(files if names is None else names)


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Read the command line."""
    parser = Parser(description=__doc__)
    parser.add_argument('--layout', required=True, choices=LAYOUTS)
    parser.add_argument(
        '--out',
        required=True,
        type=output_folder,
        help='folder to write to: the data_root',
    )
    parser.add_argument(
        '--num-train', type=int, default=240, help='training images (default: 240)'
    )
    parser.add_argument(
        '--num-val', type=int, default=60, help='validation images (default: 60)'
    )
    parser.add_argument('--seed', type=int, default=0, help='default: 0')
    parser.add_argument(
        '--size',
        type=int,
        nargs=2,
        metavar=('W', 'H'),
        help='width and height of every image in pixels (default: 256 128 for '
        'cityscapes, else 192 192)',
    )
    group = parser.add_argument_group('what makes shapes harder to tell')
    group.add_argument(
        '--texture',
        type=float,
        default=EASY.texture,
        metavar='STRENGTH',
        help='stripes on shapes and background, 0 (none) to 1 (default: %(default)s)',
    )
    group.add_argument(
        '--clutter',
        type=float,
        default=EASY.clutter,
        metavar='FACTOR',
        help='on the number of lines and blobs behind the shapes '
        '(default: %(default)s)',
    )
    group.add_argument(
        '--scale',
        type=float,
        nargs=2,
        metavar=('MIN', 'MAX'),
        help="square root of a shape's area over the image's shorter side "
        '(default: 0.45 0.62 for imagenet, else 0.25 0.42)',
    )
    group.add_argument(
        '--occlusion',
        type=float,
        default=EASY.occlusion,
        metavar='SHARE',
        help='the most of a shape that others may hide (default: %(default)s)',
    )
    group.add_argument(
        '--occluders',
        type=int,
        default=EASY.occluders,
        metavar='N',
        help='blobs in front of the shapes, as far as --occlusion allows '
        '(default: %(default)s)',
    )
    parser.add_argument(
        '--overwrite',
        action='store_true',
        help='replace shapes that this tool wrote to --out with other arguments',
    )
    return parser.parse_args(argv)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command line tool."""
    args = parse_args(argv)
    size = tuple(args.size or LAYOUTS[args.layout].size)
    with errors_in_one_line(ValueError, OSError):
        difficulty = Difficulty(
            args.texture,
            args.clutter,
            args.occlusion,
            args.occluders,
            args.scale and tuple(args.scale),
        )
        request = Request(
            args.layout, args.num_train, args.num_val, args.seed, size, difficulty
        )
        written = make_shapes(args.out, request, args.overwrite)
        files = OwnFolder(args.out, RECORD).read()['files']
    done = 'wrote' if written else 'already there:'
    if 0 < written < len(files):
        done = f'wrote {written} missing files again of'
    print(
        f'{done} {args.num_train} training and {args.num_val} validation images in '
        f'the {args.layout} layout, {args.out}'
    )


if __name__ == '__main__':
    main()
