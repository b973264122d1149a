"""The table of formats that new_config does not read, and the marks of their files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

FROM_TOOL = 'export COCO from {name}'


@dataclass(frozen=True)
class Mark:
    """A kind of file.

    Args:
        path (str): A pattern of its path in lower case, from the folder of all data on.
        keys (str): Words in double quotes that it has, such as keys of JSON.
        text (str): A regular expression of a part of its text.
    """

    path: str
    keys: str = ''
    text: str = ''

    def fits(self, name: str, read: Callable[[], str]) -> bool:
        """Return whether a file, whose path in lower case is ``name``, is of this kind;
        its text is read where it matters."""
        if not fnmatchcase(name, self.path):
            return False
        if not self.keys and not self.text:
            return True
        text = read()
        has_keys = all(f'"{key}"' in text for key in self.keys.split())
        return has_keys and bool(re.search(self.text, text, re.M))


@dataclass(frozen=True)
class Format:
    """A format that new_config does not read.

    Args:
        name (str): Its own name, or its tool's.
        marks (tuple[Mark, ...]): Kinds of files, of which it has one or more.
        importers (Mapping[str, str]): Its name in datumaro, by task.
        advice (str): What to do for objects and areas without datumaro.
        remark (str): What datumaro's command needs or leaves.
        levels (int): How far above a marked file the folder is that datumaro takes; 0
            if this is the folder of all data.
        where (str): The annotations that it takes, as an expression of XPath.
        is_certain (bool): Readers take its files for others, so that they are refused
            before they are read.
    """

    name: str
    marks: tuple[Mark, ...]
    importers: Mapping[str, str] = field(default_factory=dict)
    advice: str = FROM_TOOL
    remark: str = ''
    levels: int = 0
    where: str = ''
    is_certain: bool = False


def _json(*keys: str, path: str = '*.json') -> tuple[Mark, ...]:
    """Return marks of JSON files, one for each set of keys."""
    return tuple(Mark(path, each) for each in keys)


def _names(*paths: str) -> tuple[Mark, ...]:
    """Return marks of files that their names tell."""
    return tuple(map(Mark, paths))


def _text(path: str, text: str) -> tuple[Mark, ...]:
    """Return a mark of files that a part of their text tells."""
    return (Mark(path, text=text),)


def _all(importer: str, tasks: str = 'det seg') -> dict[str, str]:
    """Return a name in datumaro for several tasks."""
    return dict.fromkeys(tasks.split(), importer)


def _plain(importer: str = '', tasks: str = 'det seg') -> dict[str, Any]:
    """Return the options of a data set, which has no other export."""
    return dict(importers=_all(importer, tasks) if importer else {}, advice='')


NUMBER = r'-?\d+(\.\d+)?(e-?\d+)?'
KITTI = rf'\A\s*[A-Za-z]\w*( {NUMBER}){{14,15}}\s*$'
MOT = rf'\A\s*\d+,\s*-?\d+(,\s*{NUMBER}){{4,8}}\s*$'
WIDER = r'\A\s*\S.*\.jpg\s*\n\d+\s*\n\d+( \d+){9}'
VISDRONE = r'\A\s*-?\d+(,-?\d+){3},[01],\d+,-?\d+,-?\d+,?\s*$'
ICDAR = r'\A\s*-?\d+(,? *-?\d+){3,7},? *("|###|\w+$)'
ICDAR_LETTERS = r'\A\s*(\d+ ){9}"'
OPEN_IMAGES = (
    r'\A"?(ImageID"?,"?(Source"?,"?LabelName|Subset"?,"?OriginalURL)'
    r'|MaskPath"?,"?ImageID)'
)
LABEL_STUDIO = r'"(rectangle|polygon|brush|ellipse|keypoint)labels"|"from_name"'
GEOJSON = r'"type"\s*:\s*"Feature(Collection)?"'
# annotations with a class and no box
COCO_LABELS = (
    r'\A(?=[\s\S]*"categories")(?=[\s\S]*"category_id")'
    r'(?![\s\S]*"(bbox|segmentation)")'
)
# a list whose first entry has an id of COCO, perhaps behind a mask
COCO_ENTRIES = r'\A\s*\[\s*\{[^{}]*(\{[^{}]*\}[^{}]*)*"(image_id|category_id)"\s*:'
RUN_LENGTHS = r'\A[^\n]*\b(EncodedPixels|encoded_pixels|rle|mask_rle|rle_mask)\b'
PHOTOS = 'write photos and their labels'
SCRIPT = 'convert it to COCO or YOLO'
DATA_SETS = (
    Format(
        'Open Images',
        _text('*.csv', OPEN_IMAGES),
        **_plain('open_images'),
        remark='classes keep their codes, such as /m/01yrx',
        is_certain=True,
    ),
    Format(
        'Segment Anything',
        _text('*.json', r'\A(?![\s\S]*"categories")[\s\S]*"predicted_iou"'),
        advice='label its outlines, which have no classes, and export COCO',
    ),
    Format('WIDER FACE', _text('*.txt', WIDER), **_plain('wider_face', 'det')),
    Format(
        'KITTI',
        (*_text('*.txt', KITTI), *_text('*/calib/*.txt', r'^P[0-3]: ')),
        **_plain('kitti_detection', 'det'),
    ),
    Format(
        'KITTI',
        _names('*/training/instance/*.png'),
        **_plain('kitti_segmentation', 'seg'),
    ),
    Format('VisDrone', _text('*.txt', VISDRONE), advice=SCRIPT),
    Format(
        'MOT',
        _text('*/gt.txt', MOT),
        **_plain('mot_seq', 'det'),
        remark='one sequence at a time',
        levels=2,
    ),
    Format('MOTS', _names('*/instances/labels.txt'), **_plain('mots')),
    Format(
        'Mapillary Vistas',
        (
            *_names('*/config_v?.?.json'),
            *_json('objects label polygon', path='*/polygons/*.json'),
        ),
        **_plain('mapillary_vistas_instances'),
    ),
    Format(
        'Cityscapes',
        (
            *_names('*_gtfine_polygons.json', '*_gtfine_instanceids.png'),
            *_json('imgHeight objects polygon'),
        ),
        **_plain('cityscapes'),
    ),
    Format('ADE20K of 2017', _names('*_atr.txt'), **_plain('ade20k2017')),
    Format('ADE20K of 2021', _json('annotation imsize object'), **_plain('ade20k2020')),
    Format(
        'panoptic COCO',
        (*_names('*/panoptic_*.json'), *_json('segments_info', 'isthing')),
        _all('coco_panoptic'),
        'take the instances_*.json of COCO',
    ),
    Format(
        'captions of COCO',
        _json('images annotations caption'),
        advice='take the instances_*.json of COCO',
    ),
    Format(
        'labels of photos in COCO',
        _text('*/labels_*.json', COCO_LABELS),
        _all('coco_labels', 'cls'),
        advice='take the instances_*.json of COCO',
    ),
    Format('ICDAR text segmentation', _text('*_gt.txt', ICDAR_LETTERS), **_plain()),
    Format('ICDAR', _text('*/gt_*.txt', ICDAR), **_plain()),
    Format('CelebA', _names('*/list_bbox_celeba.txt'), **_plain('celeba', 'det')),
    Format(
        'CelebA', _names('*/list_attr_celeba.txt', '*/identity_celeba.txt'), **_plain()
    ),
    Format('LFW', _text('*/people.txt', r'\A\d+$'), **_plain()),
    Format('Market-1501', _names('*/bounding_box_train/*'), **_plain()),
    Format('MPII', _names('*/mpii_annotations.json', '*/mpii_*.mat'), **_plain()),
    Format(
        'CIFAR',
        (
            *_names('*/data_batch_[0-9]', '*/batches.meta'),
            Mark('*/meta', text='fine_label_names'),
        ),
        **_plain('cifar', 'cls'),
    ),
    Format('AVA', _names('*/ava_action_list*.pbtxt'), **_plain('ava', 'det')),
    Format(
        'MVTec',
        _names('*/ground_truth/*/*_mask.png'),
        importers=dict(
            det='mvtec_detection', seg='mvtec_segmentation', cls='mvtec_classification'
        ),
        advice='',
    ),
    Format('Synthia', _names('*/gtleft/*.png'), **_plain('synthia_sf', 'seg')),
    Format('Synthia', _names('*/gttxt/*.txt'), **_plain()),
    Format('Synthia', _names('*/semseg/*.png'), **_plain('synthia_al', 'seg')),
    Format('MNIST', _names('*-idx3-ubyte*'), **_plain('mnist', 'cls')),
    Format(
        'ImageNet with lists', _names('*/synsets.txt'), **_plain('imagenet_txt', 'cls')
    ),
    Format(
        'nuScenes',
        _names('*/sample_annotation.json', '*/object_ann.json'),
        advice=SCRIPT,
    ),
    Format('CrowdHuman', _names('*.odgt'), advice=SCRIPT),
    Format('TT100K', _json('imgs objects category'), advice=SCRIPT),
    Format(
        'UA-DETRAC', _text('*.xml', r'<sequence\b[\s\S]*<target_list'), advice=SCRIPT
    ),
)
TOOLS = (
    Format(
        'CVAT for video',
        _text('*.xml', r'<annotations>[\s\S]*<track\b'),
        _all('cvat'),
        'export COCO from CVAT',
        remark='frames must be called frame_000000.png and so on',
        where="/item/annotation[not(outside='True')]",
    ),
    Format(
        "CVAT's backup", _json('tags shapes tracks'), advice='export COCO from CVAT'
    ),
    Format(
        'Datumaro',
        _json(
            'categories items label_id',
            'categories items dm_format_version',
            'categories items infos',
        ),
        _all('datumaro', 'det seg cls'),
        advice='',
    ),
    Format(
        'GeoJSON',
        (*_names('*.geojson'), *_text('*.json', GEOJSON)),
        advice='export COCO or label maps from its tool',
    ),
    Format(
        'VoTT',
        (*_names('*.vott'), *_json('asset regions', 'assets tags videoSettings')),
        advice='export Pascal VOC from VoTT',
    ),
    Format(
        'CreateML',
        (*_names('*.createml.json'), *_text('*.json', r'"coordinates"\s*:\s*\{')),
        advice='export COCO from its tool',
    ),
    Format('Supervisely', _json('classTitle', 'geometryType')),
    Format('V7 Darwin', _json('item slots', 'dataset original_filename annotations')),
    Format(
        'SuperAnnotate',
        (
            *_names('*___objects.json', '*___pixel.json'),
            *_json('instances className', 'instances classId'),
        ),
    ),
    Format(
        'Labelbox',
        (
            *_json('data_row projects', 'data_row labels'),
            *_json('data_row', path='*.ndjson'),
            *_text('*.json', '"(Labeled Data|DataRow ID)"'),
            *_text('*.csv', '"?(Labeled Data|DataRow ID)"?,'),
        ),
        advice=SCRIPT,
    ),
    Format('Label Studio', _text('*.json', LABEL_STUDIO)),
    Format('VIA 3', _json('vid xy av'), advice=SCRIPT),
    Format(
        'Scalabel',
        _json('box2d', 'poly2d', 'labels videoName'),
        advice='write COCO with its to_coco',
    ),
    Format('Encord', _json('label_hash', 'data_units')),
    Format('Kili', _json('jsonResponse')),
    Format('Hasty', _json('label_classes images project_name')),
    Format('Dataloop', _json('datasetId annotations', 'itemMetadata')),
    Format('Segments.ai', _json('segmentation_bitmap', 'label_status samples')),
    Format('Scale AI', _json('task_id response', 'task_id params'), advice=SCRIPT),
    Format('Azure', _json('image_url topX', path='*.jsonl')),
    Format('Vertex AI', _json('imageGcsUri', path='*.jsonl'), advice=SCRIPT),
    Format(
        'SageMaker Ground Truth',
        (*_names('*.manifest'), *_json('source-ref', path='*.json*')),
        advice=SCRIPT,
    ),
    Format('Rekognition', _json('Instances BoundingBox'), advice=SCRIPT),
    Format('Ultralytics', _json('class_names', path='*.ndjson'), advice=SCRIPT),
    Format('Prodigy', _json('_input_hash', path='*.jsonl'), advice=SCRIPT),
    Format(
        'dlib',
        _text('*.xml', r'<dataset>[\s\S]*<box\b'),
        advice='export VOC from imglab',
    ),
    Format(
        'ASAP',
        _text('*.xml', '<ASAP_Annotations'),
        advice='export label maps from its tool',
    ),
    Format(
        'ImageScope',
        _text('*.xml', r'<Annotations\b[\s\S]*<Regions'),
        advice='export label maps from its tool',
    ),
)
# kinds of files
OTHERS = (
    Format(
        'a file of COCO results',
        _text('*.json', COCO_ENTRIES),
        advice='take the file of ground truth',
    ),
    Format(
        'a file of TensorFlow',
        _names('*.tfrecord*', '*.record', '*.tfrec'),
        advice='export COCO from its tool',
    ),
    Format(
        'a table of run lengths',
        _text('*.csv', RUN_LENGTHS),
        advice='write label maps, or convert it to COCO',
    ),
    Format(
        'a table of Hugging Face',
        _names('*/metadata.jsonl', '*.parquet', '*.arrow'),
        advice=SCRIPT,
    ),
    Format(
        'a video',
        _names('*.avi', '*.mkv', '*.mov', '*.mp4', '*.webm'),
        advice='write its frames as photos',
    ),
    Format(
        'a volume or a point cloud',
        _names(
            '*.nii', '*.nii.gz', '*.dcm', '*.mha', '*.nrrd', '*.pcd', '*.ply', '*.las'
        ),
        advice=PHOTOS,
    ),
    Format(
        'an archive',
        _names('*.zip', '*.tar', '*.gz', '*.7z', '*.rar'),
        advice='unpack it',
    ),
    Format(
        'a file of arrays',
        _names('*.h5', '*.hdf5', '*.mat', '*.npy', '*.npz', '*.pkl'),
        advice=PHOTOS,
    ),
)
NAMED = (*DATA_SETS, *TOOLS)
FORMATS = (*NAMED, *OTHERS)
