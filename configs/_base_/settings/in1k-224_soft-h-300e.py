_base_ = './in1k-224_soft-300e.py'
# SOFT-Huge, normalized or not, in its authors' configs, for 1,024 images
optim_wrapper = dict(optimizer=dict(lr=2.7e-4))
