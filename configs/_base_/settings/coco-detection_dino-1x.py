"""COCO, 12 epochs, batch 16 (8 GPUs x 2), as DINO trains: MMDetection's images and schedule.

Weight decay is 1e-4 on all parameters, the learning rate of the backbone a tenth; images without objects stay.
"""

_base_ = ['mmdet::_base_/datasets/coco_detection.py', '../det_runtime.py']

__theirs = __import__('mmlinattn.configs').configs.library_config('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py')
train_pipeline = __theirs.train_pipeline
train_dataloader = dict(dataset=dict(filter_cfg=dict(filter_empty_gt=False), pipeline=train_pipeline))
train_cfg = __theirs.train_cfg
val_cfg = __theirs.val_cfg
test_cfg = __theirs.test_cfg
optim_wrapper = __theirs.optim_wrapper
param_scheduler = __theirs.param_scheduler
auto_scale_lr = dict(enable=False, base_batch_size=16)
