_base_ = './cityscapes-768x768_swin-3x.py'
# as SOFT's authors configure it: no weight decay, heads ten times as fast, batch 16 here too
optim_wrapper = dict(optimizer=dict(weight_decay=0.0), paramwise_cfg=dict(custom_keys=dict(head=dict(lr_mult=10.0))))
auto_scale_lr = dict(base_batch_size=16)
