"""Oriented R-CNN on the four maps of a pyramid. Still to be given: backbone and neck.in_channels."""

_base_ = ['mmrotate::oriented_rcnn/oriented-rcnn-le90_r50_fpn_1x_dota.py', '../settings/dota_1x.py']
pretrained = None
model = dict(backbone=dict(_delete_=True))
optim_wrapper = dict(_delete_=True, **_base_.dota_optim_wrapper)
default_hooks = _base_.dota_hooks
auto_scale_lr = dict(enable=False, base_batch_size=2)
