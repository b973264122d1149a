"""COCO, 25 epochs of 4 repetitions, with MMDetection's large-scale jittering: images 0.1 to 2 times 1024 x 1024,
cropped to that.

Source: length and steps are MMDetection's too; the optimizer is that of 1x.
"""

_base_ = './coco-instance_1x.py'

__theirs = __import__('mmlinattn.configs').configs.library_config('mmdet::common/lsj-100e_coco-instance.py')
train_pipeline = __theirs.train_pipeline
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='RepeatDataset',
        times=4,
        dataset=dict(_base_.train_dataloader.dataset, pipeline=train_pipeline),
    )
)
train_cfg = dict(max_epochs=25, val_interval=5)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=25, milestones=[22, 24])
