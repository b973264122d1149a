_base_ = './retinanet_deit-s12.py'
# no weights of 24 layers are public
pretrained = None
model = dict(backbone=dict(num_layers=24))
