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
dota        data/split_ss_dota/            storage tank vehicle plane     -

Each image has 1 to 4 shapes (imagenet: one) that may hide a fifth of each other, on
noise, lines and small blobs; every annotation describes the visible part. Blobs are
unlabeled if the dataset has such a label (ade20k: 0, cityscapes: static). The same
command writes the same images with the same numpy, OpenCV and Pillow; a larger set
contains the smaller one. make_shapes.json, next to the data, marks a folder as one of
shapes: others are not written to.
"""

import argparse
import colorsys
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

import cv2
import numpy as np
from PIL import Image, ImageDraw
from rich.progress import track

from mmlinattn.cli import parser as cli

SPLITS = ('train', 'val')
# Corners, and radius of the circumscribed circle, of regular polygons of unit area.
SHAPES = dict(circle=(36, 0.567), square=(4, 0.707), triangle=(3, 0.877))
MAX_TURN = np.pi / 12  # in both directions from upright
MAX_HIDDEN = 0.2  # of the area of a shape
STRETCH = (0.8, 1.0)  # width over height
# aerial photos have objects of all directions
AERIAL_TURN = np.pi
AERIAL_STRETCH = (0.4, 0.7)

Color = tuple[int, ...]  # red, green and blue
Polygon = list[tuple[int, int]]


# --------------------------------------------------------------------- scenes
def fill(canvas: np.ndarray, polygon: Polygon, value: Union[int, Color]) -> np.ndarray:
    """Return a copy of the (H, W) or (H, W, 3) uint8 canvas with the polygon filled."""
    image = Image.fromarray(canvas)
    ImageDraw.Draw(image).polygon(polygon, fill=value)
    return np.array(image)


class Scene:
    """An image, (H, W, 3) uint8, RGB, and its visible regions.

    Later regions hide earlier ones: ``index`` (H, W), uint8, has for each pixel the
    position in ``kinds`` (keys of SHAPES, or sky, ground, clutter) of the one seen
    there.
    """

    def __init__(self, size: Sequence[int]) -> None:
        self.size = size
        self.image = np.zeros((size[1], size[0], 3), np.uint8)
        self.index = np.zeros((size[1], size[0]), np.uint8)
        self.kinds: list[str] = []

    def paint(self, kind: str, polygon: Polygon, color: Color) -> None:
        """Add a region on top."""
        self.image = fill(self.image, polygon, color)
        self.index = fill(self.index, polygon, len(self.kinds))
        self.kinds.append(kind)

    def label_map(self, values: Mapping[str, int]) -> np.ndarray:
        """(H, W) uint8: the value of the visible kind at each pixel."""
        return np.array([values[kind] for kind in self.kinds], np.uint8)[self.index]

    def shapes(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield kind and visible mask, (H, W) uint8 of 0 and 1, of each shape."""
        for i, kind in enumerate(self.kinds):
            if kind in SHAPES:
                yield kind, (self.index == i).astype(np.uint8)


def vivid_color(rng: np.random.Generator, others: Sequence[Color]) -> Color:
    """Return a saturated color: the one of a few random ones farthest from the
    others."""
    hues = [
        colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.6, 1), rng.uniform(0.5, 1))
        for _ in range(3)
    ]
    colors = np.round(255 * np.array(hues)).astype(int)
    gaps = np.linalg.norm(colors[:, None] - np.array(others), axis=-1).min(1)
    return tuple(colors[gaps.argmax()].tolist())


def ring(radii: np.ndarray, turn: float = 0.0, stretch: float = 1.0) -> np.ndarray:
    """(n, 2) corners at equal angles around the origin, stretched in x, then turned."""
    # One side lies at the bottom, so a stretched square is an upright rectangle.
    angles = np.pi / 2 + (np.arange(len(radii)) + 0.5) * 2 * np.pi / len(radii)
    corners = radii * np.exp(1j * angles)
    corners = (stretch * corners.real + 1j * corners.imag) * np.exp(1j * turn)
    return np.stack([corners.real, corners.imag], axis=1)


def place(
    rng: np.random.Generator, corners: np.ndarray, size: Sequence[int]
) -> Polygon:
    """Move the corners to a random place inside the image and round them."""
    corners = corners - corners.min(axis=0)
    free = np.subtract(size, 1) - corners.max(axis=0)
    corners = np.round(corners + rng.uniform(0, np.maximum(free, 0))).astype(int)
    return [(x, y) for x, y in corners.tolist()]


def still_visible(index: np.ndarray, areas: Mapping[int, int]) -> bool:
    """Return True if each shape shows enough of its area, in one piece without
    holes."""
    for i, area in areas.items():
        mask = (index == i).astype(np.uint8)
        pieces, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        if mask.sum() < (1 - MAX_HIDDEN) * area or len(pieces) != 1:
            return False
    return True


def draw_background(rng: np.random.Generator, scene: Scene) -> list[Color]:
    """Draw sky and ground, with lines and small blobs; return the colors of the two."""
    right, bottom = np.subtract(scene.size, 1).tolist()
    ground = tuple(rng.integers((70, 70, 40), (140, 130, 90)).tolist())
    sky = tuple(rng.integers((120, 150, 180), (190, 205, 240)).tolist())
    left_y, right_y = np.round(rng.uniform(0.35, 0.65, 2) * bottom).astype(int).tolist()
    whole = [(0, 0), (right, 0), (right, bottom), (0, bottom)]
    scene.paint('ground', whole, ground)
    scene.paint('sky', [(0, 0), (right, 0), (right, right_y), (0, left_y)], sky)
    for _ in range(rng.integers(4, 9)):
        begin, end = rng.integers(0, scene.size, (2, 2)).tolist()
        color = rng.integers(0, 256, 3).tolist()
        cv2.line(scene.image, begin, end, color, thickness=int(rng.integers(1, 3)))
    for _ in range(rng.integers(5, 13)):
        size = min(scene.size) * rng.uniform(0.02, 0.06)
        corners = ring(size * rng.uniform(0.5, 1, rng.integers(5, 10)))
        polygon = place(rng, corners, scene.size)
        scene.paint('clutter', polygon, vivid_color(rng, [sky, ground]))
    return [sky, ground]


def draw_scene(
    rng: np.random.Generator, kinds: Sequence[str], args: argparse.Namespace
) -> Scene:
    """Draw shapes, keys of SHAPES from back to front, on a cluttered background: the
    first always, the others if they fit."""
    scene = Scene(args.size)
    colors = draw_background(rng, scene)
    # the square root of a shape's area over the shorter side
    scale = (0.45, 0.62) if args.layout == 'imagenet' else (0.25, 0.42)
    aerial = args.layout == 'dota'
    max_turn = AERIAL_TURN if aerial else MAX_TURN
    stretch = AERIAL_STRETCH if aerial else STRETCH
    areas: dict[int, int] = {}  # in pixels, by position in scene.kinds
    for kind in kinds:
        corners, unit = SHAPES[kind]
        for _ in range(50):
            radii = np.full(corners, rng.uniform(*scale) * min(scene.size) * unit)
            turn = rng.uniform(-max_turn, max_turn)
            outer = ring(radii, turn, rng.uniform(*stretch))
            polygon, position = place(rng, outer, scene.size), len(scene.kinds)
            index = fill(scene.index, polygon, position)
            if still_visible(index, areas):
                break
        else:
            continue
        colors.append(vivid_color(rng, colors))
        scene.paint(kind, polygon, colors[-1])
        mask = (index == position).astype(np.uint8)
        areas[position] = int(mask.sum())
        # A dark rim keeps shapes of like colors apart where they overlap.
        inside = cv2.erode(mask, np.ones((3, 3)), borderValue=(0,))
        scene.image[mask > inside] //= 2
    width, height = args.size
    coarse = rng.normal(0, 12, (height // 16 + 2, width // 16 + 2, 3))
    noise = cv2.resize(coarse, tuple(args.size), interpolation=cv2.INTER_CUBIC)
    noise = noise + rng.normal(0, 8, noise.shape)
    scene.image = np.clip(scene.image + noise, 0, 255).astype(np.uint8)
    return scene


def draw_split(split: str, args: argparse.Namespace) -> Iterator[Scene]:
    """Draw the scenes of one split one by one, with a progress bar."""
    num_images = args.num_train if split == 'train' else args.num_val
    for i in track(range(num_images), description=split):
        # Each image has its own stream, so counts change no image.
        rng = np.random.default_rng([args.seed, SPLITS.index(split), i])
        names = list(SHAPES)
        num_shapes = rng.integers(1, 2 if args.layout == 'imagenet' else 5)
        # The first shapes take turns, so that even a tiny set has every class.
        kinds = [names[i % len(names)]] + rng.choice(names, num_shapes - 1).tolist()
        yield draw_scene(rng, kinds, args)


# -------------------------------------------------------------------- writers
COCO_IDS = dict(circle=37, square=84, triangle=38)
ADE20K_LABELS = dict(clutter=0, sky=3, ground=10, circle=120, square=42, triangle=115)
CITYSCAPES_IDS = dict(clutter=4, sky=23, ground=7, circle=33, square=26, triangle=24)
TRAIN_IDS = dict(clutter=255, sky=10, ground=0, circle=18, square=13, triangle=11)
CITYSCAPES_THINGS = dict(
    person=24, rider=25, car=26, truck=27, bus=28, train=31, motorcycle=32, bicycle=33
)
IMAGENET_CLASSES = dict(
    circle=('n04254680', 805), square=('n03127925', 519), triangle=('n09472597', 980)
)

DOTA_CLASSES = dict(circle='storage-tank', square='small-vehicle', triangle='plane')


def save(content: Union[np.ndarray, str], path: Path) -> None:
    """Save an (H, W[, C]) array as an image, or a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, np.ndarray):
        Image.fromarray(content).save(path, quality=90)
    else:
        path.write_text(content)


def outline(mask: np.ndarray) -> list[float]:
    """Return the polygon x1, y1, x2, ... in pixels along the edge of a solid mask."""
    # OpenCV joins pixel centers; at three times the size, these are 1/6 pixel inside.
    large = mask.repeat(3, axis=0).repeat(3, axis=1)
    (contour,), _ = cv2.findContours(large, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    points = cv2.approxPolyDP(contour, 1.0, closed=True).reshape(-1)
    return np.round((points + 0.5) / 3, 2).tolist()


def annotate(
    content: dict[str, Any], scene: Scene, name: str, ids: Mapping[str, int]
) -> None:
    """Add a scene to the content of a COCO file."""
    images, annotations = content['images'], content['annotations']
    width, height = scene.size
    i = len(images) + 1
    images.append(dict(id=i, file_name=name, width=width, height=height))
    for kind, mask in scene.shapes():
        shape = dict(
            id=len(annotations) + 1,
            image_id=i,
            category_id=ids[kind],
            segmentation=[outline(mask)],
            area=int(mask.sum()),
            bbox=list(map(float, cv2.boundingRect(mask))),
            iscrowd=0,
        )
        annotations.append(shape)


def coco_categories(layout: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return ids of the shapes, and the categories of a COCO file; none for other
    layouts."""
    if layout == 'cityscapes':
        return CITYSCAPES_IDS, CITYSCAPES_THINGS
    if layout == 'coco':
        from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights as kind

        names = kind.COCO_V1.meta['categories'][1:]  # 'N/A' where COCO has no id
        return COCO_IDS, {name: i for i, name in enumerate(names, 1) if name != 'N/A'}
    ids = {name: i for i, name in enumerate(SHAPES, 1)}
    return ids, ids if layout == 'shapes' else {}


def write_coco(root: Path, split: str, i: int, scene: Scene) -> str:
    """Write {train,val}2017/*.jpg."""
    name = f'{i:012d}.jpg'
    save(scene.image, root / f'{split}2017' / name)
    return name


def write_ade20k(root: Path, split: str, i: int, scene: Scene) -> str:
    """Write images and annotations in {training,validation}."""
    file = f'{dict(train="training", val="validation")[split]}/ADE_{split}_{i:08d}'
    save(scene.image, root / 'images' / f'{file}.jpg')
    save(scene.label_map(ADE20K_LABELS), root / 'annotations' / f'{file}.png')
    return f'{file}.jpg'


def write_cityscapes(root: Path, split: str, i: int, scene: Scene) -> str:
    """Write leftImg8bit and gtFine."""
    city = dict(train='aachen', val='frankfurt')[split]
    stem = f'{city}/{city}_{i:06d}_000019'
    save(scene.image, root / 'leftImg8bit' / split / f'{stem}_leftImg8bit.png')
    labels = dict(labelIds=scene.label_map(CITYSCAPES_IDS))
    labels['labelTrainIds'] = scene.label_map(TRAIN_IDS)
    labels['instanceIds'] = labels['labelIds'].astype(np.uint16)
    for number, (kind, mask) in enumerate(scene.shapes()):
        labels['instanceIds'][mask > 0] = CITYSCAPES_IDS[kind] * 1000 + number
    for name, pixels in labels.items():
        save(pixels, root / 'gtFine' / split / f'{stem}_gtFine_{name}.png')
    return f'{stem}_leftImg8bit.png'


def write_imagenet(root: Path, split: str, i: int, scene: Scene) -> str:
    """Write train/<wnid>/*.JPEG and val/*.JPEG; the line of its list."""
    wnid, label = IMAGENET_CLASSES[next(scene.shapes())[0]]
    names = dict(train=f'{wnid}/{wnid}_{i}.JPEG', val=f'ILSVRC2012_val_{i:08d}.JPEG')
    save(scene.image, root / split / names[split])
    return f'{names[split]} {label}\n'


def write_dota(root: Path, split: str, i: int, scene: Scene) -> str:
    """Write images and annfiles in {trainval,val}: corners of rotated boxes, the class
    and 0 for an object that is not difficult, a line each."""
    folder = root / dict(train='trainval', val='val')[split]
    save(scene.image, folder / 'images' / f'P{i:04d}.png')
    lines = []
    for kind, mask in scene.shapes():
        points = np.argwhere(mask)[:, ::-1].astype(np.float32)
        box = cv2.boxPoints(cv2.minAreaRect(points)).astype(float)
        corners = np.round(box, 1).reshape(-1)
        lines.append(' '.join([*map(str, corners.tolist()), DOTA_CLASSES[kind], '0']))
    save('\n'.join(lines) + '\n', folder / 'annfiles' / f'P{i:04d}.txt')
    return f'P{i:04d}.png'


# each writes a scene, and returns its name in a list
WRITERS: dict[str, Callable[[Path, str, int, Scene], str]] = dict(
    coco=write_coco,
    shapes=write_coco,
    ade20k=write_ade20k,
    cityscapes=write_cityscapes,
    imagenet=write_imagenet,
    dota=write_dota,
)
FOLDERS = (
    'train2017',
    'val2017',
    'annotations',
    'images',
    'leftImg8bit',
    'gtFine',
    'train',
    'trainval',
    'val',
    'meta',
)


def write(root: Path, args: argparse.Namespace) -> None:
    """Draw all scenes and write them, with the COCO files that their layout has."""
    ids, category_ids = coco_categories(args.layout)
    categories = [dict(id=i, name=name) for name, i in category_ids.items()]
    for split in SPLITS:
        content: dict[str, Any] = dict(images=[], annotations=[], categories=categories)
        names: list[str] = []
        for i, scene in enumerate(draw_split(split, args), 1):
            names.append(WRITERS[args.layout](root, split, i, scene))
            if categories:
                annotate(content, scene, names[-1], ids)
        if args.layout == 'imagenet':
            save(''.join(names), root / 'meta' / f'{split}.txt')
        name = f'instances_{split}2017.json'
        if args.layout == 'cityscapes':
            name = f'instancesonly_filtered_gtFine_{split}.json'
        if categories:
            save(json.dumps(content), root / 'annotations' / name)


# --------------------------------------------------------------- command line
def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = cli.Parser(description=__doc__)
    add = parser.add_argument
    add('--layout', required=True, choices=WRITERS)
    add('--out', required=True, type=cli.output_folder, help='the data_root')
    # mmdet's base configs drop smaller images
    count, side = cli.number(int, 1, 10**7), cli.number(int, 32, 8192)
    add('--num-train', type=count, default=240, help='training images (240)')
    add('--num-val', type=count, default=60, help='validation images (60)')
    add('--seed', type=cli.number(int, 0, 2**63), default=0, help='default: 0')
    text = 'width and height of the images (cityscapes: 256 128, others: 192 192)'
    add('--size', type=side, nargs=2, metavar=('W', 'H'), help=text)
    args = parser.parse_args(argv)
    if args.size is None:
        args.size = [256, 128] if args.layout == 'cityscapes' else [192, 192]
    return args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    args = parse_args(argv)
    with cli.errors_in_one_line(ValueError, OSError):
        cli.claim_folder(args.out, 'make_shapes.json')
        for folder in FOLDERS:
            shutil.rmtree(args.out / folder, ignore_errors=True)
        write(args.out, args)
    print(
        f'wrote {args.num_train} training and {args.num_val} validation images in the '
        f'{args.layout} layout, {args.out}'
    )


if __name__ == '__main__':
    main()
