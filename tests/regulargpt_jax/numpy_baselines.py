"""The baselines once more: NumPy, float64, straight from their papers.

One string at a time, as one-hot rows, nothing padded. Parameters are Haiku's,
read by name.
"""

import collections
import itertools

import numpy as np

from tests.regulargpt_jax import numpy_oracle


def _linear(p, name, x):
  return x @ p[name]['w'] + p[name].get('b', 0.0)


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


# ---------------------------------------------------------------- recurrent


def recurrent(params, name, x_TxV, hidden_size, **memory):
  """Returns the logits after each symbol, [T, O] (Deletang et al., 2023).

  Args:
    params: Of the model.
    name: Of the model, in `baselines.BUILDERS`.
    x_TxV: The string.
    hidden_size: Of the controller.
    **memory: Arguments of the memory; what they are by default if left out.
  """
  p = numpy_oracle.as_float64(params)
  controller = _lstm if 'lstm' in name else _vanilla
  folder = '' if name in ('rnn', 'lstm') else _FOLDERS[name.split('_')[0]]
  inner = f'{folder}/~/' if folder else ''
  state = np.zeros((2, hidden_size))
  step, read = _MEMORIES[name.split('_')[0]](p, folder, len(x_TxV), **memory)
  logits = []
  for x in x_TxV:
    state = controller(p, inner, np.concatenate([x, read]), state)
    read = step(state[0])
    logits.append(_linear(p, 'readout', np.maximum(state[0], 0)))
  return np.array(logits)


def _vanilla(p, inner, x, state):
  """Elman, 1990, with ReLU."""
  from_input = _linear(p, f'{inner}vanilla_rnn/linear', x)
  from_before = _linear(p, f'{inner}vanilla_rnn/linear_1', state[0])
  return np.stack([np.maximum(from_input + from_before, 0), state[1]])


def _lstm(p, inner, x, state):
  """Jozefowicz et al., 2015: 1 is added to the forget gate."""
  hidden, cell = state
  gates = _linear(p, f'{inner}lstm/linear', np.concatenate([x, hidden]))
  i, g, f, o = np.split(gates, 4)
  cell = _sigmoid(f + 1) * cell + _sigmoid(i) * np.tanh(g)
  return np.stack([_sigmoid(o) * np.tanh(cell), cell])


def _no_memory(p, folder, length):
  del p, folder, length
  return lambda h: np.zeros(0), np.zeros(0)


def _stacks(p, folder, length, stack_cell_size, stack_size, n_stacks=1):
  """Joulin & Mikolov, 2015, eqs. 3 and 4; a value is linear in h."""
  del length
  stacks = np.zeros((n_stacks, stack_size, stack_cell_size))

  def step(h):
    actions = numpy_oracle.softmax(
      _linear(p, f'{folder}/action', h).reshape(n_stacks, 3)
    )
    values = _linear(p, f'{folder}/value', h).reshape(n_stacks, -1)
    for s, (push, pop, no_op), value in zip(
      stacks, actions, values, strict=True
    ):
      pushed = np.array([value, *s[:-1]])
      popped = np.array([*s[1:], 0 * value])
      s[:] = push * pushed + pop * popped + no_op * s
    return stacks[:, 0].reshape(-1)

  return step, stacks[:, 0].reshape(-1)


def _tapes(
  p,
  folder,
  length,
  memory_cell_size,
  memory_size,
  n_tapes=1,
  mlp_layers_size=(),
):
  """Deletang et al., 2023, appendix A: write, then move or jump."""
  tapes = np.zeros((n_tapes, memory_size, memory_cell_size))

  def step(h):
    actions = numpy_oracle.softmax(
      _linear(p, f'{folder}/action', h).reshape(n_tapes, 5)
    )
    for layer in range(len(mlp_layers_size) + 1):
      h = np.maximum(h, 0) if layer else h
      h = _linear(p, f'{folder}/value/~/linear_{layer}', h)
    values = h.reshape(n_tapes, -1)
    for tape, weights, value in zip(tapes, actions, values, strict=True):
      tape[0] = value
      # Stay, left, right, jump left, jump right.
      rolls = [0, -1, 1, -length, length]
      tape[:] = sum(
        w * np.roll(tape, roll, axis=0)
        for w, roll in zip(weights, rolls, strict=True)
      )
    return tapes[:, 0].reshape(-1)

  return step, tapes[:, 0].reshape(-1)


def _nondeterministic_stack(
  p, folder, length, stack_symbols, stack_states, stack_size
):
  """DuSell & Chiang, 2020: all runs of a pushdown automaton, one by one."""
  assert length <= stack_size
  nodes = (stack_states, stack_symbols)
  num_nodes = stack_states * stack_symbols
  runs = {(0, (0,)): 1.0}
  top = np.zeros(nodes)
  top[0, 0] = 1.0

  def step(h):
    nonlocal runs
    weights = numpy_oracle.softmax(
      _linear(p, f'{folder}/transitions', h).reshape(*nodes, -1)
    )
    push = weights[..., :num_nodes].reshape(*nodes, *nodes)
    replace = weights[..., num_nodes : 2 * num_nodes].reshape(*nodes, *nodes)
    pop = weights[..., 2 * num_nodes :]
    runs, top = enumerated_reading(runs, push, replace, pop)
    return top.sum(0)

  return step, top.sum(0)


def enumerated_reading(runs, push, replace, pop):
  """Makes every transition of every run; returns runs and the top's weights.

  A run is (state, stack); the first symbol of a stack may only be covered.
  """
  num_states, num_symbols = push.shape[:2]
  new_runs = collections.Counter()
  for (state, stack), weight in runs.items():
    for r, y in itertools.product(range(num_states), range(num_symbols)):
      change = weight * push[state, stack[-1], r, y]
      new_runs[r, (*stack, y)] += change
      if len(stack) > 1:
        change = weight * replace[state, stack[-1], r, y]
        new_runs[r, (*stack[:-1], y)] += change
    if len(stack) > 2:
      for r in range(num_states):
        new_runs[r, stack[:-1]] += weight * pop[state, stack[-1], r]
  top = np.zeros((num_states, num_symbols))
  for (state, stack), weight in new_runs.items():
    top[state, stack[-1]] += weight
  return new_runs, top / top.sum()


_MEMORIES = {
  'rnn': _no_memory,
  'lstm': _no_memory,
  'stack': _stacks,
  'ndstack': _nondeterministic_stack,
  'tape': _tapes,
}
_FOLDERS = {
  'stack': 'stack_rnn_core',
  'ndstack': 'nd_stack_rnn_core',
  'tape': 'tape_input_length_jump_core',
}


# -------------------------------------------------------------- transformers


def encoder(params, config, x_TxV, is_causal=False):
  """Returns the logits of an encoder with a readout, [T, O].

  Args:
    params: Of the model.
    config: A `TransformerConfig`.
    x_TxV: The string.
    is_causal: Whether a position sees only those up to it.
  """
  p = numpy_oracle.as_float64(params)
  return _linear(p, 'readout', _encode(p, config, '', x_TxV, is_causal))


def encoder_decoder(params, config, x_TxV, y_TxO):
  """Returns the logits of an encoder and a decoder, [T', O]."""
  p = numpy_oracle.as_float64(params)
  memory = _encode(p, config, 'encoder/', x_TxV, is_causal=False)
  start = np.eye(y_TxO.shape[1] + 1)[-1:]
  shifted = np.concatenate([start, np.pad(y_TxO[:-1], [(0, 0), (0, 1)])])
  h = _encode(p, config, 'decoder/', shifted, is_causal=True, memory=memory)
  return _linear(p, 'readout', h)


def _encode(p, c, folder, x_TxV, is_causal, memory=None):
  """Vaswani et al., 2017, section 3, with what is in the folder."""
  h = np.sqrt(c.embedding_dim) * (x_TxV @ p[f'{folder}embedding']['w'])
  if c.positional_encodings == 'SIN_COS':
    h += [_sinusoids(c, t, c.embedding_dim) for t in range(len(h))]

  def sees(query, key):
    is_near = c.attention_window is None or (
      abs(query - key) <= c.attention_window // 2
    )
    return is_near and not (is_causal and key > query)

  for layer in range(c.num_layers):
    name = f'{folder}layer_{layer}'

    def normed(sublayer, h, name=name):
      norm = p[f'{name}/{sublayer}_norm']
      return numpy_oracle.layer_norm(h, norm['scale'], norm['offset'])

    h = normed(
      'attention', h + _attention(p, c, f'{name}/attention', h, h, sees)
    )
    if memory is not None:
      attended = _attention(
        p, c, f'{name}/cross_attention', h, memory, lambda query, key: True
      )
      h = normed('cross_attention', h + attended)
    hidden = np.maximum(_linear(p, f'{name}/ffn_in', h), 0)
    h = normed('ffn', h + _linear(p, f'{name}/ffn_out', hidden))
  return h


def _attention(p, c, name, h_QxD, memory_KxD, sees):
  """One query at a time."""

  def heads(what, x):
    return _linear(p, f'{name}/{what}', x).reshape(
      len(x), c.num_heads, c.head_size
    )

  q = heads('query', h_QxD)
  k, v = heads('key', memory_KxD), heads('value', memory_KxD)
  out = []
  for i in range(len(h_QxD)):
    seen = [j for j in range(len(memory_KxD)) if sees(i, j)]
    attended = []
    for head in range(c.num_heads):
      logits = [_logit(p, c, name, q, k, head, i, j) for j in seen]
      if c.positional_encodings == 'COPE':
        logits = _contextual(p, c, name, q[i, head], i, seen, logits)
      attended.append(numpy_oracle.softmax(np.array(logits)) @ v[seen, head])
    out.append(np.concatenate(attended))
  return _linear(p, f'{name}/projection', np.array(out))


def _logit(p, c, name, q, k, head, i, j):
  """What query i has to say to key j, by each encoding's own formula."""
  query, key = q[i, head], k[j, head]
  scale = np.sqrt(c.head_size)
  if c.positional_encodings == 'RELATIVE':  # Dai et al., 2019, section 3.3.
    u, v = p[name]['content_bias'][head], p[name]['position_bias'][head]
    distances = _sinusoids(c, i - j, c.num_heads * c.head_size)
    r = _linear(p, f'{name}/relative_key', distances)
    r = r.reshape(c.num_heads, c.head_size)[head]
    return ((query + u) @ key + (query + v) @ r) / scale
  if c.positional_encodings == 'ROTARY':  # Su et al., 2021, eq. 34.
    query, key = _rotated(c, query, i), _rotated(c, key, j)
  logit = query @ key / scale
  if c.positional_encodings == 'ALIBI':  # Keys after the query: half a step.
    slope = 2.0 ** (-8 * (head + 1) / c.num_heads)
    logit -= slope * (i - j - 0.5 if i > j else j - i)
  if c.positional_encodings == 'KERPLE':  # Chi et al., 2022, eq. 6.
    r1, r2 = (
      np.log1p(np.exp(p[name][f'kerple_{r}'][int(j > i), head]))
      for r in ('r1', 'r2')
    )
    logit -= r1 * np.log(1 + r2 * abs(i - j))
  if c.positional_encodings == 'FIRE':  # Li et al., 2024, section 3.
    slope, share = abs(p[name]['fire_c']), abs(p[name]['fire_l'])
    # Places from the first key to i, or from i to the last key.
    far = max(512 * share, i + 1 if j <= i else len(k) - i)
    share = np.log(1 + slope * abs(i - j)) / np.log(1 + slope * far)
    hidden = np.maximum(_linear(p, f'{name}/fire_hidden', np.array([share])), 0)
    of_sides = _linear(p, f'{name}/fire_out', hidden).reshape(2, c.num_heads)
    logit += of_sides[int(j > i), head]
  return logit


def _contextual(p, c, name, query, i, seen, logits):
  """Golovneva et al., 2024, section 4: by counted keys, those too."""
  counted = {j: 1 / (1 + np.exp(-x)) for j, x in zip(seen, logits, strict=True)}
  found = []
  for j, logit in zip(seen, logits, strict=True):
    between = range(j, i + 1) if j <= i else range(i, j + 1)
    position = min(sum(counted.get(n, 0) for n in between), 63)
    e = p[name]['cope'][int(j > i)]
    whole = int(position)
    interpolated = e[whole] * (1 - position + whole) + e[min(whole + 1, 63)] * (
      position - whole
    )
    found.append(logit + query @ interpolated / np.sqrt(c.head_size))
  return found


def _sinusoids(c, position, dim):
  """Vaswani et al., 2017, section 3.5, all sines first."""
  angles = [position / c.max_time ** (2 * i / dim) for i in range(dim // 2)]
  return np.concatenate([np.sin(angles), np.cos(angles)])


def _rotated(c, x, position):
  """Turns pairs of features, as complex numbers."""
  angles = position * c.max_time ** (-np.arange(0, len(x), 2) / len(x))
  turned = (x[0::2] + 1j * x[1::2]) * np.exp(1j * angles)
  return np.stack([turned.real, turned.imag], axis=-1).reshape(-1)
