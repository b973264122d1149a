_base_ = './cityscapes-768x768_3x.py'
# as Swin and VMamba train UperNet
optim_wrapper = dict(optimizer=dict(lr=6e-5))
