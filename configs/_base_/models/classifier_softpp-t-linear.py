_base_ = './classifier_softpp-t.py'
model = dict(backbone=dict(type='mmlinattn.LinearSOFTPlusPlus'))
