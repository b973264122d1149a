_base_ = './ade20k-512x512_swin-3x.py'
# as SOFT's authors configure it: no weight decay, heads ten times as fast
optim_wrapper = dict(optimizer=dict(weight_decay=0.0), paramwise_cfg=dict(custom_keys=dict(head=dict(lr_mult=10.0))))
