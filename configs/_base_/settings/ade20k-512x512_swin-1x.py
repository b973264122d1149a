_base_ = './ade20k-512x512_1x.py'
# as Swin and VMamba train UperNet
optim_wrapper = dict(optimizer=dict(lr=6e-5))
