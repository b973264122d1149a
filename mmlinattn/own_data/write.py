"""The files of a config: COCO's, or lists of photos, and label maps."""

import json
from pathlib import Path
from typing import Any

from PIL import Image

from .data_set import OwnData
from .records import OBJECT_TASKS, Photo


def write(data: OwnData, out: Path) -> None:
    """Write a COCO file for each split to a folder, or a list of photos with their
    labels, or beside their label maps."""
    out.mkdir(parents=True, exist_ok=True)
    for split, photos in data.splits.items():
        if data.folder.options.task in OBJECT_TASKS:
            text = json.dumps(to_coco(data, photos))
            (out / f'{split}.json').write_text(text)
            continue
        lines = [list_line(data, photo) for photo in photos]
        (out / f'{split}.txt').write_text('\n'.join(lines), 'utf-8')
        if data.label_maps:
            for photo in photos:
                path = out / 'labels' / f'{name_of(data, photo)}.png'
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(data.label_maps.labels(photo)).save(path)


def name_of(data: OwnData, photo: Photo) -> str:
    """Return a photo's path below the folder of its data set."""
    return photo.path.relative_to(data.folder.root).as_posix()


def list_line(data: OwnData, photo: Photo) -> str:
    """Return a photo's line in a list: its name, and its label if it has one."""
    name = name_of(data, photo)
    if name != name.lstrip():  # readers of lists strip lines
        name = f'./{name}'
    if photo.class_name is None:
        return name
    return f'{name} {data.classes.index(photo.class_name)}'


def to_coco(data: OwnData, photos: list[Photo]) -> dict[str, Any]:
    """Return the content of a COCO file."""
    labels = {name: label for label, name in enumerate(data.classes)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for image_id, photo in enumerate(photos):
        width, height = photo.size
        image = dict(id=image_id, file_name=name_of(data, photo))
        images.append(dict(image, width=width, height=height))
        for item in photo.objects:
            if item.name in labels:
                ids = dict(image_id=image_id, category_id=labels[item.name])
                annotations.append({**item.to_coco(), **ids, 'id': len(annotations)})
    categories = [dict(id=label, name=name) for name, label in labels.items()]
    return dict(images=images, annotations=annotations, categories=categories)
