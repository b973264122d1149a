_base_ = './cityscapes-768x768_swin-1x.py'
# the learning rate that the SOFT++ paper prints; weight decay and warm-up, not printed, are Swin's
optim_wrapper = dict(optimizer=dict(lr=6e-4))
auto_scale_lr = dict(base_batch_size=16)
