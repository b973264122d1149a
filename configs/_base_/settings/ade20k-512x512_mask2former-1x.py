"""ADE20K, 160k iterations, batch 16 (8 GPUs x 2), as Mask2Former trains: MMSegmentation's images and schedule."""

_base_ = ['mmseg::_base_/datasets/ade20k.py', '../schedules/mask2former_optimizer.py', '../seg_runtime.py']

__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py'
)
train_pipeline = __theirs.train_pipeline
train_dataloader = dict(batch_size=2, dataset=dict(pipeline=train_pipeline))
train_cfg = __theirs.train_cfg
param_scheduler = __theirs.param_scheduler
default_hooks = dict(checkpoint=dict(interval=5000))
# the head is made of MMDetection's parts
custom_imports = __theirs.custom_imports
