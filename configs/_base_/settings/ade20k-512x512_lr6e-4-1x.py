_base_ = './ade20k-512x512_swin-1x.py'
# the learning rate that the SOFT++ paper prints; weight decay and warm-up, not printed, are Swin's
optim_wrapper = dict(optimizer=dict(lr=6e-4))
