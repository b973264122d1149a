"""Emulates the worst rounding that a GPU applies to a float16 file.

ONNX Runtime has hardly any operator in float16 for processors: it computes in float32,
and rounds later or not at all. So it does not show what a file computes on a GPU, least
of all that numbers are beyond float16.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from .half import tensors_of_type

# what is noted: the largest magnitude of a tensor, the largest sum in a product
NOTES = ('max', 'sum')
_PRODUCTS = ('Conv', 'ConvTranspose', 'Gemm', 'MatMul')


class Rounded:
    """A file that computes in float32, and rounds each result in float16.

    Args:
        path (Path): A file in half precision.
        notes (Sequence[str]): Those of :data:`NOTES` that :meth:`run` returns.
        threads (int): Of an operator.

    Attributes:
        model (onnx.ModelProto): The changed file.
        num_products (int): Products in float16, if their sums are noted.
    """

    def __init__(
        self, path: Path, notes: Sequence[str] = NOTES, threads: int = 1
    ) -> None:
        self.model = onnx.shape_inference.infer_shapes(onnx.load(str(path)))
        graph = self.model.graph
        self._halves = tensors_of_type(graph, TensorProto.FLOAT16)
        self._outputs = [output.name for output in graph.output]
        self._noted = notes
        self._notes: list[str] = []
        self._wide: dict[str, str] = {}
        self._nodes: list[Any] = []
        for node in graph.node:
            self._take(node)
        del graph.node[:], graph.value_info[:]
        graph.node.extend(self._nodes)
        graph.output.extend(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            for name in self._notes
        )
        self.num_products = sum(name.startswith('sum:') for name in self._notes)
        self._session: Any = None
        if notes:
            self._session = self._open(threads)

    def run(self, images: np.ndarray) -> tuple[list[np.ndarray], float, float]:
        """Run the file.

        Args:
            images (ndarray): What the file takes.

        Returns:
            tuple: The outputs, the largest magnitude of a tensor in float16, and the
                largest sum of magnitudes in a product: no partial sum of it is larger,
                in any order. What is not noted is 0.
        """
        input_name = self._session.get_inputs()[0].name
        names = [*self._outputs, *self._notes]
        values = dict(zip(names, self._session.run(names, {input_name: images})))
        largest, sums = (
            max(
                (float(values[x]) for x in self._notes if x.startswith(kind)), default=0
            )
            for kind in NOTES
        )
        return [values[name] for name in self._outputs], largest, sums

    def _take(self, node: Any) -> None:
        """Add a node that rounds its results."""
        results = self._halves.intersection(node.output)
        if node.op_type == 'Cast' or not self._halves.intersection(node.input):
            self._nodes.append(node)
        else:
            inputs = [self._widen(name) for name in node.input]
            if node.op_type in _PRODUCTS and 'sum' in self._noted:
                sizes = [
                    self._add('Abs', name, f'{node.name}:{i}')
                    for i, name in enumerate(inputs)
                ]
                self._copy(node, sizes, [f'{node.name}:sizes'])
                self._note('sum', f'{node.name}:sizes')
            outputs = [f'{x}:exact' if x in results else x for x in node.output]
            self._copy(node, inputs, outputs)
            for name in results:
                self._add('Cast', f'{name}:exact', name, to=TensorProto.FLOAT16)
        for name in results:
            wide = self._widen(name)
            if 'max' in self._noted:
                self._note('max', wide)

    def _widen(self, name: str) -> str:
        """Return the name of a tensor in float32."""
        if name in self._halves and name not in self._wide:
            wide = self._add('Cast', name, f'{name}:wide', to=TensorProto.FLOAT)
            self._wide[name] = wide
        return self._wide.get(name, name)

    def _note(self, kind: str, name: str) -> None:
        size = self._add('Abs', name, f'{name}:abs')
        self._notes.append(self._add('ReduceMax', size, f'{kind}:{name}', keepdims=0))

    def _add(self, kind: str, name: str, result: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(kind, [name], [result], **attributes))
        return result

    def _copy(self, node: Any, inputs: Iterable[str], outputs: Iterable[str]) -> None:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:], copy.output[:] = inputs, outputs
        copy.name = copy.output[0]
        self._nodes.append(copy)

    def _open(self, threads: int) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.enable_mem_pattern = False  # one for each size would stay
        # notes are taken at once: till then, what they are of would be kept
        options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        return onnxruntime.InferenceSession(
            self.model.SerializeToString(), options, providers=['CPUExecutionProvider']
        )
