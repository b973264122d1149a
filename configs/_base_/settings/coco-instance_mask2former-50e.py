"""COCO, 368,750 iterations (50 epochs), batch 16 (8 GPUs x 2), as Mask2Former trains.

Images and schedule are MMDetection's. It is validated every 5,000 iterations, and at the end.
"""

_base_ = ['mmdet::_base_/datasets/coco_instance.py', '../schedules/mask2former_optimizer.py', '../det_runtime.py']

__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py'
)
train_pipeline = __theirs.train_pipeline
test_pipeline = __theirs.test_pipeline
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
train_cfg = __theirs.train_cfg
param_scheduler = [__theirs.param_scheduler]
default_hooks = dict(checkpoint=dict(by_epoch=False, interval=5000, save_last=True))
log_processor = dict(by_epoch=False)
