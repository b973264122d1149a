"""36 epochs: the 1x schedule of H-ViT^3, three times as long."""

_base_ = './coco-instance_hvittt-ms-crop-1x.py'
train_cfg = dict(max_epochs=36, val_interval=3)
param_scheduler = _base_.param_scheduler
param_scheduler[1].update(end=36, milestones=[27, 33])
