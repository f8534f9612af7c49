"""A graph of ONNX operators under construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

OPSET = 17
"""Version of the operators; onnxruntime has them since 1.12."""

IR_VERSION = 8

Operand = str | float | npt.NDArray[Any]


class Graph:
    """Operators that are added one by one; each gives the name of its result.

    A single number must not multiply or divide what goes into a matrix product or comes out of it:
    onnxruntime would make it a factor of the product in single precision.
    """

    def __init__(self) -> None:
        try:
            import onnx  # pyright: ignore
            from onnx import helper, numpy_helper  # pyright: ignore
        except ImportError as error:
            raise ImportError("to_onnx needs onnx: pip install bayespc[onnx]") from error
        self.onnx: Any = onnx
        self._helper: Any = helper
        self._arrays: Any = numpy_helper
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._named: dict[tuple[Any, ...], str] = {}

    def constant(self, value: Operand) -> str:
        """Return the name of a constant; the same value has one name."""
        if isinstance(value, str):
            return value
        array = np.ascontiguousarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float64)
        if np.ndim(value) == 0:
            array = array.reshape(())
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._named:
            self._named[key] = f"c{len(self._constants)}"
            self._constants.append(self._arrays.from_array(array, self._named[key]))
        return self._named[key]

    def op(self, kind: str, *operands: Operand, **attributes: Any) -> str:
        """Add an operator."""
        name = f"v{len(self._nodes)}"
        inputs = [self.constant(operand) for operand in operands]
        self._nodes.append(self._helper.make_node(kind, inputs, [name], **attributes))
        return name

    def add(self, a: Operand, b: Operand) -> str:
        return self.op("Add", a, b)

    def sub(self, a: Operand, b: Operand) -> str:
        return self.op("Sub", a, b)

    def mul(self, a: Operand, b: Operand) -> str:
        return self.op("Mul", a, b)

    def div(self, a: Operand, b: Operand) -> str:
        return self.op("Div", a, b)

    def matmul(self, a: Operand, b: Operand) -> str:
        return self.op("MatMul", a, b)

    def affine(self, x: Operand, weights: npt.NDArray[np.float64]) -> str:
        """Return W [x; 1] of every row x."""
        return self.add(self.matmul(x, weights[:, :-1].T), weights[:, -1])

    def total(self, x: Operand, axis: int, keep: bool = False) -> str:
        """Return sums along an axis."""
        return self.op("ReduceSum", x, np.array([axis], dtype=np.int64), keepdims=int(keep))

    def square(self, x: Operand) -> str:
        return self.mul(x, x)

    def within(self, x: Operand, low: Operand, high: Operand) -> str:
        return self.op("Min", self.op("Max", x, low), high)

    def columns(self, x: Operand, places: list[int]) -> str:
        return self.op("Gather", x, np.array(places, dtype=np.int64), axis=1)

    def column(self, x: Operand, place: int) -> str:
        return self.columns(x, [place])

    def axis(self, x: Operand, place: int) -> str:
        """Return x with an axis of length 1 put in."""
        return self.op("Unsqueeze", x, np.array([place], dtype=np.int64))

    def number(self, truth: Operand) -> str:
        """Return 1 for what is true, 0 for what is not."""
        return self.op("Cast", truth, to=self.onnx.TensorProto.DOUBLE)

    def positive(self, x: Operand) -> str:
        return self.number(self.op("Greater", x, 0.0))

    def floor(self, x: Operand) -> str:
        return self.op("Floor", x)

    def beside(self, parts: list[str]) -> str:
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def model(self, width: int, outputs: list[tuple[str, str, int]], notes: dict[str, str]) -> Any:
        """Return the model with an input X of this width, and these outputs: what, its name, its width."""
        double = self.onnx.TensorProto.DOUBLE
        for value, name, _ in outputs:
            self._nodes.append(self._helper.make_node("Identity", [value], [name]))
        info = self._helper.make_tensor_value_info
        graph = self._helper.make_graph(
            self._nodes,
            "bayespc",
            [info("X", double, ["n", width])],
            [info(name, double, ["n", columns]) for _, name, columns in outputs],
            initializer=self._constants,
        )
        opset = self._helper.make_opsetid("", OPSET)
        model = self._helper.make_model(graph, opset_imports=[opset], producer_name="bayespc")
        model.ir_version = IR_VERSION
        self._helper.set_model_props(model, notes)
        self.onnx.checker.check_model(model)
        return model
