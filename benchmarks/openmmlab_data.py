"""Made-up images, labels and language models for any model of an OpenMMLab library."""

import copy
from functools import partial

import numpy as np
import torch
from mmengine.structures import InstanceData, PixelData
from openmmlab_configs import find

SIDES = dict(mmdet=128, mmrotate=128, mmseg=128, mmpretrain=224)
# parts of MMRotate's models that learn from quadrilaterals
OF_QUADRILATERALS = ('RepPoints', 'CFA', 'GVBBox', 'GVRatio', 'GVFix')
# self-supervised models that see an image once
ONE_VIEW = (
    'MAE',
    'MFF',
    'MILAN',
    'MixMIM',
    'SimMIM',
    'SparK',
    'MaskFeat',
    'iTPN',
    'EVA',
)


def classes_of(model):
    """Return the least number of classes that a part of a model knows."""
    counts = find(model, 'num_classes') + find(model, 'num_things_classes')
    return min([n for n in counts if isinstance(n, int) and n > 0], default=2)


def side_of(model, library):
    """Return the side of square images in pixels that a model takes."""
    for part in (model.get('bbox_head'), model.get('backbone')):
        for name in ('input_size', 'img_size'):
            sides = [side for side in find(part, name) if side]
            if sides and library != 'mmseg':
                return sides[0] if isinstance(sides[0], int) else sides[0][0]
    many = any(number > 300 for number in find(model, 'num_queries'))
    return SIDES[library] * (2 if many else 1)  # as many pixels as queries


def detection_data(model, side, count, training):
    """Return images with boxes, masks and segments."""
    preprocessor = model.get('data_preprocessor') or {}
    single = training and preprocessor.get('use_det_processor')
    if 'Track' in preprocessor.get('type', '') and not single:
        data = videos(model, side, training)
        tracks = data['data_samples']
        samples = [frame for track in tracks for frame in track.video_data_samples]
    else:
        data = photos_with_objects(model, side, count)
        samples = data['data_samples']
    num_classes = 2 if find(model, 'language_model') else classes_of(model)
    for sample in samples:
        complete(sample, side, num_classes)
    if 'MultiBranch' in preprocessor.get('type', '') and training:
        data = {key: for_branches(value) for key, value in data.items()}
    return data


def videos(model, side, training):
    """Return a video of one frame or, for a training, of two."""
    from mmdet.testing import _utils as made

    frames = dict(num_frames=2, key_frames_inds=[0]) if training else dict(num_frames=1)
    return made.demo_track_inputs(
        1,
        num_classes=max(2, classes_of(model)),
        image_shapes=(3, side, side),
        with_mask=True,
        **frames,
    )


def photos_with_objects(model, side, count):
    """Return images of four objects."""
    from mmdet.testing import _utils as made

    coarse = find(model, 'semantic_head') and not find(model, 'panoptic')
    coarse = coarse and 'Panoptic' not in model['type']
    return made.demo_mm_inputs(
        count,
        (3, side, side),
        [4] * count,
        min(max(2, classes_of(model)), 200),  # more do not fit into a byte
        sem_seg_output_strides=8 if coarse else 1,
        with_mask=True,
        with_semantic=True,
        texts=['cat . dog .'] * count if find(model, 'language_model') else None,
    )


def complete(sample, side, num_classes):
    """Give a sample labels that a model knows, proposals, and what trackers and
    transformers ask for."""
    sample.gt_instances.labels %= num_classes
    corners = torch.rand(20, 2) * side / 2
    boxes = torch.cat([corners, corners + side / 3], 1)
    sample.proposals = InstanceData(bboxes=boxes, scores=torch.rand(20))
    sample.set_metainfo(dict(homography_matrix=np.eye(3)))
    sample.set_metainfo(dict(batch_input_shape=(side, side)))


def rotated_data(model, side, count, training):
    """Return images of four objects in rotated boxes or quadrilaterals."""
    from mmrotate.structures.bbox import RotatedBoxes

    data = photos_with_objects(model, side, count)
    as_quadrilaterals = any(part in str(model) for part in OF_QUADRILATERALS)
    for sample in data['data_samples']:
        complete(sample, side, classes_of(model))
        # detectors make their own, and have no masks
        del sample.proposals, sample.gt_instances.masks
        low, high = sample.gt_instances.bboxes.split(2, 1)
        size, angle = (high - low).clamp(min=8), torch.rand(len(low), 1) - 0.5
        boxes = RotatedBoxes(torch.cat([(low + high) / 2, size, 3 * angle], 1))
        none = RotatedBoxes(torch.zeros(0, 5))
        if as_quadrilaterals:
            boxes, none = boxes.convert_to('qbox'), none.convert_to('qbox')
        sample.gt_instances.bboxes = boxes
        sample.ignored_instances = InstanceData(bboxes=none)
    return data


def for_branches(value):
    """Return the same data for each branch of a semi-supervised training."""
    branches = ('sup', 'unsup_teacher', 'unsup_student')
    return {branch: copy.deepcopy(value) for branch in branches}


def segmentation_data(model, side, count, training):
    """Return images with a class, or a depth, for each pixel."""
    from mmseg.structures import SegDataSample

    channels = (model.get('backbone') or {}).get('in_channels', 3)
    channels = channels if isinstance(channels, int) else 3
    samples = []
    for _ in range(count):
        labels = torch.randint(classes_of(model), (1, side, side))
        shape = dict(img_shape=(side, side), ori_shape=(side, side), flip=False)
        samples.append(
            SegDataSample(
                metainfo=dict(shape, pad_shape=(side, side)),
                gt_sem_seg=PixelData(data=labels),
                gt_edge_map=PixelData(data=labels % 2),
                gt_depth_map=PixelData(data=torch.rand(1, side, side)),
            )
        )
    images = [torch.randint(256, (channels, side, side)).byte() for _ in range(count)]
    return dict(inputs=images, data_samples=samples)


def is_self_supervised(model):
    """Return whether a config is of a model that learns features, and predicts
    nothing."""
    from mmpretrain.models import BaseSelfSupervisor
    from mmpretrain.registry import MODELS

    kind = MODELS.get(model['type'])
    return isinstance(kind, type) and issubclass(kind, BaseSelfSupervisor)


def classification_data(model, side, count, training):
    """Return images with a class, and for self-supervised models their views and
    masks."""
    from mmpretrain.structures import DataSample

    images = torch.randint(256, (count, 3, side, side)).byte()
    samples = [DataSample().set_gt_label(i % classes_of(model)) for i in range(count)]
    data = dict(inputs=images, data_samples=samples)
    if not is_self_supervised(model):
        return data
    side //= dict(SimMIM=4, MixMIM=1).get(model['type'], 16)
    for sample in samples:
        sample.mask = (torch.rand(side, side) > 0.5).long()
    views = 8 if model['type'] == 'SwAV' else 2
    if model['type'] in ('BEiT', 'CAE'):  # what makes their targets sees half the size
        return dict(data, inputs=[images, images[..., ::2, ::2]])
    one = model['type'] in ONE_VIEW or not training
    return dict(data, inputs=images if one else [images] * views)


DATA = dict(
    mmdet=detection_data,
    mmrotate=rotated_data,
    mmseg=segmentation_data,
    mmpretrain=classification_data,
)


def made_up_language_models(folder):
    """Let language models have random weights and few words, instead of a download."""
    import transformers

    words = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '.', '?', 'cat', 'dog']
    words += [f'[unused{index}]' for index in range(1000)]
    vocabulary = folder / 'words.txt'
    vocabulary.write_text('\n'.join(words))
    tokenizer = transformers.BertTokenizerFast(str(vocabulary))
    sizes = dict(vocab_size=2000, hidden_size=768, num_hidden_layers=2)
    config = transformers.BertConfig(**sizes)
    for kind in (transformers.AutoTokenizer, transformers.BertTokenizer):
        kind.from_pretrained = lambda *args, **kwargs: tokenizer
    transformers.BertConfig.from_pretrained = lambda *args, **kwargs: config
    model = partial(transformers.BertModel, config, add_pooling_layer=False)
    transformers.BertModel.from_pretrained = lambda *args, **kwargs: model()
