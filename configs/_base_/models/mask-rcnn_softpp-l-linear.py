_base_ = './mask-rcnn_softpp-l.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
