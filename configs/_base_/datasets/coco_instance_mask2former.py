"""COCO boxes and masks with large-scale jittering, as Mask2Former trains."""

_base_ = 'mmdet::_base_/datasets/coco_instance.py'

train_pipeline = [
    dict(type='LoadImageFromFile', to_float32=True, backend_args=None),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='RandomResize', scale=(1024, 1024), ratio_range=(0.1, 2.0), resize_type='Resize', keep_ratio=True),
    dict(
        type='RandomCrop', crop_size=(1024, 1024), crop_type='absolute', recompute_bbox=True, allow_negative_crop=True
    ),
    dict(type='FilterAnnotations', min_gt_bbox_wh=(1e-5, 1e-5), by_mask=True),
    dict(type='PackDetInputs'),
]
test_pipeline = _base_.test_pipeline
test_pipeline[0].update(to_float32=True)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
