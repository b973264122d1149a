_base_ = './cityscapes-768x768_swin-1x.py'
# as SOFT's authors configure it: no weight decay, heads ten times as fast, batch 16 here too;
# leaves from Medium on have their drop path of 0.3
optim_wrapper = dict(optimizer=dict(weight_decay=0.0), paramwise_cfg=dict(custom_keys=dict(head=dict(lr_mult=10.0))))
auto_scale_lr = dict(base_batch_size=16)
