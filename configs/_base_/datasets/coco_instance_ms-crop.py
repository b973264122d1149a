"""COCO boxes and masks, flipped; of half of the training images the shorter side is drawn from 480-800, half are made
400-600 large, cropped to 384-600 and resized to 480-800, as DETR and Swin train."""

_base_ = 'mmdet::_base_/datasets/coco_instance.py'

resize = dict(type='RandomChoiceResize', scales=[(side, 1333) for side in range(480, 801, 32)], keep_ratio=True)
train_pipeline = [
    dict(type='LoadImageFromFile', backend_args=None),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='RandomFlip', prob=0.5),
    dict(
        type='RandomChoice',
        transforms=[
            [resize],
            [
                dict(type='RandomChoiceResize', scales=[(400, 1333), (500, 1333), (600, 1333)], keep_ratio=True),
                dict(type='RandomCrop', crop_type='absolute_range', crop_size=(384, 600), allow_negative_crop=True),
                resize,
            ],
        ],
    ),
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
