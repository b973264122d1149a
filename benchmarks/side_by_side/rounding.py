"""ONNX files in half precision, computed as on a GPU at worst.

ONNX Runtime's operators for processors have no float16: it computes in float32, and
rounds later or not at all. What a file does on a GPU is hidden there.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

PRODUCTS = ('Conv', 'ConvTranspose', 'Gemm', 'MatMul')


class Rounded:
    """A file that computes in float32, and rounds each result in float16.

    Args:
        model (onnx.ModelProto): A file in half precision. It is changed.

    Attributes:
        names (set[str]): The tensors in float16, without weights.
        num_products (int): Products in float16.
    """

    def __init__(self, model):
        model = onnx.shape_inference.infer_shapes(model)
        graph = model.graph
        self.outputs = [output.name for output in graph.output]
        types = {x.name: x.type.tensor_type.elem_type for x in graph.value_info}
        self.names = {x for x, kind in types.items() if kind == TensorProto.FLOAT16}
        self._weights = {
            x.name for x in graph.initializer if x.data_type == TensorProto.FLOAT16
        }
        self._nodes, self._wide, self._notes = [], {}, []
        for node in graph.node:
            self._take(node)
        del graph.node[:], graph.value_info[:]
        graph.node.extend(self._nodes)
        graph.output.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in self._notes
        )
        self.num_products = sum(x.startswith('sum:') for x in self._notes)
        self.session = open_file(model, is_exact=True)

    def __call__(self, image):
        """Computes the outputs, the largest magnitude of a tensor in float16, and the
        largest sum of magnitudes in a product, which no partial sum exceeds."""
        taken = self.session.get_inputs()[0].name
        values = self.session.run([*self.outputs, *self._notes], {taken: image})
        outputs = values[: len(self.outputs)]
        notes = dict(zip(self._notes, values[len(self.outputs) :]))
        largest = [
            max((float(x) for name, x in notes.items() if name.startswith(kind)))
            for kind in ('max:', 'sum:')
        ]
        return outputs, *largest

    def _take(self, node):
        """Adds a node that rounds its results."""
        halves = self.names | self._weights
        if node.op_type == 'Cast' or not halves & {*node.input, *node.output}:
            self._nodes.append(node)
            results = halves & {*node.output}
        else:
            inputs = [self._widen(name) for name in node.input]
            if node.op_type in PRODUCTS:
                self._add_magnitudes(node, inputs)
            results = halves & {*node.output}
            outputs = [f'{x}:exact' if x in results else x for x in node.output]
            self._copy(node, inputs, outputs)
            for name in results:
                self._add('Cast', f'{name}:exact', name, to=TensorProto.FLOAT16)
        for name in results:
            self._note('max', self._widen(name))

    def _widen(self, name):
        """The name of a tensor in float32."""
        is_half = name in self._weights or name in self.names
        if is_half and name not in self._wide:
            self._wide[name] = f'{name}:wide'
            self._add('Cast', name, self._wide[name], to=TensorProto.FLOAT)
        return self._wide.get(name, name)

    def _add_magnitudes(self, node, inputs):
        sizes = [f'{node.name}:{i}' for i in range(len(inputs))]
        for name, size in zip(inputs, sizes):
            self._add('Abs', name, size)
        self._copy(node, sizes, [f'{node.name}:sizes'])
        self._note('sum', f'{node.name}:sizes')

    def _note(self, kind, name):
        self._add('Abs', name, f'{name}:abs')
        self._add('ReduceMax', f'{name}:abs', f'{kind}:{name}', keepdims=0)
        self._notes.append(f'{kind}:{name}')

    def _add(self, kind, taken, result, **attributes):
        self._nodes.append(helper.make_node(kind, [taken], [result], **attributes))

    def _copy(self, node, inputs, outputs):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = outputs[0]
        copy.input[:], copy.output[:] = inputs, outputs
        self._nodes.append(copy)


def open_file(model, is_exact=False, threads=1):
    """Opens a file; its graph stays as it is if results must be exact."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if is_exact:
        level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=['CPUExecutionProvider']
    )


def difference(outputs, expected):
    """The largest difference, relative to the largest entry of an output; infinite
    where a value is not finite."""
    errors = [abs(x - y).max() / abs(y).max() for x, y in zip(outputs, expected)]
    return float(max(errors)) if np.isfinite(errors).all() else np.inf
