_base_ = './mask-rcnn_softpp-s.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
