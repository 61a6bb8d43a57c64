"""Gradients of weights that many calls share, each as one matrix product.

RegularGPT applies the same linear layers at every level. Differentiated as it
stands, each level gives a gradient as large as the weights, and all of them are
written, read and added. Here the inputs of all calls of a layer are put one
below the other, and so are the gradients of their outputs: one product of the
two is the gradient of the layer's weights. The same sum in another order.
"""

import collections
from typing import Any

import chex
from flax import linen as nn
from flax import traverse_util
import jax
import jax.numpy as jnp

_Path = tuple[str, ...]


def apply(
  module: nn.Module, variables: chex.ArrayTree, arrays: Any, **static
) -> jax.Array:
  """Returns `module.apply(variables, **arrays, **static)`.

  Args:
    module: Its `nn.Dense` layers may be called any number of times, but not
      inside `nn.scan` or `nn.remat`.
    variables: Its parameters, {'params': ...}.
    arrays: Arguments that are arrays, by name; none has a gradient.
    **static: Further arguments.
  """

  def plain(variables, arrays):
    return module.apply(variables, **arrays, **static)

  def watched(variables, arrays, taps):
    """Also returns the layers' inputs and outputs, call by call.

    Args:
      variables: As above.
      arrays: As above.
      taps: Added to the outputs; None for nothing.
    """
    inputs, outputs = (collections.defaultdict(list) for _ in range(2))

    def intercept(call, args, kwargs, context):
      layer = context.module
      out = call(*args, **kwargs)
      if isinstance(layer, nn.Dense) and context.method_name == '__call__':
        if taps is not None:
          out += taps[layer.path][len(outputs[layer.path])]
        inputs[layer.path].append(args[0])
        outputs[layer.path].append(out)
      return out

    with nn.intercept_methods(intercept):
      out = plain(variables, arrays)
    return out, dict(inputs), dict(outputs)

  def forward(variables, arrays):
    _, _, outputs = jax.eval_shape(
      lambda: watched(variables, arrays, taps=None)
    )

    def with_taps(variables, taps):
      held = _without_gradient(variables, outputs)
      out, inputs, _ = watched(held, arrays, taps)
      return out, inputs

    taps = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), outputs)
    out, backward_taps, inputs = jax.vjp(
      with_taps, variables, taps, has_aux=True
    )
    return out, (backward_taps, inputs)

  def backward(residuals, out_grad):
    backward_taps, inputs = residuals
    grads, output_grads = backward_taps(out_grad)
    flat = traverse_util.flatten_dict(grads['params'])
    for path, grads_of_calls in output_grads.items():
      x_NxI = _stacked(inputs[path])
      grad_NxO = _stacked(grads_of_calls)
      kernel, bias = (*path, 'kernel'), (*path, 'bias')
      grad_IxO = jnp.einsum('ni,no->io', x_NxI.astype(grad_NxO.dtype), grad_NxO)
      flat[kernel] = grad_IxO.astype(flat[kernel].dtype)
      if bias in flat:
        flat[bias] = grad_NxO.sum(0, dtype=flat[bias].dtype)
    return {'params': traverse_util.unflatten_dict(flat)}, None

  joint = jax.custom_vjp(plain)
  joint.defvjp(forward, backward)
  return joint(variables, arrays)


def _without_gradient(
  variables: chex.ArrayTree, layers: dict[_Path, Any]
) -> chex.ArrayTree:
  """Stops the gradient of the parameters of some layers."""
  flat = traverse_util.flatten_dict(variables['params'])
  return {
    'params': traverse_util.unflatten_dict(
      {
        path: jax.lax.stop_gradient(x) if path[:-1] in layers else x
        for path, x in flat.items()
      }
    )
  }


def _stacked(calls: list[jax.Array]) -> jax.Array:
  """Puts the rows of all calls one below the other."""
  return jnp.concatenate([x.reshape(-1, x.shape[-1]) for x in calls])
