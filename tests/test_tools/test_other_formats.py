"""Formats that new_config does not read: the line that names each, and the commands."""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from own_folders import (
    BOX,
    HEIGHT,
    NAMES,
    SQUARE,
    WIDTH,
    coco,
    color_map,
    cvat,
    grow,
    label_map,
    labelme,
    name_of,
    photo,
    table,
    via,
    voc,
    yolo,
)
from PIL import Image

from mmlinattn.own_data import Options, OwnData, write
from mmlinattn.own_data.folder import Folder
from mmlinattn.own_data.format_marks import FORMATS, Format
from mmlinattn.own_data.other_formats import (
    INSTALL,
    NoData,
    OtherFormat,
    command,
    find_format,
    sample,
)

X, Y, W, H = BOX
CORNERS = [SQUARE[i : i + 2] for i in (0, 2, 4, 6)]
IN_IMAGES = {'images/{i}.jpg': photo}
LEFT_TOP = dict(left=X, top=Y, width=W, height=H)


def rows(make):
    """A list of what a function makes of each photo."""
    return [make(i) for i in range(10)]


def lines(make, header=''):
    """A text with a line of each photo."""
    return '\n'.join(filter(None, [header, *map(make, range(10))])) + '\n'


def jsonl(make):
    return lines(lambda i: json.dumps(make(i)))


def parts_of_sides():
    return X / WIDTH, (X + W) / WIDTH, Y / HEIGHT, (Y + H) / HEIGHT


def open_images(i):
    places = ','.join(map(str, parts_of_sides()))
    return f'{i},xclick,/m/{i % 2},1,{places},0,0,0,0,0'


OPEN_IMAGES = {
    'images/train/{i}.jpg': photo,
    'annotations/train-annotations-bbox.csv': lines(
        open_images,
        'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,'
        'IsTruncated,IsGroupOf,IsDepiction,IsInside',
    ),
    'annotations/class-descriptions.csv': '/m/0,red\n/m/1,blue\n',
    'annotations/train-images-with-labels-with-rotation.csv': lines(
        lambda i: f'{i},train,,,,,,,,,,0',
        'ImageID,Subset,OriginalURL,OriginalLandingURL,License,AuthorProfileURL,Author,'
        'Title,OriginalSize,OriginalMD5,Thumbnail300KURL,Rotation',
    ),
}


def cvat_video():
    """Two tracks, one for each class, each with a key frame in every second photo."""
    tracks = []
    for k, name in enumerate(NAMES):
        boxes = []
        for i in range(10):
            place = f'xtl="{X}" ytl="{Y}" xbr="{X + W}" ybr="{Y + H}"'
            boxes.append(
                f'<box frame="{i}" outside="{int(i % 2 != k)}" occluded="0" '
                f'keyframe="1" {place} z_order="0"></box>'
            )
        track = f'<track id="{k}" label="{name}" source="manual">'
        tracks.append(f'{track}{"".join(boxes)}</track>')
    labels = ''.join(f'<label><name>{name}</name></label>' for name in NAMES)
    return (
        '<annotations><version>1.1</version><meta><task><size>10</size>'
        '<mode>interpolation</mode><start_frame>0</start_frame><stop_frame>9'
        f'</stop_frame><labels>{labels}</labels><original_size><width>{WIDTH}</width>'
        f'<height>{HEIGHT}</height></original_size></task></meta>{"".join(tracks)}'
        '</annotations>'
    )


def create_ml(i):
    center = dict(x=X + W / 2, y=Y + H / 2, width=W, height=H)
    return dict(
        image=f'{i}.jpg', annotations=[dict(label=name_of(i), coordinates=center)]
    )


CREATE_ML = {
    'train/{i}.jpg': photo,
    'train/_annotations.createml.json': rows(create_ml),
}
CVAT_VIDEO = {'images/frame_00000{i}.png': photo, 'annotations.xml': cvat_video()}


def vott(i):
    tag = name_of(i)
    region = dict(id='a', type='RECTANGLE', tags=[tag], boundingBox=LEFT_TOP)
    asset = dict(format='jpg', id=str(i), name=f'{i}.jpg', path=f'file:{i}.jpg')
    asset['size'] = dict(width=WIDTH, height=HEIGHT)
    return dict(asset=asset, regions=[region], version='2.1.0')


VOTT = {
    '{i}.jpg': photo,
    'train-export.json': dict(
        name='x',
        videoSettings={},
        tags=[dict(name=name) for name in NAMES],
        assets={str(i): vott(i) for i in range(10)},
    ),
}


def datumaro(i):
    box = dict(id=0, type='bbox', bbox=BOX, label_id=i % 2, attributes={}, group=0)
    image = dict(path=f'{i}.jpg', size=[HEIGHT, WIDTH])
    return dict(id=str(i), annotations=[box], image=image)


DATUMARO = {
    'images/default/{i}.jpg': photo,
    'annotations/default.json': dict(
        info={},
        categories=dict(
            label=dict(labels=[dict(name=x, parent='', attributes=[]) for x in NAMES])
        ),
        items=rows(datumaro),
    ),
}


def wider(i):
    return f'0--A/{i}.jpg\n1\n{X} {Y} {W} {H} 0 0 0 0 0 0'


WIDER = {
    'WIDER_train/images/0--A/{i}.jpg': photo,
    'wider_face_split/wider_face_train_bbx_gt.txt': lines(wider),
}
KITTI = {
    'training/image_2/{i}.png': photo,
    'training/calib/{i}.txt': 'P0: 7.2e+02 0 6.1e+02 0\nP1: 7.2e+02 0 6.1e+02 0\n',
    'training/label_2/{i}.txt': lambda i: (
        f'{name_of(i)} 0.00 0 -1.57 {X}.0 {Y}.00 {X + W} {Y + H} 1 1 1 1 1 1 -1.6\n'
    ),
}
MOT = {
    'MOT-02/img1/00000{i}.jpg': photo,
    'MOT-02/gt/gt.txt': lines(lambda i: f'{i},{i},{X},{Y},{W},{H},1,{i % 2 + 1},1.0'),
    'MOT-02/gt/labels.txt': '\n'.join(NAMES),
}
# a folder, and what its line calls it, for --task det
DETECTION = {
    'Open Images': OPEN_IMAGES,
    'CVAT for video': CVAT_VIDEO,
    'MOT': MOT,
    'Datumaro': DATUMARO,
    'WIDER FACE': WIDER,
    'KITTI': KITTI,
}


def panoptic(i):
    segment = dict(id=1 + i % 2, category_id=1 + i % 2, area=484, bbox=BOX, iscrowd=0)
    return dict(image_id=i, file_name=f'{i}.png', segments_info=[segment])


def of_square(*colors):
    """Maps of colors: a square has the one of its class, the ground is black."""
    return lambda i: color_map((0, 0, 0), colors[i % 2])


# a folder, and what its line calls it, for --task seg
SEGMENTATION = {
    'panoptic COCO': {
        'images/train/{i}.jpg': photo,
        'annotations/panoptic_train/{i}.png': of_square((1, 0, 0), (2, 0, 0)),
        'annotations/panoptic_train.json': dict(
            images=rows(
                lambda i: dict(id=i, file_name=f'{i}.jpg', height=HEIGHT, width=WIDTH)
            ),
            annotations=rows(panoptic),
            categories=[
                dict(id=k, name=name, isthing=1) for k, name in enumerate(NAMES, 1)
            ],
        ),
    },
    'ADE20K of 2017': {
        'training/x/{i}.jpg': photo,
        'training/x/{i}_seg.png': of_square((10, 1, 1), (20, 2, 1)),
        'training/x/{i}_atr.txt': lambda i: (
            f'001 # 0 # 0 # {name_of(i)} # {name_of(i)} # ""\n'
        ),
    },
    'MOTS': {
        'train/images/{i}.jpg': photo,
        'train/instances/{i}.png': lambda i: label_map(
            0, 1001 + 1000 * (i % 2), 0, dtype=np.uint16
        ),
        'train/instances/labels.txt': '\n'.join(NAMES),
    },
}
POLYGON = dict(exterior=CORNERS, interior=[])
RINGS = [CORNERS + CORNERS[:1]]


def supervisely(i):
    entry = dict(classTitle=name_of(i), geometryType='polygon', points=POLYGON)
    return dict(description='', tags=[], objects=[entry])


def darwin(i):
    path = [dict(x=x, y=y) for x, y in CORNERS]
    entry = dict(name=name_of(i), polygon=dict(paths=[path]))
    return dict(item=dict(name=f'{i}.jpg', slots=[]), annotations=[entry])


def super_annotate(i):
    entry = dict(type='polygon', className=name_of(i), points=SQUARE)
    return dict(metadata=dict(name=f'{i}.jpg'), instances=[entry])


def labelbox(i):
    entry = dict(name=name_of(i), bounding_box=LEFT_TOP)
    label = dict(annotations=dict(objects=[entry]))
    return dict(
        data_row=dict(external_id=f'{i}.jpg'), projects=dict(x=dict(labels=[label]))
    )


def label_studio(i):
    value = dict(x=1, y=2, width=3, height=4, rectanglelabels=[name_of(i)])
    result = dict(type='rectanglelabels', from_name='label', value=value)
    task = dict(data=dict(image=f'/data/{i}.jpg'), annotations=[dict(result=[result])])
    return dict(id=i, **task)


def geojson(i):
    shape = dict(type='Polygon', coordinates=RINGS)
    feature = dict(type='Feature', geometry=shape, properties=dict(name=name_of(i)))
    return dict(type='FeatureCollection', features=[feature])


def scalabel(i):
    box = dict(x1=X, y1=Y, x2=X + W, y2=Y + H)
    return dict(name=f'{i}.jpg', labels=[dict(category=name_of(i), box2d=box)])


def segment_anything(i):
    entry = dict(id=i, bbox=BOX, predicted_iou=0.9, stability_score=0.9)
    return dict(image=dict(image_id=i, file_name=f'{i}.jpg'), annotations=[entry])


def file_of(content, path='a.json'):
    return {**IN_IMAGES, path: content}


ONE_FILE = {
    "CVAT's backup": file_of(
        [dict(version=0, tags=[], shapes=[dict(label='x', points=BOX)], tracks=[])],
        'annotations.json',
    ),
    'CreateML': CREATE_ML,
    'VoTT': VOTT,
    'Supervisely': file_of(supervisely, 'ann/{i}.jpg.json'),
    'V7 Darwin': file_of(darwin, 'ann/{i}.json'),
    'SuperAnnotate': file_of(super_annotate, '{i}.jpg___objects.json'),
    'Labelbox': file_of(rows(labelbox)),
    'Label Studio': file_of(rows(label_studio)),
    'GeoJSON': file_of(geojson, 'images/{i}.geojson'),
    'Scalabel': file_of(rows(scalabel)),
    'VIA 3': file_of(dict(metadata={'a': dict(vid='1', xy=[2, 8, 9, 22, 22], av={})})),
    'Encord': file_of([dict(label_hash='x', data_units={})]),
    'Kili': file_of([dict(externalId='0', labels=[dict(jsonResponse={})])]),
    'Hasty': file_of(dict(project_name='x', images=[], label_classes=[])),
    'Dataloop': file_of(dict(datasetId='x', filename='0.jpg', annotations=[])),
    'Segments.ai': file_of(dict(dataset={'samples': [dict(label_status='x')]})),
    'Scale AI': file_of([dict(task_id='x', response=dict(annotations=[]))]),
    'Azure': file_of('{"image_url": "x", "label": [{"topX": 0.1}]}', 'a.jsonl'),
    'Vertex AI': file_of('{"imageGcsUri": "gs://x/0.jpg"}', 'a.jsonl'),
    'SageMaker Ground Truth': file_of('{"source-ref": "x"}', 'output.manifest'),
    'Rekognition': file_of(dict(Labels=[dict(Instances=[dict(BoundingBox={})])])),
    'Ultralytics': file_of('{"type": "dataset", "class_names": {}}', 'a.ndjson'),
    'Prodigy': file_of('{"_input_hash": 1, "spans": []}', 'a.jsonl'),
    'dlib': file_of(
        '<dataset><images><image file="0"><box top="9"/></image></images></dataset>',
        'a.xml',
    ),
    'ASAP': file_of('<ASAP_Annotations></ASAP_Annotations>', 'images/0.xml'),
    'ImageScope': file_of('<Annotations><Regions/></Annotations>', 'images/0.xml'),
    'UA-DETRAC': file_of('<sequence name="x"><target_list/></sequence>', 'a.xml'),
    'AVA': file_of('label {}', 'annotations/ava_action_list_v2.2.pbtxt'),
    'MVTec': {
        'screw/test/scratch/{i}.png': photo,
        'screw/ground_truth/scratch/{i}_mask.png': label_map(0, 255),
    },
    'Segment Anything': {'{i}.jpg': photo, '{i}.json': segment_anything},
    'captions of COCO': file_of(
        dict(images=[], annotations=[dict(id=0, image_id=0, caption='x')])
    ),
    'a file of COCO results': file_of([dict(image_id=0, category_id=1, bbox=BOX)]),
    'VisDrone': file_of('8,9,22,22,1,4,0,0\n', 'images/{i}.txt'),
    'Mapillary Vistas': {
        'training/images/{i}.jpg': photo,
        'training/v2.0/polygons/{i}.json': dict(
            objects=[dict(label='x', polygon=CORNERS)]
        ),
    },
    'Cityscapes': file_of(
        dict(imgHeight=HEIGHT, objects=[dict(label='car', polygon=CORNERS)]),
        'gtFine/train/{i}_gtFine_polygons.json',
    ),
    'ADE20K of 2021': {
        '{i}.jpg': photo,
        '{i}.json': dict(annotation=dict(imsize=[48, 64, 3], object=[])),
    },
    'ICDAR text segmentation': {
        'train/images/{i}.png': photo,
        'train/{i}_GT.txt': '108 225 132 0 1 0 0 1 3 "F"\n',
        'train/{i}_GT.bmp': label_map(0, 1),
    },
    'labels of photos in COCO': file_of(
        dict(coco(), annotations=[dict(id=0, image_id=0, category_id=5)]),
        'annotations/labels_train.json',
    ),
    'ICDAR': file_of('8,9,30,9,30,31,8,31,"FOOD"\n', 'gt_img_{i}.txt'),
    'CelebA': file_of('2\nYoung\n0.jpg 1\n', 'Anno/list_attr_celeba.txt'),
    'LFW': file_of('2\nname0\t2\nname1\t1\n', 'annotations/people.txt'),
    'Market-1501': {'bounding_box_train/{i}.jpg': photo},
    'MPII': file_of([dict(img_paths='0.jpg', objpos=[1, 2])], 'mpii_annotations.json'),
    'CIFAR': file_of(b'\x80', 'data_batch_1'),
    'Synthia': file_of('1 1 10 10 10', 'GTTXT/{i}.txt'),
    'MNIST': file_of(b'\x1f\x8b', 'train-images-idx3-ubyte.gz'),
    'ImageNet with lists': file_of('red\nblue', 'synsets.txt'),
    'nuScenes': file_of([dict(token='x')], 'v1.0/object_ann.json'),
    'CrowdHuman': file_of('{"ID": "0", "gtboxes": []}', 'a.odgt'),
    'TT100K': file_of(dict(imgs={'0': dict(objects=[dict(category='x')])})),
    'a file of TensorFlow': file_of(b'\0', 'train/cells.tfrecord'),
    'a table of run lengths': file_of(
        table('ImageId,EncodedPixels', '{i}.jpg,442 22'), 'train.csv'
    ),
    'a table of Hugging Face': file_of(
        '{"file_name": "0.jpg"}', 'images/metadata.jsonl'
    ),
    'a video': {'a.mp4': b''},
    'an archive': {'images.zip': b'PK'},
    'a volume or a point cloud': {'images/0.nii': b'', 'labels/0.nii': b''},
    'a file of arrays': {'train.npz': b''},
}


ALL = {**DETECTION, **SEGMENTATION, **ONE_FILE}


def read(root, task='det', **options):
    return OwnData.from_folder(Options(root, task, **options))


@pytest.mark.parametrize('name', ALL)
def test_formats_are_named(tmp_path, name):
    root = grow(tmp_path / 'my data', ALL[name])
    with pytest.raises(OtherFormat) as caught:
        read(root)
    text = str(caught.value)
    what = name if name.startswith(('a ', 'an ')) else f'of {name}'
    assert f' is {what}, which new_config does not read: ' in text
    remedy = text.partition(' does not read: ')[2]
    words = ['convert', 'export', 'label', 'put', 'take', 'unpack', 'write', '--task']
    assert remedy.split()[0] in words, text


def test_lines(tmp_path):
    text = (
        'its ann/0.jpg.json is of Supervisely, which new_config does not read: export '
        'COCO from Supervisely'
    )
    root = grow(tmp_path / 'a', ONE_FILE['Supervisely'])
    with pytest.raises(OtherFormat, match=f'^{re.escape(text)}$'):
        read(root)
    root = grow(tmp_path / 'b', CVAT_VIDEO)
    text = (
        'its annotations.xml is of CVAT for video, which new_config does not read: '
        f'export COCO from CVAT, or convert it with `datum convert -i {root} -if cvat '
        f'-f coco_instances -o {root}_converted -e '
    )
    hints = f'({INSTALL}; frames must be called frame_000000.png and so on)'
    with pytest.raises(OtherFormat) as caught:
        read(root)
    assert str(caught.value).startswith(text) and str(caught.value).endswith(hints)
    with pytest.raises(OtherFormat, match='CIFAR, .*: convert it .* -f imagenet -o '):
        read(grow(tmp_path / 'c', ONE_FILE['CIFAR']), 'cls')
    with pytest.raises(OtherFormat, match='KITTI, .*: --task det says how to convert'):
        read(grow(tmp_path / 'd', KITTI), 'seg')
    with pytest.raises(OtherFormat, match='put the photos in a folder for each class'):
        read(grow(tmp_path / 'e', ONE_FILE['Supervisely']), 'cls')


def test_formats_that_readers_would_take_for_others(tmp_path):
    """The labels of a photo in Open Images are codes, which may be denied."""
    header = 'ImageID,Source,LabelName,Confidence'
    text = lines(lambda i: f'{i},verification,/m/{i % 2},1', header)
    root = grow(tmp_path, file_of(text, 'train-annotations-human-imagelabels.csv'))
    with pytest.raises(OtherFormat, match='^its train-.* is of Open Images, which'):
        read(root, 'cls', column='LabelName')


def test_formats_that_datumaro_converts_come_first(tmp_path):
    tree = {**ONE_FILE['captions of COCO'], **DATUMARO}
    with pytest.raises(OtherFormat, match='is of Datumaro'):
        read(grow(tmp_path, tree))


def test_all_formats_are_tested():
    """The name of a format can have several rows."""
    assert {each.name for each in FORMATS} == set(ALL)


def test_a_mark_at_the_end_of_a_long_file(tmp_path):
    entry = supervisely(0)
    root = grow(tmp_path, file_of(dict(x='x' * 2**19, **entry)))
    with pytest.raises(OtherFormat, match='a.json is of Supervisely'):
        read(root)


@pytest.mark.parametrize('encoding', ['utf-8-sig', 'utf-16'])
def test_texts_of_any_system(tmp_path, encoding):
    text = json.dumps(rows(label_studio)).encode(encoding)
    with pytest.raises(OtherFormat, match='Label Studio'):
        read(grow(tmp_path, file_of(text)))


RIGHT = {
    'coco': ('det', file_of(coco())),
    'coco, outlines': ('seg', file_of(coco(segmentation=[SQUARE]))),
    'voc': ('det', file_of(voc, 'Annotations/{i}.xml')),
    'cvat': ('seg', file_of(cvat(), 'annotations.xml')),
    'labelme': ('det', file_of(labelme, 'images/{i}.json')),
    'via': ('det', file_of(via())),
    'yolo': ('det', {**file_of(yolo, 'labels/{i}.txt'), 'classes.txt': 'red\nblue'}),
    'table of boxes': (
        'det',
        file_of(
            table('image,xmin,ymin,xmax,ymax,label', '{i}.jpg,8,9,30,31,{name}'),
            'a.csv',
        ),
    ),
    'label maps': ('seg', file_of(label_map(0, 1), 'masks/{i}.png')),
    'class folders': ('cls', {'{name}/{i}.jpg': photo}),
    'table of classes': (
        'cls',
        file_of(table('ImageID,LabelName', '{i},{name}'), 'a.csv'),
    ),
}


@pytest.mark.parametrize('name', RIGHT)
def test_right_data_have_no_marks(tmp_path, name):
    task, tree = RIGHT[name]
    root = grow(tmp_path, tree)
    folder = Folder(Options(root, task))
    assert find_format(folder, sample(folder)) is None
    assert sum(map(len, read(root, task).splits.values())) >= 10


@pytest.mark.parametrize('name', RIGHT)
def test_right_data_beside_other_formats(tmp_path, name):
    """An archive or the tool's own file beside an export is no reason to refuse it."""
    task, tree = RIGHT[name]
    more = {'meta/own.json': supervisely(0), 'all.zip': b'PK', 'clip.mp4': b''}
    root = grow(tmp_path, {**tree, **more})
    assert sum(map(len, read(root, task).splits.values())) >= 10


def test_errors_of_right_data_stay(tmp_path):
    """A damaged file is not blamed on another one's format, nor is an option."""
    content = coco()
    content['annotations'][0]['category_id'] = 99
    more = {'export.json': rows(label_studio)}
    root = grow(tmp_path / 'a', {**file_of(content), **more})
    with pytest.raises(ValueError, match=r'a\.json: annotation 0: its image') as caught:
        read(root)
    assert 'Label Studio' not in str(caught.value)
    root = grow(tmp_path / 'b', {**file_of(coco()), **more})
    with pytest.raises(ValueError, match='--classes red red: a name') as caught:
        read(root, classes=['red', 'red'])
    assert 'Label Studio' not in str(caught.value)


def test_other_errors_name_the_format_after_them(tmp_path):
    content = coco(file_name='no{i}.jpg')
    more = {'export.json': rows(label_studio)}
    text = r'10 of 10 photos .* missing in the folder.*; its export.json is of Label'
    with pytest.raises(OtherFormat, match=text):
        read(grow(tmp_path, {**file_of(content), **more}))


def test_unknown_labels_are_named(tmp_path):
    root = grow(tmp_path, {**file_of(dict(my=1), 'my.json'), 'readme.txt': 'x'})
    with pytest.raises(NoData, match=r'my\.json has no labels .*: export COCO, YOLO'):
        read(root)
    (root / 'my.json').unlink()
    with pytest.raises(NoData, match='the folders of each$'):
        read(root)


def test_named_pipes_are_not_read(tmp_path):
    root = grow(tmp_path, {**IN_IMAGES})
    os.mkfifo(root / 'a.jsonl')
    with pytest.raises(NoData, match='it has no data'):
        read(root)


def test_commands(tmp_path, monkeypatch):
    data = tmp_path / 'my data'
    kind = Format('x', (), dict(det='x', cls='y'), where="/a[not(b='c')]")
    assert shlex.split(command(kind, data, 'rot', data)) == [
        *('datum', 'convert', '-i', f'{data}', '-if', 'x', '-f', 'coco_instances'),
        *('-o', f'{data}_converted', '-e', "/a[not(b='c')]", '--filter-mode', 'a'),
        *('--', '--save-media', '--segmentation-mode', 'polygons'),
    ]
    data.mkdir()
    monkeypatch.chdir(data)
    words = shlex.split(
        command(Format('x', (), dict(cls='y')), Path('.'), 'cls', Path('.'))
    )
    assert words[3:8] == ['.', '-if', 'y', '-f', 'imagenet']
    assert words[9:] == [f'{data}_converted', '--', '--save-media']


@pytest.fixture(scope='module')
def datum(tmp_path_factory):
    """The command of datumaro, in an environment of its own."""
    folder = tmp_path_factory.mktemp('environment')
    python = folder / 'bin' / 'python'
    package = re.search("pip install '(.+?)'", INSTALL).group(1)
    try:
        subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
        subprocess.run([python, '-m', 'pip', 'install', '-q', package], check=True)
    except subprocess.CalledProcessError as error:
        pytest.skip(f'{package} is not to be had: {error}')
    return python.with_name('datum')


def convert(datum, root, task):
    """Runs the command that new_config prints for a folder; the new folder."""
    with pytest.raises(OtherFormat) as caught:
        read(root, task)
    words = shlex.split(re.search('`(datum .+?)`', str(caught.value)).group(1))
    subprocess.run([datum, *words[1:]], check=True, cwd=root.parent)
    return root.with_name(f'{root.name}_converted')


@pytest.mark.full
@pytest.mark.parametrize('name', DETECTION)
def test_commands_of_datumaro(tmp_path, datum, name):
    """new_config reads each square of what the printed command writes."""
    data = read(convert(datum, grow(tmp_path / 'my data', DETECTION[name]), 'det'))
    photos = {x.path: x for x in chain(*data.splits.values())}.values()
    assert len(photos) == 10 and not data.has_masks
    for x in photos:
        (item,) = x.objects
        assert item.bbox == pytest.approx(BOX, abs=1)
        number = int(re.findall(r'\d+', x.path.name)[-1])
        of_class = {'WIDER FACE': 'face', 'Open Images': f'/m/{number % 2}'}
        assert item.name == of_class.get(name, name_of(number))


@pytest.mark.full
@pytest.mark.parametrize('name', SEGMENTATION)
def test_commands_of_datumaro_for_label_maps(tmp_path, datum, name):
    """Label maps that are drawn from what it writes have the pixels of squares."""
    root = grow(tmp_path / 'my data', SEGMENTATION[name])
    data = read(convert(datum, root, 'seg'), 'seg')
    write(data, tmp_path / 'out')
    assert data.classes == ['background', *sorted(NAMES)]
    maps = list((tmp_path / 'out').rglob('*.png'))
    assert len(maps) == 10
    for path in maps:
        name = name_of(int(re.findall(r'\d+', path.name)[-1]))
        wanted = label_map(0, data.classes.index(name), 0)
        assert (np.array(Image.open(path)) != wanted).mean() < 0.02
