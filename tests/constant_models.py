"""Small ONNX files whose outputs are constants."""

import json

import numpy as np
import onnx

FOUND = dict(
    boxes=np.float32([[2, 1, 10, 7], [0, 0, 5.5, 5.5], [3.2, 2.9, 20, 11]]),
    scores=np.float32([0.9, 0.6, 0.2]),
    labels=np.int64([1, 0, 2]),
    masks=np.random.default_rng(0).random((3, 4, 4), np.float32),
)


def write_file(path, taken='image', **outputs):
    """A file whose outputs are constants."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes = [
        helper.make_node('Constant', [], [name], value=numpy_helper.from_array(value))
        for name, value in outputs.items()
    ]
    types = {
        name: helper.np_dtype_to_tensor_dtype(value.dtype)
        for name, value in outputs.items()
    }
    describe = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        'constants',
        [describe(taken, onnx.TensorProto.UINT8, ['height', 'width', 3])],
        [describe(name, types[name], value.shape) for name, value in outputs.items()],
    )
    opsets = [helper.make_opsetid('', 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    notes = json.dumps(dict(classes=['cat', 'dog', 'owl'], mask_threshold=0.5))
    model.metadata_props.add(key='notes', value=notes)
    onnx.save(model, str(path))
    return str(path)
